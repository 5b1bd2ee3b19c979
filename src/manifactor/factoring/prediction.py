"""How well places predict values: regression on nearest neighbours."""

from dataclasses import dataclass

import numpy as np

from manifactor._support.arithmetic import ceil_div
from manifactor._support.regression import neighbour_means


@dataclass(frozen=True)
class PredictionSettings:
    """Settings of `predictability`."""

    # Independent arrays of 3,000 samples predict each other with an R^2 below .02, so
    # that more samples are thinned: neighbours are sought in n log n.
    samples: int = 4000
    # The mean of 20 neighbours has a twentieth of the noise of one value, and they
    # still lie near each other among 4,000.
    n_neighbors: int = 20


def thinned(n_samples: int, at_most: int) -> slice:
    """Return a slice of evenly spread samples, all of them if they are few.

    Examples
    --------
    >>> thinned(10, 4)
    slice(None, None, 3)
    """
    return slice(None, None, ceil_div(n_samples, at_most))


def thinned_rows(chosen: np.ndarray, at_most: int) -> np.ndarray:
    """Return the indices of evenly spread samples among those chosen.

    Parameters
    ----------
    chosen : ndarray of bool of shape (n_samples,)
    at_most : int

    Examples
    --------
    >>> thinned_rows(np.array([True, False, True, True, True]), 2)
    array([0, 3])
    """
    rows = np.flatnonzero(chosen)
    return rows[thinned(len(rows), at_most)]


def predictability(
    source: np.ndarray,
    target: np.ndarray,
    *,
    settings: PredictionSettings = PredictionSettings(),
) -> np.ndarray:
    """Return the R^2 with which places predict each column of a target, at least 0.

    Leave-one-out regression on the nearest neighbours. The mean of k neighbours has a
    k-th of the noise itself, which is taken into account: two independent arrays give
    0, not -1/k.

    Parameters
    ----------
    source : ndarray of shape (n, d)
    target : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (m,)
    """
    thin = thinned(len(source), settings.samples)
    source, target = source[thin], target[thin]
    k = min(settings.n_neighbors, len(source) - 1)
    # The sample itself is no neighbour: a function would predict its own noise.
    rest = target - neighbour_means(source, k)(target)
    left = (rest**2).mean(axis=0) / (1 + 1 / k)
    return np.clip(1 - left / np.maximum(target.var(axis=0), 1e-300), 0, 1)
