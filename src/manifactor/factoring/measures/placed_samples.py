"""Samples with their coordinates on all factors, and local fits of the samples on these.

Every method ends with coordinates of the samples on the factors, called places here. Measures that
need nothing but places and samples judge all methods alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.regression import neighbour_sums
from manifactor._support.threads import cores
from manifactor.factoring.prediction import thinned

# Samples for each coefficient of a fit, at least.
SAMPLES_PER_COEFFICIENT = 5


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
        ridge = 1e-9 * size[:, None, None]
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
        ends = np.cumsum(self.dimensions)
        return LocalFits(slopes, noise, frames, tuple(map(slice, ends - self.dimensions, ends)))


def place_samples(
    places: Sequence[np.ndarray],
    dimensions: Sequence[int],
    samples: np.ndarray,
    *,
    inliers: np.ndarray | None = None,
) -> PlacedSamples:
    """Return thinned samples with places in the samples' unit of length.

    Shapes: places (n, c), samples (n, p), inliers (n,).
    """
    if inliers is None:
        inliers = np.ones(len(samples), dtype=bool)
    # Neighbours among so many lie nearer to each other than places on factors are accurate.
    rows = thinned(np.flatnonzero(inliers), 10_000)
    # An embedding has no more directions than columns.
    dimensions = [min(d, p.shape[1]) for d, p in zip(dimensions, places, strict=True)]
    least = SAMPLES_PER_COEFFICIENT * (1 + sum(dimensions))
    some = np.asarray(samples[rows], dtype=float)
    axes = _main_axes(some)
    placed = PlacedSamples(
        places=tuple(_of_unit_spread(place[rows]) for place in places),
        dimensions=tuple(dimensions),
        samples=some @ axes,
        axes=axes,
        nodes=thinned(len(rows), 300),
        # Wide enough to average errors of places over more than the kernel's bandwidth, and narrow
        # enough for a straight line. The share is fixed, so that the error of a fit falls as
        # samples are added.
        n_near=max(least, int(1 / 20 * len(rows))),
    )
    for _ in range(2):
        placed = _in_lengths(placed)
    return placed


def _main_axes(samples: np.ndarray) -> np.ndarray:
    """Axes of the columns, or of the main principal components of wide samples."""
    n, n_columns = samples.shape
    # What further components leave out moves no sample by a length that counts.
    most = 64
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
    # A median needs no more nodes.
    fits = replace(placed, nodes=placed.nodes[::3]).local_fits
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
