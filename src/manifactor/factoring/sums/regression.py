"""Local linear regression of values on places."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of `local_fit` and `choose_neighbors`."""

    # Neighbours that a conditional mean may be taken over: few where a factor bends
    # the samples, many where noise or other factors are to be averaged. Near its
    # minimum the error hardly depends on their number, so that a ratio of 3 will do.
    ladder: tuple[int, ...] = (15, 45, 135)
    # Share of the samples that a neighbourhood may hold at most: an eighth of a circle
    # is still nearly straight.
    widest: float = 1 / 8
    # Samples that are left out, one at a time, to compare numbers of neighbours: the
    # mean square of 300 is accurate to 8 %.
    left_out: int = 300
    # Ridge, of the widest direction of a neighbourhood: places that extend in fewer
    # directions than they have columns have no slope along the others.
    ridge: float = 0.02


@dataclass(frozen=True)
class LocalFit:
    """Linear functions of the place, one around each of some places.

    Attributes
    ----------
    means : ndarray of shape (m, q)
        Values at the places.
    slopes : ndarray of shape (m, c, q)
    """

    means: np.ndarray
    slopes: np.ndarray


def local_fit(
    places: np.ndarray,
    values: np.ndarray,
    at: np.ndarray,
    n_neighbors: int,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> LocalFit:
    """Fit values, (n, q), by linear functions of their places, (n, c), around others.

    Linear and not constant: the slope of a strong factor across a neighbourhood would
    outweigh a weak factor.

    Examples
    --------
    >>> line = np.linspace(0, 1, 50)[:, None]
    >>> fit = local_fit(line, 3 * line, line[:1], 10)
    >>> round(float(fit.slopes[0, 0, 0]), 1)
    2.9
    """
    near = _neighbors(KDTree(places), at, n_neighbors)
    return _fit(places, values, at, near, settings)


def choose_neighbors(
    places: np.ndarray,
    values: np.ndarray,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> tuple[int, float]:
    """Choose the number of neighbours that predicts samples left out best.

    Returns
    -------
    n_neighbors : int
    explained : float
        Share of the variance of the values that the places explain, for samples that
        the regression has not seen.
    """
    n = len(places)
    some = np.arange(n)[thinned(n, settings.left_out)]
    ladder = _affordable(settings, n)
    near = _neighbors(KDTree(places), places[some], ladder[-1] + 1)
    near = _without(near, some)
    total = float(((values[some] - values.mean(axis=0)) ** 2).sum())
    left = {}
    for k in ladder:
        fit = _fit(places, values, places[some], near[:, :k], settings)
        left[k] = float(((values[some] - fit.means) ** 2).sum())
    best = min(ladder, key=lambda k: left[k])
    # The mean of k neighbours has a k-th of the noise itself.
    share = left[best] / (1 + 1 / best) / max(total, 1e-300)
    return best, 1 - share


def _affordable(settings: RegressionSettings, n_samples: int) -> list[int]:
    """Numbers of neighbours that so many samples allow, the smallest in any case."""
    most = max(settings.ladder[0], int(settings.widest * n_samples))
    return [min(k, n_samples - 1) for k in settings.ladder if k <= most]


def _neighbors(tree: KDTree, at: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Indices of the nearest places, nearest first, (m, k)."""
    k = min(n_neighbors, tree.n)
    near = tree.query(at, k)[1]
    return near.reshape(len(at), k)


def _without(near: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Neighbours of samples without the samples themselves, (m, k - 1)."""
    itself = near == own[:, None]
    # Among copies, the last one stands for the sample.
    itself[~itself.any(axis=1), -1] = True
    return near[~itself].reshape(len(near), near.shape[1] - 1)


def _fit(
    places: np.ndarray,
    values: np.ndarray,
    at: np.ndarray,
    near: np.ndarray,
    settings: RegressionSettings,
) -> LocalFit:
    around = places[near]
    centre = around.mean(axis=1)
    around = around - centre[:, None]
    level = values[near]
    mean = level.mean(axis=1)
    spread = around.transpose(0, 2, 1) @ around
    ridge = settings.ridge * np.trace(spread, axis1=1, axis2=2) / places.shape[1]
    # Copies have no spread at all.
    ridge = ridge + 1e-12 * places.var() + 1e-300
    spread = spread + ridge[:, None, None] * np.eye(places.shape[1])
    slopes = np.linalg.solve(spread, around.transpose(0, 2, 1) @ level)
    return LocalFit(mean + np.einsum("mc,mcq->mq", at - centre, slopes), slopes)
