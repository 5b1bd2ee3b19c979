"""Metric of the samples in the factors' places: block by block on a product.

Samples that move with their places have a metric in them. On a Riemannian product, directions of
different factors are orthogonal, and lengths along one factor depend on the place on this factor
alone. Both departures are products of two estimates, from halves of the samples: errors of the
halves are independent, so they cancel on average.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.regression import without_itself
from manifactor._support.threads import map_threads
from manifactor._support.values import quotient
from manifactor.factoring.measures import Measurement
from manifactor.factoring.measures.placed_samples import (
    SAMPLES_PER_COEFFICIENT,
    LocalFits,
    PlacedSamples,
)


@dataclass(frozen=True)
class MetricHalves:
    """Local fits to each half of the samples at the same nodes."""

    placed: PlacedSamples
    fits: tuple[LocalFits, LocalFits]

    @property
    def n_independent(self) -> float:
        """Number of nodes whose neighbourhoods do not overlap."""
        return max(1.0, self.placed.n_samples / self.placed.n_near)


def metric_halves(placed: PlacedSamples) -> MetricHalves:
    """Return local fits to random halves of the samples."""
    # Random, since samples may come in order; and always the same.
    rng = np.random.default_rng(0)
    halves = np.array_split(rng.permutation(placed.n_samples), 2)
    fewest = SAMPLES_PER_COEFFICIENT * (1 + sum(placed.dimensions))
    count = max(placed.n_near // 2, fewest)
    first, second = map_threads(lambda half: placed.fits(placed.neighbours(half, count)), halves)
    return MetricHalves(placed, (first, second))


def skew(halves: MetricHalves) -> Measurement:
    """Return the mean cosine between directions of different factors, 0 on a product.

    The largest over pairs of factors that are curves. A torus whose lattice has an angle of 80
    degrees has .17, a parallelogram of 60 degrees .5.
    """
    return _largest_over_pairs(_mean_cosine, halves)


def crossing(halves: MetricHalves) -> Measurement:
    """Return the root mean square cosine that depends on the places on both factors.

    The largest over pairs of factors; 0 on a product, .14 where the ends of a rectangle of 2.5 : 1
    are rounded. A cosine that depends on one place alone is an error of the coordinates, not of the
    product: a product with places f and g is still one if f is replaced by f + h(g).
    """
    return _largest_over_pairs(_joint_cosine, halves)


def _largest_over_pairs(measure: Callable[..., Measurement], halves: MetricHalves) -> Measurement:
    pairs = combinations(range(len(halves.placed.places)), 2)
    found = [measure(halves, f, g) for f, g in pairs]
    return max(found, key=lambda cosine: cosine.value)


def _mean_cosine(halves: MetricHalves, f: int, g: int) -> Measurement:
    """Mean cosine of two factors; 0 where one of them is not a curve."""
    first, second = (_cosines(halves, half, f, g) for half in (0, 1))
    if first.shape[1:] != (1, 1):
        return Measurement(0.0, 0.0)
    cosines = (first + second)[:, 0, 0] / 2
    error = cosines.std() / np.sqrt(halves.n_independent)
    error += 2 * _tilt_by_chance(halves.placed, f, g)
    value = abs(float(cosines.mean()))
    return Measurement(value, min(value, float(error)))


def _tilt_by_chance(placed: PlacedSamples, f: int, g: int) -> float:
    """Standard error of the mean cosine of two factors by their chance correlation.

    A share c of one place in the other, c = 1/sqrt(n), moves samples along the longer factor by c
    times its length where they move along the shorter one. An angle has no share of another place
    in it, since it must come back after a turn.
    """
    if any(placed.places[i].shape[1] > 1 for i in (f, g)):
        return 0.0
    lengths = [np.sqrt(placed.places[i].var(axis=0).sum()) for i in (f, g)]
    ratio = max(lengths) / max(min(lengths), np.finfo(float).tiny)
    return float(ratio / np.sqrt(placed.n_samples))


def _joint_cosine(halves: MetricHalves, f: int, g: int) -> Measurement:
    """Root mean square of the cosine's part that depends on both places."""
    near = [_nodes_near(halves.placed, factor) for factor in (f, g)]
    first, second = (_interaction(_cosines(halves, half, f, g), near) for half in (0, 1))
    # The inner product of the two estimates, whatever frames they are written in.
    squares = np.clip((first * second).sum(axis=(1, 2)), -1.0, 1.0)
    return _root(squares, halves)


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
    count = min(21, len(place))
    near = KDTree(place).query(place, count)[1]
    return without_itself(near, np.arange(len(place)))


def _cosines(halves: MetricHalves, half: int, f: int, g: int) -> np.ndarray:
    """Cosines between two factors' directions, as matrices.

    (m, 1, 1) where both factors are curves. The directions of a surface have no common frame, so
    that they are written as directions among its places.
    """
    fits = halves.fits[half]
    of_f, of_g = (np.sqrt(_squared_length(fits, h)) for h in (f, g))
    across = fits.metric[:, fits.directions[f], fits.directions[g]]
    lengths = (of_f * of_g)[:, None, None]
    cosines = np.clip(quotient(across, lengths), -1.0, 1.0)
    left, right = (_written(halves.placed, fits, factor) for factor in (f, g))
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


def modulation_in_data(halves: MetricHalves) -> Measurement:
    """Return the relative spread of lengths along one factor over the others.

    Lengths are compared at the same place on the factor. The largest over the factors; 0 on a
    product, .27 on a cone frustum whose radius falls to .4 of its own.
    """
    factors = range(len(halves.placed.places))
    return max((_modulation_of(halves, f) for f in factors), key=lambda found: found.value)


def _modulation_of(halves: MetricHalves, f: int) -> Measurement:
    """Modulation of one factor."""
    near = _nodes_near(halves.placed, f)
    changes = []
    for fits in halves.fits:
        length = np.log(_squared_length(fits, f)) / 2
        changes.append(length - length[near].mean(axis=1))
    # The mean of k nodes has a k-th of the variance itself.
    squares = changes[0] * changes[1] / (1 + 1 / near.shape[1])
    return _root(squares, halves)


def _root(squares: np.ndarray, halves: MetricHalves) -> Measurement:
    """Root of the mean of squares.

    Its noise is how much smaller the root is if the mean is smaller by its standard error.
    """
    mean = float(squares.mean())
    error = float(squares.std()) / np.sqrt(halves.n_independent)
    value = np.sqrt(max(mean, 0.0))
    return Measurement(value, value - np.sqrt(max(mean - error, 0.0)))
