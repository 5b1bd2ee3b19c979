"""The density of the samples: whether they are even, in clusters, on a line, or Gaussian."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from manifactor._support.errors import listed
from manifactor.factors.factor import Factor
from manifactor.judging.measures.places import PlacedSamples
from manifactor.operators.metric import LocalMetric, MetricSearch
from manifactor.operators.neighbors import choose_search, chosen, make_search
from manifactor.statistics import Measurement, is_gaussian, random_rows


@dataclass(frozen=True)
class Evenness:
    """How much the density of samples varies."""

    spread: float  # standard deviation of the logarithm of the distance to a neighbour
    ratio: float  # of the density that few samples exceed to that which few do not reach


def evenness(samples: np.ndarray, dimension: float, metric: LocalMetric | None = None) -> Evenness:
    """Return how much the density of samples of a manifold varies, in their metric if it is known.

    Shapes: samples (n, p).
    """
    rows = random_rows(len(samples), 4000)
    some = samples[rows]
    # By chance the distance to the 64th neighbour varies by 1/8 over the dimension.
    count = min(64, len(some) - 1)
    if metric is None:
        search = NearestNeighbors(n_neighbors=count).fit(some)
        # Without an argument, samples are not neighbours of their own.
        distances = search.kneighbors()[0][:, -1]
    else:
        plain = make_search(choose_search(*some.shape).value, count)
        near = MetricSearch(count, metric.chosen(rows), plain).fit_transform(some)
        distances = near.max(axis=1).toarray().ravel()
    logarithms = np.log(np.maximum(distances, np.finfo(float).tiny))
    low, high = np.quantile(logarithms, [0.05, 0.95])
    ratio = float(np.exp(min(dimension * (high - low), 50.0)))
    return Evenness(float(logarithms.std()), ratio)


def clusters(coordinate: np.ndarray, *, closed: bool = False) -> tuple[float, ...]:
    """Return the shares of the samples in each of the `cluster_labels` along a coordinate."""
    labels = cluster_labels(coordinate, closed=closed)
    counts = np.unique(labels[labels >= 0], return_counts=True)[1]
    return tuple((counts / len(labels)).tolist()) if len(counts) > 1 else (1.0,)


def cluster_labels(coordinate: np.ndarray, *, closed: bool = False) -> np.ndarray:
    """Return the cluster of each sample along a coordinate, (n,); -1 between clusters.

    All are 0 where there is no gap. A gap is a bin with few samples between bins with many; a
    circle falls apart at two gaps or more.

    Shapes: coordinate (n,).
    """
    bins, one = min(20, len(coordinate) // 25), np.zeros(len(coordinate), int)
    if bins < 3:
        return one
    counts, edges = np.histogram(coordinate, bins)
    own = np.clip(np.searchsorted(edges, coordinate, side="right") - 1, 0, bins - 1)
    if closed:
        # A circle may be cut open anywhere: where it has fewest samples.
        own = (own - int(counts.argmin())) % bins
        counts = np.roll(counts, -int(counts.argmin()))
    before = np.maximum.accumulate(counts)
    after = np.maximum.accumulate(counts[::-1])[::-1]
    # Below a fifth of the smaller peak beside it: 25 samples are below 5 by chance in 1 of 10^7.
    gap = counts < 0.2 * np.minimum(before, after)
    # A piece begins at each gap.
    piece = np.cumsum(gap)
    large = np.bincount(piece, counts) >= 0.05 * counts.sum()
    return np.where(large, np.cumsum(large) - 1, -1)[piece][own] if large.sum() > 1 else one


def arc_of_function(function: np.ndarray) -> np.ndarray:
    """Return where samples lie along a low function, (n,), to look for clusters.

    Functions are flat at the ends of their range, where samples crowd: the arc length is taken of
    which the function would be a cosine.
    """
    # A hundredth of the samples at either end may be stray.
    low, high = np.quantile(function, [0.01, 0.99])
    if not high > low:
        return np.zeros(len(function))
    return np.arccos(np.clip(2 * (function - low) / (high - low) - 1, -1, 1))


def clusters_of_function(function: np.ndarray) -> tuple[float, ...]:
    """Return the shares of the samples in each cluster along a low function."""
    return clusters(arc_of_function(function))


def clusters_in_words(shares: tuple[float, ...]) -> str:
    """Return the number and the sizes of clusters in words."""
    sizes = listed(f"{100 * share:.0f} %" for share in shares)
    return f"{len(shares)} clusters, of {sizes} of the samples"


def along_line(X: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Return where samples lie along a straight line; None if they are on none.

    They are where there is one column, or where all columns are multiples of one.

    Shapes: X (n, p), rows (n_rows,) -> (n_rows,).
    """
    # A hundred samples tell nearly always that there is no line.
    if _along(np.asarray(X[random_rows(rows, 100)])) is None:
        return None
    return _along(np.asarray(chosen(X, rows)))


