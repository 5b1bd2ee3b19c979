"""Samples with their places on all factors, and what is measured of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.regression import neighbour_sums
from manifactor._support.threads import cores
from manifactor.factoring.prediction import thinned
from manifactor.spectral.neighbors import chosen

# A measured number and its noise.

NOT_MEASURED = float("nan")


@dataclass(frozen=True)
class Measurement:
    """A number, and the part of it that is noise.

    >>> Measurement(0.5, 0.2).net, Measurement(0.5).net
    (0.3, 0.5)
    >>> str(Measurement(0.1234, 0.031)), str(Measurement(0.5))
    ('0.123 +- 0.031', '0.5')
    """

    value: float
    noise: float = NOT_MEASURED  # nan where none is measured

    @property
    def net(self) -> float:
        """The value less its noise; the value itself where no noise is measured."""
        return self.value if np.isnan(self.noise) else self.value - self.noise

    def __str__(self) -> str:
        if np.isnan(self.noise):
            return f"{self.value:.3g}"
        return f"{self.value:.3f} +- {self.noise:.3f}"


# Samples with their places on all factors, and local fits of samples on places.
#
# Every method ends with places of the samples on the factors. Measures that need nothing but places
# and samples judge all methods alike.


@dataclass(frozen=True)
class PlacedSettings:
    """Settings of `place_samples` and of the local fits."""

    # Samples that are looked at: neighbours among so many lie nearer to each other than places on
    # factors are accurate.
    samples: int = 10_000
    # Samples at which fits are made, drawn at random.
    nodes: int = 300
    # Share of the samples that one fit takes: wide enough to average errors of places over more
    # than the kernel's bandwidth, and narrow enough for a straight line. It is fixed, so that the
    # error of a fit falls as samples are added.
    neighbourhood: float = 1 / 20
    # Samples for each coefficient of a fit, at least.
    samples_per_coefficient: int = 5
    # Principal components of wide samples that are kept: what they leave out moves no sample by a
    # length that counts.
    columns: int = 64
    # Rounds in which places are given the samples' unit of length, and one of how many nodes they
    # look at: a median needs no more.
    rounds: int = 2
    nodes_per_round: int = 3
    # Relative size of the ridge that keeps a fit to copies of one sample finite.
    ridge: float = 1e-9


@dataclass(frozen=True)
class LocalFits:
    """Linear fits of samples on places, one for each of m neighbourhoods."""

    # (m, D, p): change of the samples along each direction of the factors' tangent planes
    slopes: np.ndarray
    noise: np.ndarray  # (m, D, D): expected inner products of the slopes' errors
    # (m, c, d): orthonormal directions of each factor's tangent plane among its places
    frames: tuple[np.ndarray, ...]
    directions: tuple[slice, ...]  # rows of the slopes that belong to each factor

    @property
    def metric(self) -> np.ndarray:
        """Inner products of the slopes less those of their errors, (m, D, D)."""
        return self.slopes @ self.slopes.transpose(0, 2, 1) - self.noise


@dataclass(frozen=True)
class PlacedSamples:
    """Samples and their places on all factors, in the samples' unit of length."""

    places: tuple[np.ndarray, ...]  # (n, c): one for each factor
    dimensions: tuple[int, ...]  # intrinsic dimension of each factor
    samples: np.ndarray  # (n, q): in the main principal components, where they are wide
    axes: np.ndarray  # (p, q): orthonormal axes of the samples among the given columns
    nodes: np.ndarray  # samples at which fits are made
    n_near: int  # samples that one fit takes
    settings: PlacedSettings

    @property
    def n_samples(self) -> int:
        """Number of samples that are looked at."""
        return len(self.samples)

    @property
    def joint(self) -> np.ndarray:
        """Places on all factors side by side, (n, sum of c)."""
        return np.hstack(self.places)

    def without(self, factor: int) -> np.ndarray:
        """Return the places on all factors but one, side by side."""
        return np.hstack([p for f, p in enumerate(self.places) if f != factor])

    def neighbours(self, rows: np.ndarray, count: int) -> np.ndarray:
        """Return for each node the nearest of some samples, (m, count), by place."""
        joint = self.joint
        count = min(count, len(rows))
        tree = KDTree(joint[rows])
        near = tree.query(joint[self.nodes], count, workers=cores())[1]
        return rows[near.reshape(len(self.nodes), count)]

    @cached_property
    def local_fits(self) -> LocalFits:
        """The local fits to the neighbourhoods of all nodes among all samples."""
        return self.fits(self.neighbours(np.arange(self.n_samples), self.n_near))

    def fits(self, near: np.ndarray) -> LocalFits:
        """Return the local fits to neighbourhoods, (m, k) indices of samples."""
        tangents = [
            _tangent(_centred(place[near]), dimension)
            for place, dimension in zip(self.places, self.dimensions, strict=True)
        ]
        moves = np.concatenate([inside for inside, _ in tangents], axis=2)
        moves = moves.transpose(0, 2, 1)
        normal = moves @ moves.transpose(0, 2, 1)
        n_moves = moves.shape[1]
        size = np.einsum("mdd->m", normal)
        # A neighbourhood may consist of copies of one sample.
        size = np.maximum(size, np.finfo(float).eps * (size.max() or 1.0))
        ridge = self.settings.ridge * size[:, None, None]
        inverse = np.linalg.inv(normal + ridge * np.eye(n_moves))
        # Squares of samples far from the origin would lose their digits.
        samples = self.samples - self.samples.mean(axis=0)
        joint = neighbour_sums(moves, near, samples)
        slopes = inverse @ joint
        # What the fits leave of the samples' squares, with their moves of mean 0.
        fitted = (slopes * (joint + ridge * slopes)).sum(axis=(1, 2))
        rest = np.maximum(_squares_around_mean(samples, near) - fitted, 0.0)
        freedom = max(1, near.shape[1] - 1 - n_moves)
        noise = (rest / freedom)[:, None, None] * inverse
        frames = tuple(frame for _, frame in tangents)
        return LocalFits(slopes, noise, frames, tuple(_slices(self.dimensions)))


