"""Local linear regression of values on places."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.arithmetic import quotient
from manifactor._support.regression import nearest_on_line, neighbour_sums, without_itself
from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of `local_fit` and `choose_neighbors`."""

    # Neighbours that a conditional mean may be taken over: few where a factor bends the samples,
    # many where noise or other factors are to be averaged. Near its minimum the error hardly
    # depends on their number, so that a ratio of 3 will do.
    ladder: tuple[int, ...] = (15, 45, 135)
    # Share of the samples that a neighbourhood may hold at most: an eighth of a circle is still
    # nearly straight.
    widest: float = 1 / 8
    # Samples that are left out, one at a time, to compare numbers of neighbours: the mean square of
    # 300 is accurate to 8 %.
    left_out: int = 300
    # Ridge, of the widest direction of a neighbourhood: places that extend in fewer directions than
    # they have columns have no slope along the others.
    ridge: float = 0.02
    # Ridge, of the variance of all places, where a neighbourhood has no spread: copies.
    least_ridge: float = 1e-12


@dataclass(frozen=True)
class LocalFit:
    """Linear functions of the place, one around each of some places."""

    means: np.ndarray  # (m, q): values at the places
    slopes: np.ndarray  # (m, c, q)


def local_fit(
    places: np.ndarray,
    values: np.ndarray,
    at: np.ndarray,
    n_neighbors: int,
    *,
    topology: str = "other",
    settings: RegressionSettings = RegressionSettings(),
) -> LocalFit:
    """Fit values, (n, q), by linear functions of their places, (n, c), around others.

    Linear and not constant: the slope of a strong factor across a neighbourhood would outweigh a
    weak factor.

    >>> line = np.linspace(0, 1, 50)[:, None]
    >>> fit = local_fit(line, 3 * line, line[:1], 10)
    >>> round(float(fit.slopes[0, 0, 0]), 1)
    2.9
    """
    near = _neighbors(places, at, n_neighbors, topology)
    around = _places_around(places, near, settings)
    slopes = np.linalg.solve(around.spread, neighbour_sums(around.off, near, values))
    return LocalFit(_means(around, near, at, values), slopes)


def choose_neighbors(
    places: np.ndarray,
    values: np.ndarray,
    *,
    topology: str = "other",
    settings: RegressionSettings = RegressionSettings(),
) -> tuple[int, float]:
    """Choose the number of neighbours that predicts samples left out best."""
    n = len(places)
    some = thinned(n, settings.left_out)
    ladder = _affordable(settings, n)
    near = _neighbors(places, places[some], ladder[-1] + 1, topology)
    near = without_itself(near, some)
    total = float(((values[some] - values.mean(axis=0)) ** 2).sum())
    left = {}
    for k in ladder:
        around = _places_around(places, near[:, :k], settings)
        means = _means(around, near[:, :k], places[some], values)
        left[k] = float(((values[some] - means) ** 2).sum())
    best = min(ladder, key=lambda k: left[k])
    # The mean of k neighbours has a k-th of the noise itself.
    share = quotient(left[best] / (1 + 1 / best), total)
    return best, 1 - share


def _affordable(settings: RegressionSettings, n_samples: int) -> list[int]:
    """Numbers of neighbours that so many samples allow, the smallest in any case."""
    most = max(settings.ladder[0], int(settings.widest * n_samples))
    return [min(k, n_samples - 1) for k in settings.ladder if k <= most]


def _neighbors(places: np.ndarray, at: np.ndarray, n_neighbors: int, topology: str) -> np.ndarray:
    """Indices of the nearest places, nearest first, (m, k)."""
    k = min(n_neighbors, len(places))
    if topology == "other":
        return KDTree(places).query(at, k)[1].reshape(len(at), k)
    if topology == "circle":
        return _neighbors_on_circle(_angle(places), _angle(at), k)
    return _neighbors_on_line(places[:, 0], at[:, 0], k)


def _angle(places: np.ndarray) -> np.ndarray:
    return np.arctan2(places[:, 1], places[:, 0])


def _neighbors_on_circle(angles: np.ndarray, at: np.ndarray, k: int) -> np.ndarray:
    """As on a line, along three turns."""
    turn = 2 * np.pi
    line = np.concatenate([angles - turn, angles, angles + turn])
    return _neighbors_on_line(line, at, k) % len(angles)


def _neighbors_on_line(places: np.ndarray, at: np.ndarray, k: int) -> np.ndarray:
    """Indices of the nearest of places, (n,), nearest first."""
    near = nearest_on_line(places, at, k)
    distance = np.abs(places[near] - at[:, None])
    return np.take_along_axis(near, distance.argsort(axis=1), axis=1)


@dataclass(frozen=True)
class _PlacesAround:
    """Places in m neighbourhoods of k samples."""

    centre: np.ndarray  # (m, c): mean place
    off: np.ndarray  # (m, c, k): places less their mean
    spread: np.ndarray  # (m, c, c): sums of the products of places, with a ridge


def _places_around(
    places: np.ndarray, near: np.ndarray, settings: RegressionSettings
) -> _PlacesAround:
    n_columns = places.shape[1]
    # One column after the other: sums over neighbours then run along memory.
    around = places.T.take(near, axis=1)
    centre = around.mean(axis=2)
    around -= centre[:, :, None]
    off = around.transpose(1, 0, 2)
    spread = off @ off.transpose(0, 2, 1)
    ridge = settings.ridge * np.trace(spread, axis1=1, axis2=2) / n_columns
    ridge = ridge + settings.least_ridge * places.var() + np.finfo(float).tiny
    return _PlacesAround(centre.T, off, spread + ridge[:, None, None] * np.eye(n_columns))


def _means(
    around: _PlacesAround, near: np.ndarray, at: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Values of the local fits at places, one in each neighbourhood, (m, q).

    They are weighted means of the neighbours' values, with weights that depend on the places alone:
    no slopes of many values need be solved for.
    """
    shift = np.linalg.solve(around.spread, (at - around.centre)[:, :, None])
    weights = 1 / near.shape[1] + shift.transpose(0, 2, 1) @ around.off
    return neighbour_sums(weights, near, values)[:, 0]
