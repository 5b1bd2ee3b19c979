"""Deflation: two factors of an additive embedding X = A(f) + B(g).

One factor is found, its share is taken off the data, and the other is found in the
rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial import KDTree

from manifactor.factoring.factor import Factor, placed_factor
from manifactor.factoring.gradients import Geometry, GradientSettings, measure_geometry
from manifactor.spectral.kernel import Affinity, affinity
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import NeighborGraph, neighbor_graph
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class DeflationSettings:
    """Settings of `deflate`."""

    # Functions of each spectrum, the constant included: the chart needs the first few,
    # and the gradients of these are taken along coordinates smoothed by all.
    n_functions: int = 9
    # Lowest functions that a circle may be made of: between its cosine and its sine,
    # which have one eigenvalue, lies at most one function of the other factor.
    n_chart_functions: int = 3
    # Least mean squared cosine between the gradients of a circle's cosine and sine. It
    # is 1 for functions of one 1-D factor, 0 for functions of different factors.
    min_parallel: float = 0.5
    # Samples that a conditional mean is taken over.
    n_averaged: int = 20
    # Times that each factor is found in what the other leaves; the best round counts.
    n_rounds: int = 3


@dataclass(frozen=True)
class WalkSpectrum:
    """The neighbour graph of samples, the random walk on it, and its spectrum.

    Attributes
    ----------
    graph : NeighborGraph
    affinity : Affinity
    distinct : Spectrum
        On the distinct samples.
    """

    graph: NeighborGraph
    affinity: Affinity
    distinct: Spectrum


@dataclass(frozen=True)
class Curve:
    """A 1-D factor that explains samples.

    Attributes
    ----------
    spectrum : Spectrum
        On the given samples.
    chart : tuple of int
        Indices of the functions that tell the place: one for an interval, cosine and
        sine for a circle.
    mean : ndarray of shape (n_samples, n_features)
        Conditional mean of the samples given the place.
    explained : float
        Share of the samples' variance.
    """

    spectrum: Spectrum
    chart: tuple[int, ...]
    mean: np.ndarray
    explained: float

    @property
    def strength(self) -> float:
        """Sum of squares of what the curve explains."""
        return float((self.mean**2).sum())

    def factor(self) -> Factor:
        """Return the curve as a factor."""
        functions = self.spectrum.functions[:, list(self.chart)]
        eigenvalues = self.spectrum.eigenvalues[list(self.chart)]
        topology = "interval" if len(self.chart) == 1 else "circle"
        return placed_factor(functions, eigenvalues, topology)


def deflate(
    samples: np.ndarray,
    start: WalkSpectrum,
    *,
    n_neighbors: int,
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
    settings: DeflationSettings = DeflationSettings(),
    gradients: GradientSettings = GradientSettings(),
    rng: np.random.Generator,
) -> tuple[tuple[Factor, Factor], float]:
    """Find two factors whose functions add up to the samples.

    The first is read from the samples, the second from what the first leaves, then the
    first again from what the second leaves, and so on; the best round counts.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
    start : WalkSpectrum
        Of the samples; the lowest `settings.n_functions` functions are used.
    n_neighbors : int
        Neighbours in the graphs of what is left of the samples.
    walk_of : callable
        Computes the walk of such a graph.

    Returns
    -------
    factors : tuple of two Factor
        The one that explains more first.
    explained : float
        Share of the variance that their sum explains.
    """
    X = samples - samples.mean(axis=0)
    variance = (X**2).sum()
    find = partial(
        _curve_of_rest,
        n_neighbors=n_neighbors,
        walk_of=walk_of,
        settings=settings,
        gradients=gradients,
        rng=rng,
    )
    first = best_curve(X, start, settings=settings, gradients=gradients, rng=rng)
    best: tuple[Curve, Curve] | None = None
    most = -np.inf
    for _ in range(settings.n_rounds):
        second = find(X - first.mean)
        first = find(X - second.mean)
        left = X - first.mean - second.mean
        explained = 1 - float((left**2).sum() / variance)
        if best is None or explained > most:
            best, most = (first, second), explained
    assert best is not None
    stronger, weaker = sorted(best, key=lambda curve: -curve.strength)
    return (stronger.factor(), weaker.factor()), most


def _curve_of_rest(
    rest: np.ndarray,
    *,
    n_neighbors: int,
    walk_of: Callable[[NeighborGraph], Affinity],
    settings: DeflationSettings,
    gradients: GradientSettings,
    rng: np.random.Generator,
) -> Curve:
    """Find the best curve of what a factor leaves of the samples."""
    graph = neighbor_graph(rest, min(n_neighbors, len(rest) - 1))
    walk = walk_of(graph)
    count = min(settings.n_functions, len(graph.distinct) - 1)
    spectrum = laplacian_spectrum(walk, count, rng=rng)
    found = WalkSpectrum(graph, walk, spectrum)
    return best_curve(rest, found, settings=settings, gradients=gradients, rng=rng)


def best_curve(
    samples: np.ndarray,
    found: WalkSpectrum,
    *,
    settings: DeflationSettings = DeflationSettings(),
    gradients: GradientSettings = GradientSettings(),
    rng: np.random.Generator,
) -> Curve:
    """Return the interval or circle that explains most of the samples.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Of mean 0.
    found : WalkSpectrum
        Of the samples.
    """
    distinct = found.distinct.lowest(settings.n_functions)
    rows = samples[found.graph.distinct]
    geometry = measure_geometry(
        distinct, found.affinity, rows, settings=gradients, rng=rng
    )
    spectrum = distinct.with_copies(found.graph)
    charts = _charts(geometry, settings)
    curves = [_curve(samples, spectrum, chart, settings) for chart in charts]
    return max(curves, key=lambda curve: curve.explained)


def _charts(geometry: Geometry, settings: DeflationSettings) -> list[tuple[int, ...]]:
    """Return the lowest function, and the pairs that may be cosine and sine."""
    last = min(settings.n_chart_functions, len(geometry.eigenvalues))
    charts: list[tuple[int, ...]] = [(1,)]
    for b in range(2, last + 1):
        for a in range(1, b):
            if _parallel(geometry, a, b) > settings.min_parallel:
                charts.append((a, b))
    return charts


def _parallel(geometry: Geometry, a: int, b: int) -> float:
    """Return the mean squared cosine between the gradients of two functions."""
    first = geometry.gradients[:, :, a - 1]
    second = geometry.gradients[:, :, b - 1]
    across = (first * second).sum(axis=1) ** 2
    length = (first**2).sum(axis=1)
    other_length = (second**2).sum(axis=1)
    return float(across.mean() / (length * other_length).mean())


def _curve(
    samples: np.ndarray,
    spectrum: Spectrum,
    chart: tuple[int, ...],
    settings: DeflationSettings,
) -> Curve:
    """Explain the samples by their places on an interval or a circle."""
    place = spectrum.functions[:, list(chart)]
    if len(chart) == 2:  # the angle tells the place on a circle, the radius is noise
        place = place / np.linalg.norm(place, axis=1, keepdims=True)
    mean = conditional_mean(samples, place, n_averaged=settings.n_averaged)
    left = ((samples - mean) ** 2).sum()
    explained = 1 - float(left / (samples**2).sum())
    return Curve(spectrum, chart, mean, explained)


def conditional_mean(
    samples: np.ndarray,
    place: np.ndarray,
    *,
    n_averaged: int,
) -> np.ndarray:
    """Return the mean of the samples over the nearest places, the sample left out.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
    place : ndarray of shape (n_samples, d)
    n_averaged : int

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    k = min(n_averaged, len(samples) - 1)
    _, near = KDTree(place).query(place, k + 1, workers=-1)
    total = np.zeros_like(samples)
    # One neighbour at a time: images need no third dimension in memory.
    for column in near.T:
        total += samples[column]
    # Of copies any one may stand for the sample itself.
    return (total - samples) / k
