"""Two factors of an additive embedding X = A(f) + B(g): find one, take its share off the data, find the other."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor.factoring.factor import Factor, placed_factor
from manifactor.factoring.gradients import Geometry, measure_geometry
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.spectrum import Spectrum

FUNCTIONS = 9  # of each spectrum, the constant included
LOOKED_AT = 3  # lowest functions that a circle may be made of
PARALLEL = (
    0.5  # least mean squared cosine of the gradients of two functions of one circle
)
NEIGHBORS = 20  # that a conditional mean is taken over
ROUNDS = 3


@dataclass(frozen=True)
class Curve:
    """A 1-D factor that explains samples: its spectrum, which of its functions tell the place, and what it explains.

    Attributes
    ----------
    spectrum : Spectrum
    chart : tuple of int
        One function for an interval, cosine and sine for a circle.
    mean : ndarray of shape (n_samples, n_features)
        Conditional mean of the samples given the place.
    explained : float
        Share of the samples' variance.
    """

    spectrum: Spectrum
    chart: tuple[int, ...]
    mean: np.ndarray
    explained: float


def deflate(
    X: np.ndarray, *, n_neighbors: int, rng: np.random.Generator
) -> tuple[tuple[Factor, Factor], float]:
    """Two factors, the one that explains more first, and the share of the variance that their sum explains.

    The first is read from the samples, the second from what the first leaves, then the first again from what the
    second leaves, and so on; the best round counts.
    """
    X = X - X.mean(axis=0)
    best: tuple[float, Curve, Curve] | None = None
    first = best_curve(X, n_neighbors=n_neighbors, rng=rng)
    for _ in range(ROUNDS):
        second = best_curve(X - first.mean, n_neighbors=n_neighbors, rng=rng)
        first = best_curve(X - second.mean, n_neighbors=n_neighbors, rng=rng)
        left = X - first.mean - second.mean
        explained = 1 - float((left**2).sum() / (X**2).sum())
        if best is None or explained > best[0]:
            best = explained, first, second
    assert best is not None
    explained, first, second = best
    curves = sorted((first, second), key=lambda curve: -float((curve.mean**2).sum()))
    return (_factor(curves[0]), _factor(curves[1])), explained


def best_curve(Y: np.ndarray, *, n_neighbors: int, rng: np.random.Generator) -> Curve:
    """The interval or circle, read from the lowest functions, that explains most of the samples."""
    graph = neighbor_graph(Y, min(n_neighbors, len(Y) - 1))
    walk = affinity(graph)
    distinct = laplacian_spectrum(
        walk, min(FUNCTIONS, len(graph.distinct) - 1), rng=rng
    )
    geometry = measure_geometry(distinct, walk, Y[graph.distinct], rng=rng)
    spectrum = distinct.with_copies(graph)
    last = min(LOOKED_AT, len(spectrum.eigenvalues) - 1)
    pairs = [(a, b) for b in range(2, last + 1) for a in range(1, b)]
    charts = [(1,), *(pair for pair in pairs if _parallel(geometry, *pair) > PARALLEL)]
    curves = [_curve(Y, spectrum, chart) for chart in charts]
    return max(curves, key=lambda curve: curve.explained)


def _curve(Y: np.ndarray, spectrum: Spectrum, chart: tuple[int, ...]) -> Curve:
    place = spectrum.functions[:, list(chart)]
    if len(chart) == 2:
        place = place / np.linalg.norm(place, axis=1, keepdims=True)
    mean = conditional_mean(Y, place)
    return Curve(
        spectrum, chart, mean, 1 - float(((Y - mean) ** 2).sum() / (Y**2).sum())
    )


def conditional_mean(Y: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Leave-one-out mean of the samples over the nearest places, (n_samples, n_features)."""
    k = min(NEIGHBORS, len(Y) - 1)
    near = KDTree(place).query(place, k + 1, workers=-1)[1]
    total = np.zeros_like(Y)
    for (
        column
    ) in near.T:  # one neighbour at a time: images need no third dimension in memory
        total += Y[column]
    return (total - Y) / k  # of copies any one may stand for the sample itself


def _parallel(geometry: Geometry, a: int, b: int) -> float:
    """Mean squared cosine between the gradients of two functions."""
    first, second = geometry.gradients[:, :, a - 1], geometry.gradients[:, :, b - 1]
    across = (first * second).sum(axis=1) ** 2
    return float(
        across.mean() / ((first**2).sum(axis=1) * (second**2).sum(axis=1)).mean()
    )


def _factor(curve: Curve) -> Factor:
    functions = curve.spectrum.functions[:, list(curve.chart)]
    eigenvalues = curve.spectrum.eigenvalues[list(curve.chart)]
    return placed_factor(
        functions, eigenvalues, "interval" if len(curve.chart) == 1 else "circle"
    )
