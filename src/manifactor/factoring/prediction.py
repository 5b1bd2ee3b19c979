"""How well places predict values: regression on nearest neighbours."""

from dataclasses import dataclass

import numpy as np

from manifactor._support.arithmetic import quotient
from manifactor._support.regression import neighbour_means


@dataclass(frozen=True)
class PredictionSettings:
    """Settings of `predictability`."""

    # Independent arrays of 3,000 samples predict each other with an R^2 below .02, so that more
    # samples are thinned: neighbours are sought in n log n.
    samples: int = 4000
    # The mean of 20 neighbours has a twentieth of the noise of one value, and they still lie near
    # each other among 4,000.
    n_neighbors: int = 20
    # Samples for each neighbour: few samples have fewer neighbours, which lie near each other, but
    # at least `fewest_neighbors`.
    samples_per_neighbor: int = 1
    fewest_neighbors: int = 4


def thinned(samples: int | np.ndarray, at_most: int, *, seed: int = 1) -> np.ndarray:
    """Return the indices of randomly drawn samples, ascending; of all if they are few.

    Random, since samples may come in order, and a fixed stride would then miss what repeats along
    it. The same arguments give the same samples.

    >>> thinned(3, 4)
    array([0, 1, 2])
    >>> len(thinned(np.array([0, 2, 3, 6]), 2))
    2
    """
    rows = np.arange(samples) if isinstance(samples, int) else samples
    if len(rows) <= at_most:
        return rows
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(rows, at_most, replace=False))


def predictability(
    source: np.ndarray, target: np.ndarray, *, settings: PredictionSettings = PredictionSettings()
) -> np.ndarray:
    """Return the R^2 with which places predict each column of a target, at least 0.

    Leave-one-out regression on the nearest neighbours. The mean of k neighbours has a k-th of the
    noise itself, which is taken into account: two independent arrays give 0, not -1/k.

    Shapes: source (n, d), target (n, m) -> (m,).
    """
    thin = thinned(len(source), settings.samples)
    source, target = source[thin], target[thin]
    near = len(source) // settings.samples_per_neighbor
    near = max(near, settings.fewest_neighbors)
    k = min(settings.n_neighbors, near, len(source) - 1)
    # The sample itself is no neighbour: a function would predict its own noise.
    rest = target - neighbour_means(source, k)(target)
    left = (rest**2).mean(axis=0) / (1 + 1 / k)
    return np.clip(1 - quotient(left, target.var(axis=0)), 0, 1)