def place_samples(
    places: Sequence[np.ndarray],
    dimensions: Sequence[int],
    samples: np.ndarray,
    *,
    inliers: np.ndarray | None = None,
    settings: PlacedSettings = PlacedSettings(),
) -> PlacedSamples:
    """Return thinned samples with places in the samples' unit of length.

    Shapes: places (n, c), samples (n, p), inliers (n,).
    """
    if inliers is None:
        inliers = np.ones(len(samples), dtype=bool)
    rows = thinned(np.flatnonzero(inliers), settings.samples)
    # An embedding has no more directions than columns.
    dimensions = [min(d, p.shape[1]) for d, p in zip(dimensions, places, strict=True)]
    least = settings.samples_per_coefficient * (1 + sum(dimensions))
    some = np.asarray(samples[rows], dtype=float)
    axes = _main_axes(some, settings.columns)
    placed = PlacedSamples(
        places=tuple(_of_unit_spread(place[rows]) for place in places),
        dimensions=tuple(dimensions),
        samples=some @ axes,
        axes=axes,
        nodes=thinned(len(rows), settings.nodes),
        n_near=max(least, int(settings.neighbourhood * len(rows))),
        settings=settings,
    )
    for _ in range(settings.rounds):
        placed = _in_lengths(placed)
    return placed


def _main_axes(samples: np.ndarray, most: int) -> np.ndarray:
    """Axes of the columns, or of the main principal components of wide samples."""
    n, n_columns = samples.shape
    if n_columns <= most:
        return np.eye(n_columns)
    centred = samples - samples.mean(axis=0)
    if n_columns <= n:
        return np.linalg.eigh(centred.T @ centred)[1][:, -most:]
    # The smaller of the two matrices of inner products has the same components.
    left = np.linalg.eigh(centred @ centred.T)[1][:, -most:]
    return np.linalg.qr(centred.T @ left)[0]


def _of_unit_spread(place: np.ndarray) -> np.ndarray:
    spread = np.sqrt(place.var(axis=0).sum())
    return place / spread if spread > 0 else place


def _in_lengths(placed: PlacedSamples) -> PlacedSamples:
    """The same with places scaled so that samples move as far as their places do."""
    nodes = placed.nodes[:: placed.settings.nodes_per_round]
    fits = replace(placed, nodes=nodes).local_fits
    places = []
    for place, rows in zip(placed.places, fits.directions, strict=True):
        squares = (fits.slopes[:, rows] ** 2).sum(axis=2).mean(axis=1)
        places.append(place * np.sqrt(np.median(squares)))
    return replace(placed, places=tuple(places))


