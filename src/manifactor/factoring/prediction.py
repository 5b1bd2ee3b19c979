"""How well places predict values: regression on nearest neighbours."""

from dataclasses import dataclass

import numpy as np

from manifactor._support.regression import neighbour_means
from manifactor._support.values import quotient


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


# Whether samples have an edge or a hole in some direction, as noise has not.


@dataclass(frozen=True)
class EdgeSettings:
    """Settings of `has_edge`."""

    # Least variance of a direction that counts, relative to the largest: far thinner ones are
    # rounding, or noise of the regression that left the samples.
    thick: float = 0.01
    # Main directions that count, at most; None for all. The lowest of many kurtoses is low by
    # chance.
    most_directions: int | None = None
    # How far the kurtosis of a direction with an edge or a hole lies below that of Gaussian noise
    # at least; an interval's lies 1.2 below, a circle's or a sphere's 2.
    depth: float = 0.4


def has_edge(samples: np.ndarray, *, settings: EdgeSettings = EdgeSettings()) -> bool:
    """Return whether samples, (n, p), have an edge or a hole in a main direction.

    There the kurtosis is low, which is a low eigenvalue of the matrix of fourth moments of white
    samples (Cardoso, 1989).

    >>> has_edge(np.linspace(-1, 1, 1000)[:, None])
    True
    """
    left, strength = _principal(samples)
    thick = strength**2 >= settings.thick * strength[0] ** 2
    white = left[:, thick][:, : settings.most_directions]
    lowest = _lowest_kurtosis(white)
    if lowest > white.shape[1] + 2 - settings.depth:
        return False
    # In many directions the lowest kurtosis of noise is low by chance.
    rng = np.random.default_rng(0)
    noise, _ = _principal(rng.normal(size=white.shape))
    return lowest < _lowest_kurtosis(noise) - settings.depth


def _principal(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """White coordinates along the principal axes, (n, p), and the singular values."""
    centred = samples - samples.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    return left * np.sqrt(len(left)), strength


def _lowest_kurtosis(white: np.ndarray) -> float:
    """Least eigenvalue of the fourth moments; p + 2 for a Gaussian of p directions."""
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return float(np.linalg.eigvalsh(fourth)[0])
