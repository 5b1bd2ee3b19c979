"""Comparison of recovered factors with the truth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors
from sklearn.utils import gen_batches


@dataclass(frozen=True)
class Score:
    """Agreement of recovered factors with the true ones.

    Attributes
    ----------
    r2 : ndarray of shape (n_true, n_recovered)
        Cross-validated R^2 of nearest-neighbour regression of each true factor on each
        recovered one.
    match : ndarray of shape (min(n_true, n_recovered), 2)
        Pairs (true, recovered) of the best one-to-one assignment.
    """

    r2: np.ndarray
    match: np.ndarray

    @property
    def own(self) -> float:
        """Mean R^2 of the matched pairs."""
        return float(self._matched().mean())

    @property
    def worst(self) -> float:
        """Least R^2 of the matched pairs."""
        return float(self._matched().min())

    @property
    def leak(self) -> float:
        """Largest R^2 of the other pairs, 0 if there are none."""
        others = self.r2.copy()
        others[tuple(self.match.T)] = 0
        return float(others.max())

    @property
    def number_right(self) -> bool:
        """Whether there are as many recovered factors as true ones."""
        return self.r2.shape[0] == self.r2.shape[1]

    @property
    def solved(self) -> bool:
        """Right number, every matched R^2 at least 0.95, every other at most 0.10."""
        # With 1000 samples, a factor's R^2 is above 0.99 on its own embedding and below 0.05 on an
        # independent one.
        return self.number_right and self.worst >= 0.95 and self.leak <= 0.10

    def _matched(self) -> np.ndarray:
        return self.r2[tuple(self.match.T)]


def score(recovered: Sequence[np.ndarray], truth: Sequence[np.ndarray]) -> Score:
    """Match recovered factors with true ones.

    Parameters
    ----------
    recovered : sequence of ndarray of shape (n, d_j)
        Embeddings of the recovered factors: an interval's coordinate, a circle's cosine and sine.
    truth : sequence of ndarray of shape (n, c_i)
        Latents of the true factors.

    Returns
    -------
    Score

    Examples
    --------
    >>> a, b = np.random.default_rng(0).uniform(size=(2, 500, 1))
    >>> score([b**2, -a], [a, b]).solved
    True
    """
    r2 = np.array([[regression_r2(factor, true) for factor in recovered] for true in truth])
    # Each true factor gets one recovered factor at most, so that one recovered mixture cannot stand
    # for two.
    match = np.column_stack(linear_sum_assignment(-r2))
    return Score(r2, match)


def regression_r2(source: np.ndarray, target: np.ndarray, *, n_neighbors: int = 20) -> float:
    """Return the mean of `column_r2` over the target's columns."""
    return float(column_r2(source, target, n_neighbors).mean())


def column_r2(source: np.ndarray, target: np.ndarray, n_neighbors: int = 20) -> np.ndarray:
    """Return the cross-validated R^2 of k-nearest-neighbour regression, at least 0, by column.

    A column that is constant, up to rounding, has an R^2 of 0.

    Parameters
    ----------
    source : ndarray of shape (n, d)
    target : ndarray of shape (n, c)
    n_neighbors : int
    """
    # Shuffled, since samples may come ordered; with a fixed seed, so that a score is a function of
    # its arguments.
    folds = KFold(5, shuffle=True, random_state=0)
    model = KNeighborsRegressor(min(n_neighbors, len(source) // 2))
    predicted = cross_val_predict(model, source, target, cv=folds)
    residual = (target - predicted).var(axis=0)
    variance = target.var(axis=0)
    unexplained = np.ones_like(residual)
    rounding = 100 * np.finfo(variance.dtype).eps * np.abs(target).max(axis=0)
    varies = np.ptp(target, axis=0) > rounding
    np.divide(residual, variance, out=unexplained, where=varies)
    # Below 0 the regression is worse than the mean, which tells nothing more.
    return np.clip(1 - unexplained, 0, None)


def coordinate_correlation(coordinate: np.ndarray, true: np.ndarray) -> float:
    """Return the correlation of a coordinate with the true latent, up to orientation.

    Parameters
    ----------
    coordinate : ndarray of shape (n,)
        Of a 1-D factor: arc length, or angle in radians if the truth is a circle.
    true : ndarray of shape (n, 1) or (n, 2)
        An interval's latent, or a circle's cosine and sine.
    """
    if true.shape[1] == 1:
        return float(abs(np.corrcoef(coordinate, true[:, 0])[0, 1]))
    circle = true[:, 0] + 1j * true[:, 1]
    # The modulus ignores where the angle starts; both senses of rotation are tried.
    return float(max(abs(np.mean(np.exp(s * coordinate) * circle)) for s in (1j, -1j)))


def function_accuracy(
    functions: Sequence[np.ndarray], truth: Sequence[np.ndarray], *, enough: float = 0.9
) -> float:
    """Return the fraction of functions that their own true factor explains.

    Parameters
    ----------
    functions : sequence of ndarray of shape (n, r_j)
        The functions of each recovered factor.
    truth : sequence of ndarray of shape (n, c_i)
    enough : float
        Least R^2 of a function on the latents of its true factor.
    """
    counts = np.array(
        [[(column_r2(true, block) >= enough).sum() for block in functions] for true in truth]
    )
    matched = counts[linear_sum_assignment(-counts)]
    return float(matched.sum() / sum(block.shape[1] for block in functions))


def information_imbalance(source: np.ndarray, target: np.ndarray) -> float:
    """Return how little one space tells of another: 0 if all, 1 if nothing.

    It is the mean rank, in the target, of each sample's nearest neighbour in the source, times
    2 / n (Glielmo, Zeni, Cheng, Csanyi and Laio, 2022).

    Parameters
    ----------
    source : ndarray of shape (n, d)
    target : ndarray of shape (n, c)

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)[:, None] ** 2
    >>> information_imbalance(x, x**2)
    0.02
    """
    nearest = NearestNeighbors(n_neighbors=1).fit(source).kneighbors(return_distance=False)
    total = 0.0
    for rows in gen_batches(len(target), 500):
        apart = cdist(target[rows], target)
        reached = np.take_along_axis(apart, nearest[rows], axis=1)
        # Each sample is nearer to itself; equal distances share their ranks.
        total += ((apart < reached).sum() + (apart <= reached).sum() - len(apart)) / 2
    return float(2 * total / len(target) ** 2)


def wilson_interval(successes: int, trials: int, *, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's confidence interval of a rate (95 % for z = 1.96).

    Parameters
    ----------
    successes, trials : int
    z : float
        Quantile of the normal distribution.

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(20, 20)]
    [0.839, 1.0]
    """
    # Unlike the normal interval, it does not shrink to a point at a rate of 0 or 1.
    level = 1 - 2 * special.ndtr(-z)
    ends = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return float(ends.low), float(ends.high)