def _along(samples: np.ndarray) -> np.ndarray | None:
    from_first = samples - samples[0]
    distances = np.linalg.norm(from_first, axis=1)
    farthest = int(distances.argmax())
    length = distances[farthest]
    direction = from_first[farthest] / max(length, np.finfo(float).tiny)
    along = from_first @ direction
    beside = from_first - np.outer(along, direction)
    # A distance of a millionth of the length is rounding: of columns that were computed from each
    # other, or of float32 no farther from 0 than the line is long.
    on_line = np.abs(beside).max(initial=0) <= 1e-6 * length
    return along if on_line else None


# Factors along which the samples are Gaussian: their axes are not identifiable.
#
# Independent Gaussians stay independent Gaussians under rotations, once each is measured in its
# standard deviation: the axes that a cloud of them shows depend on the units of the columns. At
# most one factor may be Gaussian (Comon, 1994).


def gaussian_factors(placed: PlacedSamples) -> Measurement:
    """Return the number of factors along which the samples are Gaussian.

    A factor is measured in the data's own units: by the part of the samples in the factor's
    directions, with those of all other factors taken off.
    """
    fits = placed.local_fits
    found = [_mean_plane(fits.slopes[:, rows]) for rows in fits.directions]
    # Standard errors are below a hundredth.
    some = placed.given[random_rows(len(placed.given), 10_000)] @ placed.axes
    centred = some - some.mean(axis=0)
    # Coordinates along the directions of all factors together.
    coordinates = centred @ np.linalg.pinv(np.hstack([plane for plane, _ in found])).T
    count = sum(
        # A bent factor is identified by its bend. A half circle has .8 in a line.
        share > 0.9 and is_gaussian(coordinates[:, rows])
        for (_, share), rows in zip(found, fits.directions, strict=True)
    )
    return Measurement(float(count))


def _mean_plane(slopes: np.ndarray) -> tuple[np.ndarray, float]:
    """The plane, (p, d), nearest to directions, (m, d, p), at all nodes, and their share in it."""
    directions = np.linalg.qr(slopes.transpose(0, 2, 1))[0]
    dimension = directions.shape[2]
    # The mean of the projections onto the planes of all nodes.
    mean = np.einsum("mpd,mqd->pq", directions, directions) / len(directions)
    shares, axes = np.linalg.eigh(mean)
    return axes[:, -dimension:], float(shares[-dimension:].mean())


def clusters_of_factors(factors: Sequence[Factor]) -> str:
    """Return a phrase on factors along which samples fall into clusters, or ""."""
    phrases = []
    for number, factor in enumerate(factors, start=1):
        if factor.coordinate is None:
            shares = clusters_of_function(factor.functions[:, 0])
        else:
            shares = clusters(factor.coordinate, closed=factor.topology == "circle")
        if len(shares) > 1:
            phrases.append(f"{clusters_in_words(shares)}, along factor {number}")
    return f"the samples fall into {'; '.join(phrases)}" if phrases else ""
