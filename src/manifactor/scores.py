"""Comparison of recovered factors with the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

OWN, LEAK = (
    0.95,
    0.10,
)  # least R^2 with the own true factor, largest with any other, of a solved problem


@dataclass(frozen=True)
class Score:
    """How well recovered factors match the true ones.

    Attributes
    ----------
    r2 : ndarray of shape (n_true, n_recovered)
        Cross-validated R^2 of nearest-neighbour regression of each true factor on each recovered one.
    match : ndarray of shape (min(n_true, n_recovered), 2)
        Pairs (true, recovered) of the best one-to-one assignment.
    """

    r2: np.ndarray
    match: np.ndarray

    @property
    def own(self) -> float:
        """Mean R^2 of the matched pairs."""
        return float(self.r2[tuple(self.match.T)].mean())

    @property
    def worst(self) -> float:
        """Least R^2 of the matched pairs."""
        return float(self.r2[tuple(self.match.T)].min())

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
        """Right number, every matched R^2 at least .95, every other at most .10."""
        return self.number_right and self.worst >= OWN and self.leak <= LEAK


def score(recovered: Sequence[np.ndarray], truth: Sequence[np.ndarray]) -> Score:
    """Match recovered factors, (n, d_j) each, with true ones, (n, c_i) each.

    A recovered factor stands for itself by its embedding: an interval's coordinate, a circle's cosine and sine.

    Examples
    --------
    >>> a, b = np.random.default_rng(0).uniform(size=(2, 500, 1))
    >>> score([b**2, -a], [a, b]).solved
    True
    """
    r2 = np.array(
        [[regression_r2(found, true) for found in recovered] for true in truth]
    )
    return Score(r2, np.column_stack(linear_sum_assignment(-r2)))


def regression_r2(
    source: np.ndarray, target: np.ndarray, *, n_neighbors: int = 20
) -> float:
    """Cross-validated R^2 of k-nearest-neighbour regression, the mean over the target's columns, at least 0."""
    return float(column_r2(source, target, n_neighbors).mean())


def column_r2(
    source: np.ndarray, target: np.ndarray, n_neighbors: int = 20
) -> np.ndarray:
    """Cross-validated R^2 of k-nearest-neighbour regression for each column of the target; 0 for a constant one."""
    folds = KFold(5, shuffle=True, random_state=0)
    model = KNeighborsRegressor(min(n_neighbors, len(source) // 2))
    left = (target - cross_val_predict(model, source, target, cv=folds)).var(axis=0)
    variance = target.var(axis=0)
    return np.clip(
        1 - np.divide(left, variance, out=np.ones_like(left), where=variance > 0),
        0,
        None,
    )


def coordinate_correlation(coordinate: np.ndarray, true: np.ndarray) -> float:
    """Correlation of a 1-D factor's coordinate with the true latent, up to orientation.

    Parameters
    ----------
    coordinate : ndarray of shape (n,)
        Arc length, or angle in radians if the truth is a circle.
    true : ndarray of shape (n, 1) or (n, 2)
        An interval's latent, or a circle's cosine and sine.
    """
    if true.shape[1] == 1:
        return float(abs(np.corrcoef(coordinate, true[:, 0])[0, 1]))
    circle = true[:, 0] + 1j * true[:, 1]
    return float(
        max(abs(np.mean(np.exp(sign * coordinate) * circle)) for sign in (1j, -1j))
    )


def function_accuracy(
    functions: Sequence[np.ndarray], truth: Sequence[np.ndarray], *, enough: float = 0.9
) -> float:
    """Share of the recovered factors' functions, (n, r_j) each, that their own true factor explains to `enough`."""
    good = np.array(
        [
            [(column_r2(true, block) >= enough).sum() for block in functions]
            for true in truth
        ]
    )
    return float(
        good[linear_sum_assignment(-good)].sum()
        / sum(block.shape[1] for block in functions)
    )


def wilson_interval(
    successes: int, trials: int, *, z: float = 1.96
) -> tuple[float, float]:
    """Confidence interval of a rate (95 % for z = 1.96).

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(20, 20)]
    [0.839, 1.0]
    """
    rate = successes / trials
    centre = (rate + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = (
        z
        * sqrt(rate * (1 - rate) / trials + z**2 / (4 * trials**2))
        / (1 + z**2 / trials)
    )
    return max(0.0, centre - half), min(1.0, centre + half)
