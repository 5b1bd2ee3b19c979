"""Samples with their coordinates on all factors, called places, and what these show.

Measures that need nothing but places and samples judge all models alike. Those of the metric of the
samples are products of two estimates, from halves of the samples: errors of the halves are
independent, so they cancel on average.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import ceil

import numpy as np
from scipy.spatial import KDTree
from sklearn.neighbors import NearestNeighbors

import manifactor.statistics as statistics
from manifactor._support.threads import cores, map_threads
from manifactor._support.values import quotient
from manifactor.factors.shapes import signed_angle
from manifactor.samples.preparation import Preparation
from manifactor.statistics import Measurement


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
    given: np.ndarray  # (n_given, p): all samples

    @property
    def n_samples(self) -> int:
        """Number of samples that are looked at."""
        return len(self.samples)

    @property
    def joint(self) -> np.ndarray:
        """Places on all factors side by side, (n, sum of c)."""
        return np.hstack(self.places)

    @property
    def circles(self) -> list[int]:
        """The factors whose places are cosine and sine of an angle."""
        shapes = zip(self.places, self.dimensions, strict=True)
        return [f for f, (place, d) in enumerate(shapes) if (place.shape[1], d) == (2, 1)]

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

    @cached_property
    def halves(self) -> tuple[LocalFits, ...]:
        """Local fits to random halves of the samples, at the same nodes."""
        # Random, since samples may come in order; and always the same.
        rng = np.random.default_rng(0)
        halves = np.array_split(rng.permutation(self.n_samples), 2)
        count = max(self.n_near // 2, _fewest_near(self.dimensions))
        return tuple(map_threads(lambda half: self.fits(self.neighbours(half, count)), halves))

    @property
    def n_independent(self) -> float:
        """Number of nodes whose neighbourhoods do not overlap."""
        return max(1.0, self.n_samples / self.n_near)

    def fits(self, near: np.ndarray) -> LocalFits:
        """Return the local fits to neighbourhoods, (m, k) indices of samples."""
        tangents, frames = [], []
        for place, dimension in zip(self.places, self.dimensions, strict=True):
            around = place[near] - place[near].mean(axis=1, keepdims=True)
            plane = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -dimension:]
            tangents.append(around @ plane)
            frames.append(plane)
        inside = np.concatenate(tangents, axis=2).transpose(0, 2, 1)
        n_moves, k = inside.shape[1:]
        # A neighbourhood may consist of copies of one sample.
        floor = 1e-9 * np.finfo(float).eps * ((inside**2).sum(axis=(1, 2)).max() or 1.0)
        _, moves, spread = statistics.local_weights(inside, 0.0, ridge=1e-9 * n_moves, floor=floor)
        # Squares of samples far from the origin would lose their digits.
        samples = self.samples - self.samples.mean(axis=0)
        joint, inverse = statistics.neighbour_sums(moves, near, samples), np.linalg.inv(spread)
        slopes = inverse @ joint
        # What the fits leave of the samples' squares around their means.
        means = statistics.neighbour_sums(np.full((len(near), 1, k), 1 / k), near, samples)[:, 0]
        squares = (samples**2).sum(axis=1)[near].sum(axis=1) - k * (means**2).sum(axis=1)
        rest = np.maximum(squares - (slopes * joint).sum(axis=(1, 2)), 0.0)
        noise = (rest / max(1, k - 1 - n_moves))[:, None, None] * inverse
        ends = np.cumsum(self.dimensions)
        rows = tuple(map(slice, ends - self.dimensions, ends))
        return LocalFits(slopes, noise, tuple(frames), rows)


def place_samples(
    places: Sequence[np.ndarray],
    dimensions: Sequence[int],
    samples: np.ndarray,
    *,
    inliers: np.ndarray | slice = slice(None),
) -> PlacedSamples:
    """Return thinned samples with places in the samples' unit of length.

    Shapes: places (n, c), samples (n, p), inliers (n,).
    """
    # Neighbours among so many lie nearer to each other than places on factors are accurate.
    rows = statistics.random_rows(np.arange(len(samples))[inliers], 10_000)
    # An embedding has no more directions than columns.
    dimensions = [min(d, p.shape[1]) for d, p in zip(dimensions, places, strict=True)]
    some = np.asarray(samples[rows], dtype=float)
    axes = _main_axes(some)
    placed = PlacedSamples(
        places=tuple(statistics.of_unit_spread(place[rows]) for place in places),
        dimensions=tuple(dimensions),
        samples=some @ axes,
        axes=axes,
        nodes=statistics.random_rows(len(rows), 300),
        # Wide enough to average errors of places over more than the kernel's bandwidth, and narrow
        # enough for a straight line. The share is fixed, so that the error of a fit falls as
        # samples are added.
        n_near=max(_fewest_near(dimensions), int(1 / 20 * len(rows))),
        given=samples,
    )
    for _ in range(2):
        # Samples move as far as their places do. A median needs no more nodes.
        fits, scaled = replace(placed, nodes=placed.nodes[::3]).local_fits, []
        for place, directions in zip(placed.places, fits.directions, strict=True):
            squares = (fits.slopes[:, directions] ** 2).sum(axis=2).mean(axis=1)
            scaled.append(place * np.sqrt(np.median(squares)))
        placed = replace(placed, places=tuple(scaled))
    return placed


def _fewest_near(dimensions: Sequence[int]) -> int:
    """Fewest samples that a local fit takes: five for each of its coefficients."""
    return 5 * (1 + sum(dimensions))


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


# The metric in two halves of the samples: angles between factors, and lengths along them.


def skew(placed: PlacedSamples) -> Measurement:
    """Return the mean cosine between directions of different factors, 0 on a product.

    The largest over pairs of factors that are curves. A torus whose lattice has an angle of 80
    degrees has .17, a parallelogram of 60 degrees .5.
    """
    found = [Measurement(0.0, 0.0)]
    for f, g in combinations(range(len(placed.places)), 2):
        first, second = (_cosines(placed, fits, f, g) for fits in placed.halves)
        if first.shape[1:] == (1, 1):
            cosines = (first + second)[:, 0, 0] / 2
            error = cosines.std() / np.sqrt(placed.n_independent)
            error += 2 * _tilt_by_chance(placed, f, g)
            value = abs(float(cosines.mean()))
            found.append(Measurement(value, min(value, float(error))))
    return max(found[1:] or found)


def _tilt_by_chance(placed: PlacedSamples, f: int, g: int) -> float:
    """Standard error of the mean cosine of two factors by their chance correlation.

    A share c of one place in the other, c = 1/sqrt(n), moves samples along the longer factor by c
    times its length where they move along the shorter one. An angle has no share of another place
    in it, since it must come back after a turn.
    """
    if any(placed.places[i].shape[1] > 1 for i in (f, g)):
        return 0.0
    lengths = [np.sqrt(placed.places[i].var(axis=0).sum()) for i in (f, g)]
    return float(quotient(max(lengths), min(lengths)) / np.sqrt(placed.n_samples))


def crossing(placed: PlacedSamples) -> Measurement:
    """Return the root mean square cosine that depends on the places on both factors.

    The largest over pairs of factors; 0 on a product, .14 where the ends of a rectangle of 2.5 : 1
    are rounded. A cosine that depends on one place alone is an error of the coordinates, not of the
    product: a product with places f and g is still one if f is replaced by f + h(g).
    """
    near, found = [_nodes_near(placed, f) for f in range(len(placed.places))], []
    for f, g in combinations(range(len(near)), 2):
        cosines = (_cosines(placed, fits, f, g) for fits in placed.halves)
        first, second = (_interaction(values, (near[f], near[g])) for values in cosines)
        # The inner product of the two estimates, whatever frames they are written in.
        squares = np.clip((first * second).sum(axis=(1, 2)), -1.0, 1.0)
        found.append(_root(squares, placed))
    return max(found)


def _interaction(values: np.ndarray, near: Sequence[np.ndarray]) -> np.ndarray:
    """Values at nodes without what depends on the place on one of two factors alone.

    The means over nodes of one place are taken off in turn (backfitting): those on one factor still
    have, by chance, a part of what depends on the other.
    """
    for _ in range(2):
        for nodes in near:
            values = values - values[nodes].mean(axis=1)
    return values


def _nodes_near(placed: PlacedSamples, factor: int) -> np.ndarray:
    """Nodes of about the same place on a factor as each node, (m, k)."""
    place = placed.places[factor][placed.nodes]
    return statistics.nearest_others(place, np.arange(len(place)), 20)


def _cosines(placed: PlacedSamples, fits: LocalFits, f: int, g: int) -> np.ndarray:
    """Cosines between two factors' directions, as matrices.

    (m, 1, 1) where both factors are curves. The directions of a surface have no common frame, so
    that they are written as directions among its places.
    """
    of_f, of_g = (np.sqrt(_squared_length(fits, h)) for h in (f, g))
    across = fits.metric[:, fits.directions[f], fits.directions[g]]
    lengths = (of_f * of_g)[:, None, None]
    cosines = np.clip(quotient(across, lengths), -1.0, 1.0)
    left, right = (_written(placed, fits, factor) for factor in (f, g))
    return left @ cosines @ right.transpose(0, 2, 1)


def _written(placed: PlacedSamples, fits: LocalFits, factor: int) -> np.ndarray:
    """Matrices, (m, r, d), from a factor's directions to a frame common to all nodes.

    Signs that make directions go one way around a circle; else the directions among the places.
    """
    frame = fits.frames[factor]
    if frame.shape[1:] != (2, 1):
        return frame
    # Counterclockwise around the middle of a circle.
    place = placed.places[factor]
    x, y = (place[placed.nodes] - place.mean(axis=0)).T
    turn = np.sign(x * frame[:, 1, 0] - y * frame[:, 0, 0])
    return turn[:, None, None]


def _squared_length(fits: LocalFits, f: int) -> np.ndarray:
    """Mean square of the samples' moves along a factor, for moves of 1 in place."""
    rows = fits.directions[f]
    own = fits.metric[:, rows, rows]
    mean = np.trace(own, axis1=1, axis2=2) / own.shape[1]
    # With noise taken off nothing may be left, or less.
    usual = max(float(np.median(mean)), np.finfo(float).tiny)
    # Beyond a fourfold ratio of lengths, a fit has failed.
    return np.clip(mean, usual / 16, usual * 16)


