"""How even the samples are: their density, and clusters along a coordinate."""

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class EvennessSettings:
    """Settings of `evenness`, `clusters` and `clusters_of_function`."""

    # Samples whose neighbours are sought, and the neighbour whose distance tells the density: by
    # chance the distance varies by 1/8 over the dimension.
    samples: int = 4000
    neighbor: int = 64
    # Share of the samples at either end of the densities that are not compared.
    extreme: float = 0.05
    # Bins that a coordinate is cut into, and the samples that one needs at least.
    bins: int = 20
    samples_per_bin: int = 25
    # Share of the smaller peak beside it below which a bin is a gap: 25 samples are below 5 by
    # chance in 1 of 10^7.
    gap: float = 0.2
    # Smallest share of the samples that is a cluster.
    least_cluster: float = 0.05
    # Share of the samples at either end of a function that may be stray.
    stray: float = 0.01
    # Lowest functions that clusters are looked for along: each factor may be a step.
    functions: int = 3


@dataclass(frozen=True)
class Evenness:
    """How much the density of samples varies."""

    spread: float  # standard deviation of the logarithm of the distance to a neighbour
    ratio: float  # of the density that few samples exceed to that which few do not reach


def evenness(
    samples: np.ndarray, dimension: float, *, settings: EvennessSettings = EvennessSettings()
) -> Evenness:
    """Return how much the density of samples of a manifold varies.

    Shapes: samples (n, p).
    """
    some = samples[thinned(len(samples), settings.samples)]
    count = min(settings.neighbor, len(some) - 1)
    search = NearestNeighbors(n_neighbors=count).fit(some)
    # Without an argument, samples are no neighbours of their own.
    distances = search.kneighbors()[0][:, -1]
    logarithms = np.log(np.maximum(distances, np.finfo(float).tiny))
    low, high = np.quantile(logarithms, [settings.extreme, 1 - settings.extreme])
    ratio = float(np.exp(min(dimension * (high - low), 50.0)))
    return Evenness(float(logarithms.std()), ratio)


def clusters(
    coordinate: np.ndarray, *, closed: bool = False, settings: EvennessSettings = EvennessSettings()
) -> tuple[float, ...]:
    """Return the shares of the samples in each cluster along a coordinate.

    One share, 1, where there is no gap. A gap is a bin with few samples between bins with many; a
    circle falls apart at two gaps or more.

    >>> left, right = np.linspace(0, 0.4, 600), np.linspace(0.6, 1, 400)
    >>> [round(share, 1) for share in clusters(np.concatenate([left, right]))]
    [0.6, 0.4]

    Shapes: coordinate (n,).
    """
    bins = min(settings.bins, len(coordinate) // settings.samples_per_bin)
    if bins < 3:
        return (1.0,)
    counts = np.histogram(coordinate, bins)[0]
    if closed:
        # A circle may be cut open anywhere: where it has fewest samples.
        counts = np.roll(counts, -int(counts.argmin()))
    before = np.maximum.accumulate(counts)
    after = np.maximum.accumulate(counts[::-1])[::-1]
    gap = counts < settings.gap * np.minimum(before, after)
    pieces = np.split(counts, np.flatnonzero(gap))
    shares = [float(piece.sum() / counts.sum()) for piece in pieces]
    large = tuple(share for share in shares if share >= settings.least_cluster)
    return large if len(large) > 1 else (1.0,)


def clusters_of_function(
    function: np.ndarray, *, settings: EvennessSettings = EvennessSettings()
) -> tuple[float, ...]:
    """Return the shares of the samples in each cluster along a low function.

    Functions are flat at the ends of their range, where samples crowd: the arc length is taken of
    which the function would be a cosine.
    """
    low, high = np.quantile(function, [settings.stray, 1 - settings.stray])
    if not high > low:
        return (1.0,)
    cosine = np.clip(2 * (function - low) / (high - low) - 1, -1, 1)
    return clusters(np.arccos(cosine), settings=settings)


def clusters_in_words(shares: tuple[float, ...]) -> str:
    """Return the number and the sizes of clusters in words.

    >>> clusters_in_words((0.6, 0.4))
    '2 clusters, of 60 % and 40 % of the samples'
    """
    *first, last = (f"{100 * share:.0f} %" for share in shares)
    return f"{len(shares)} clusters, of {', '.join(first)} and {last} of the samples"