def _squares_around_mean(samples: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Sum of squared distances from the mean of each neighbourhood, (m,)."""
    k = near.shape[1]
    means = neighbour_sums(np.full((len(near), 1, k), 1 / k), near, samples)[:, 0]
    squares = (samples**2).sum(axis=1)[near].sum(axis=1)
    return squares - k * (means**2).sum(axis=1)


def _centred(values: np.ndarray) -> np.ndarray:
    return values - values.mean(axis=1, keepdims=True)


def _tangent(around: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Places inside the main plane of each neighbourhood, and the plane.

    (m, k, c) to (m, k, d) and (m, c, d).
    """
    n_columns = around.shape[2]
    if n_columns <= dimension:
        plane = np.broadcast_to(np.eye(n_columns), (len(around), n_columns, n_columns))
        return around, plane
    spread = around.transpose(0, 2, 1) @ around
    plane = np.linalg.eigh(spread)[1][:, :, -dimension:]
    return around @ plane, plane


def _slices(dimensions: Sequence[int]) -> Iterator[slice]:
    start = 0
    for dimension in dimensions:
        yield slice(start, start + dimension)
        start += dimension


# Samples on a straight line: one column, or columns that are multiples of one.


@dataclass(frozen=True)
class LineSettings:
    """Settings of `along_line`."""

    # Distance from the line, as a share of its length, that is rounding: of columns that were
    # computed from each other, or of float32 no farther from 0 than the line is long.
    rounding: float = 1e-6
    # Samples that tell nearly always that there is no line.
    screened: int = 100


def along_line(
    X: np.ndarray, rows: np.ndarray, *, settings: LineSettings = LineSettings()
) -> np.ndarray | None:
    """Return where samples lie along a straight line; None if they are on none.

    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0], [6.0, 0.0]])
    >>> along_line(X, np.arange(3)).tolist()
    [0.0, 5.0, 10.0]
    >>> along_line(X, np.arange(4)) is None
    True

    Shapes: X (n, p), rows (n_rows,) -> (n_rows,).
    """
    few = thinned(rows, settings.screened)
    if _along(np.asarray(X[few]), settings) is None:
        return None
    return _along(np.asarray(chosen(X, rows)), settings)


def _along(samples: np.ndarray, settings: LineSettings) -> np.ndarray | None:
    from_first = samples - samples[0]
    distances = np.linalg.norm(from_first, axis=1)
    farthest = int(distances.argmax())
    length = distances[farthest]
    direction = from_first[farthest] / max(length, np.finfo(float).tiny)
    along = from_first @ direction
    beside = from_first - np.outer(along, direction)
    on_line = np.abs(beside).max(initial=0) <= settings.rounding * length
    return along if on_line else None


# Whether a factor shrinks to a point somewhere, and has no places there.


@dataclass(frozen=True)
class PoleSettings:
    """Settings of `poles`."""

    # Samples that are looked at.
    samples: int = 10_000
    # Neighbours of each: few, so that a circle is told from a point however short.
    n_neighbors: int = 10
    # Share of a factor's variance from which on neighbours lie all over it.
    all_over: float = 0.5


def poles(
    places: Sequence[np.ndarray], samples: np.ndarray, *, settings: PoleSettings = PoleSettings()
) -> Measurement:
    """Return how many samples have neighbours all over a factor, per neighbour.

    The largest number over the factors. Around the pole of a sphere meridians have all directions,
    and the angle tells no place. About as many samples as a neighbourhood holds have the pole in
    theirs.

    >>> turn, height = np.random.default_rng(0).uniform(size=(2, 1000))
    >>> ring = np.column_stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)])
    >>> places = [ring, height[:, None]]
    >>> poles(places, np.column_stack([ring, height])).value
    0.0
    >>> poles(places, np.column_stack([height[:, None] * ring, height])).value > 0.5
    True

    Shapes: places (n, c), samples (n, p).
    """
    thin = thinned(len(samples), settings.samples)
    some = np.asarray(samples[thin], dtype=float)
    k = min(settings.n_neighbors, len(some) - 1)
    near = KDTree(some).query(some, k + 1)[1]
    counts = []
    for place in places:
        around = place[thin][near].var(axis=1, ddof=1).sum(axis=1)
        whole = place[thin].var(axis=0).sum()
        counts.append(int((around > settings.all_over * whole).sum()))
    return Measurement(max(counts) / k)