def modulation_in_data(placed: PlacedSamples) -> Measurement:
    """Return the relative spread of lengths along one factor over the others.

    Lengths are compared at the same place on the factor. The largest over the factors; 0 on a
    product, .27 on a cone frustum whose radius falls to .4 of its own.
    """
    found = []
    for factor in range(len(placed.places)):
        near = _nodes_near(placed, factor)
        lengths = (np.log(_squared_length(fits, factor)) / 2 for fits in placed.halves)
        one, other = (length - length[near].mean(axis=1) for length in lengths)
        # The mean of k nodes has a k-th of the variance itself.
        found.append(_root(one * other / (1 + 1 / near.shape[1]), placed))
    return max(found)


def _root(squares: np.ndarray, placed: PlacedSamples) -> Measurement:
    """Root of the mean of squares.

    Its noise is how much smaller the root is if the mean is smaller by its standard error.
    """
    mean = float(squares.mean())
    error = float(squares.std()) / np.sqrt(placed.n_independent)
    value = np.sqrt(max(mean, 0.0))
    return Measurement(value, value - np.sqrt(max(mean - error, 0.0)))


# Empty combinations of places, folded factors, twists, and poles.


def filling(placed: PlacedSamples) -> Measurement:
    """Return the share of the product of the factors' ranges without any samples.

    Places on one factor are combined with those of other samples on another. Around each
    combination, samples are counted that are near on each factor, and compared with the number that
    independent factors would have there. A density that is a product, or moderately dependent,
    leaves no combination empty; a corner cut off or a hole does. The share is the largest over
    pairs of factors, and over all of them together.
    """
    # Of 4,000 samples, the smallest neighbourhoods on two factors hold as many as are needed below,
    # so that more samples would tell nothing new.
    thin = statistics.random_rows(placed.n_samples, 4000)
    places = [place[thin] for place in placed.places]
    n = len(thin)
    n_asked = min(1000, n)
    # Always the same combinations, whatever the caller's random state.
    rng = np.random.default_rng(0)
    asked = [place[rng.permutation(len(place))[:n_asked]] for place in places]
    shares = []
    for size in {2, len(places)}:
        # Of 24 samples that independent factors would have around a combination, a tenth or fewer
        # are there by chance in 1 of 10^7. Places are in error by up to .08 of a factor's length
        # near its ends, where functions are flat.
        count = min(n, ceil(max((24.0 / n) ** (1 / size), 0.08) * n))
        near = [_near(p, at, count) for p, at in zip(places, asked, strict=True)]
        for group in combinations(near, size):
            common = np.logical_and.reduce(group).sum(axis=1)
            expected = n * np.prod([one.mean(axis=1) for one in group], axis=0)
            # Dependent samples of density 1 + .6 u v have .4 of the expected number where they are
            # fewest.
            shares.append(float((common <= 0.1 * expected).mean()))
    share = max(shares)
    return Measurement(share, float(np.sqrt(share * (1 - share) / n_asked)))


def _near(place: np.ndarray, asked: np.ndarray, count: int) -> np.ndarray:
    """Whether samples are among the nearest of each place that is asked for, (m, n).

    More than `count` of them where several are as near: an interval's coordinate ends at 0 and 1.
    """
    # Squared distances in one product, less what all samples have in common.
    left = np.column_stack([-2 * asked, np.ones(len(asked))])
    right = np.column_stack([place, (place**2).sum(axis=1)])
    # Single precision tells places apart far better than their errors allow.
    squares = left.astype(np.float32) @ right.astype(np.float32).T
    radius = np.partition(squares, count - 1, axis=1)[:, count - 1]
    return squares <= radius[:, None]


# Samples of nearly the same place that each is compared with.
N_COMPARED = 20


def folds(placed: PlacedSamples) -> Measurement:
    """Return the share of samples whose neighbours by place lie elsewhere in the data.

    It is the largest over the factors. For each factor, the directions of all others are taken off
    the distances first, since errors of their places move samples along them. Then the noise is
    taken off, which all distances have in common.
    """
    # A share of 1 % is known to .3 %.
    asked = statistics.random_rows(placed.n_samples, 1000)
    joint, fits = placed.joint, placed.local_fits
    near = statistics.nearest_others(joint, asked, N_COMPARED)
    far = _far_in_data(placed.samples, asked, near)
    # The fit that each sample takes its directions from.
    fit_of = KDTree(joint[placed.nodes]).query(joint[asked])[1]

    def folded(factor: int) -> float:
        others = np.delete(fits.slopes, fits.directions[factor], axis=1)
        planes = np.linalg.qr(others.transpose(0, 2, 1))[0][fit_of]
        elsewhere = far & _lie_elsewhere(placed, factor, asked, near, planes)
        # The share is a half where two branches are equally dense, and rarely below a third by
        # chance.
        return float((elsewhere.mean(axis=1) > 1 / 3).mean())

    share = max(map_threads(folded, range(len(fits.directions))))
    return Measurement(share, float(np.sqrt(share * (1 - share) / len(asked))))


def _far_in_data(samples: np.ndarray, asked: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Whether neighbours by place, (m, k), of some samples lie far away in the data.

    One is near, whatever the factor's spread, up to 1.5 times the distance to the neighbour of the
    same rank in the data: images that share no pixels are all equally far apart.
    """
    centred = samples - samples.mean(axis=0)
    # The nearest is the sample itself.
    search = NearestNeighbors(n_neighbors=near.shape[1] + 1, algorithm="brute").fit(centred)
    reach = search.kneighbors(centred[asked])[0][:, -1:]
    return np.linalg.norm(samples[near] - samples[asked][:, None], axis=2) > 1.5 * reach


def _lie_elsewhere(
    placed: PlacedSamples, factor: int, asked: np.ndarray, near: np.ndarray, planes: np.ndarray
) -> np.ndarray:
    """Whether neighbours by place lie farther off along one factor than their places say, (m, k).

    `planes`, (m, p, d), are the directions of the other factors.
    """
    samples, place = placed.samples, placed.places[factor]
    moves = _across(samples[near] - samples[asked][:, None], planes)
    stride = place[near] - place[asked][:, None]
    # Twice, since places have errors of their own.
    excess = (moves**2).sum(axis=2) - 2 * (stride**2).sum(axis=2)
    # Low, since with two branches half of the neighbours lie on the sample's own.
    usual = np.quantile(excess, 0.2, axis=1)
    noise = max(0.0, float(np.median(usual)))
    # The mean square spread along the factor is what the others leave. The mean of k neighbours has
    # a k-th of their variance itself, and a difference of two samples twice the noise of one.
    others = placed.places[:factor] + placed.places[factor + 1 :]
    beside = statistics.nearest_others(np.hstack(others), asked, N_COMPARED)
    rest = _across((samples[asked] - samples[beside].mean(axis=1))[:, None], planes)
    spread = float((rest**2).sum(axis=2).mean()) / (1 + 1 / beside.shape[1])
    # Beyond half the spread along the factor: folds of a circle are 2 apart at most.
    return excess > 2 * noise + 0.5**2 * max(0.0, spread - noise / 2)


def _across(moves: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Moves, (m, k, p), without their parts in the planes, (m, p, d)."""
    return moves - (moves @ planes) @ planes.transpose(0, 2, 1)


# Symmetries that hide a turn: a square looks the same after a quarter of one. A hexagon is nearly a
# disk, and the correlation below is only .15 if it turns by a sixth.
SYMMETRIES = range(2, 7)


def twist_in_data(placed: PlacedSamples, *, beside_circles: bool = False) -> Measurement:
    """Return how far other factors come back turned after one turn around a circle.

    A shape with an m-fold symmetry may come back after k/m of a turn. Its coordinates in the plane
    of the turn, w = x + iy, are smooth and tell samples apart, and no length changes, but w^m goes
    around k times. The value is the correlation of w^m with e^(ikt), where t is the circle's angle,
    less that with e^(-ikt): a density that changes along the circle goes to and fro, and has both.
    It is the largest over pairs of coordinates and k < m, since a whole turn is none. 0 on a
    product, .29 where a square turns by a quarter, .44 where a triangle turns by a third.

    Circles look the same after any turn, and are among the other factors only if asked for: few
    samples of a surface may be taken for one, but angles whose densities depend on each other have
    correlations as well.
    """
    # Correlations of so many samples are known to .02.
    thin = statistics.random_rows(placed.n_samples, 4000)
    places = [place[thin] for place in placed.places]
    circles, turns = placed.circles, [0.0]
    for f in circles:
        left_out = [f] if beside_circles else circles
        others = [place for g, place in enumerate(places) if g not in left_out]
        if others:
            turns.append(_turn_around(places[f], np.hstack(others)))
    return Measurement(max(turns))


def _turn_around(circle: np.ndarray, others: np.ndarray) -> float:
    """Largest correlation of a turn of others, (n, c), with the angle of a circle, (n, 2)."""
    waves = np.exp(1j * np.outer(signed_angle(circle), np.arange(1, SYMMETRIES[-1])))
    columns = quotient(others - others.mean(axis=0), others.std(axis=0))
    largest = 0.0
    for x, y in combinations(columns.T, 2):
        for m in SYMMETRIES:
            power = (x + 1j * y) ** m
            power -= power.mean()
            some = waves[:, : m - 1] / len(waves)
            one, other = (np.abs(each @ some) for each in (power, power.conj()))
            largest = max(largest, float(quotient(np.abs(one - other), power.std()).max()))
    return largest


def seams(placed: PlacedSamples) -> Measurement:
    """Return how far apart samples lie where a circle closes, relative to elsewhere around it.

    The largest over the circles, 1 where there is none. Samples are put into 36 bins around the
    circle, or fewer of at least 50 samples; it is the distance between the samples of two bins side
    by side. The two straight edges of half a disc, taken for one place on a circle, lie far apart.
    """
    found, n_bins = [1.0], max(2, min(36, placed.n_samples // 50))
    for f in placed.circles:
        turn = signed_angle(placed.places[f]) / (2 * np.pi) % 1
        bins = (n_bins * turn).astype(int) % n_bins
        members = [placed.samples[bins == number] for number in range(n_bins)]
        apart = [
            max(np.median(KDTree(a).query(b)[0]) for a, b in ((own, after), (after, own)))
            for own, after in zip(members, [*members[1:], members[0]], strict=True)
            if len(own) and len(after)
        ]
        if apart:
            found.append(float(quotient(np.max(apart), np.median(apart))))
    return Measurement(max(found))


def poles(places: Sequence[np.ndarray], samples: np.ndarray) -> Measurement:
    """Return how many samples have neighbours all over a factor, per neighbour.

    The largest number over the factors. Around the pole of a sphere meridians have all directions,
    and the angle tells no place. About as many samples as a neighbourhood holds have the pole in
    theirs.

    Shapes: places (n, c), samples (n, p).
    """
    # Few, so that a circle differs from a point however short it is.
    k = min(10, len(samples) - 1)
    near = KDTree(samples).query(samples, k + 1)[1]
    counts = []
    for place in places:
        around = place[near].var(axis=1, ddof=1).sum(axis=1)
        counts.append(int((around > 0.5 * place.var(axis=0).sum()).sum()))
    return Measurement(max(counts) / k)


# How far noise of known size moves the places of samples on the factors.


def prepared_noise(
    noise: np.ndarray, n_samples: int, *, preparation: Preparation | None, rng: np.random.Generator
) -> np.ndarray:
    """Return noise of so many samples as it is after their preparation.

    In principal components C, noise with standard deviations s in the columns has the covariance C'
    diag(s^2) C = R' R, where R is the triangular factor of diag(s) C. Only as many numbers are
    drawn as there are components, not as there are columns.

    Shapes: noise (n_features,) -> (n_samples, n_prepared).
    """
    if preparation is None:
        return noise * rng.normal(size=(n_samples, len(noise)))
    root = np.linalg.qr(noise[:, None] * preparation.components, mode="r")
    return rng.normal(size=(n_samples, len(root))) @ root


def signal_share(before: np.ndarray, after: np.ndarray) -> float:
    """Return one less the share of the variance of places that is displacement by noise."""
    # Embeddings have near values at near places, those of a circle across 0, too.
    spread = ((before - before.mean(axis=0)) ** 2).sum()
    return float(1 - ((after - before) ** 2).sum() / spread)
