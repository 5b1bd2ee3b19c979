"""Regression on nearest neighbours: what coordinates predict, and whether the rest is noise."""

import numpy as np

from manifactor._support.regression import neighbour_means
from manifactor._support.values import quotient

# Independent arrays of 3,000 samples predict each other with an R^2 below .02, so that more samples
# are thinned: neighbours are sought in n log n.
PREDICTED_SAMPLES = 4000
# The mean of 20 neighbours has a twentieth of the noise of one value, and they still lie near each
# other among 4,000.
N_NEIGHBORS = 20
# How far the kurtosis of a direction with an edge or a hole lies below that of Gaussian noise at
# least; an interval's lies 1.2 below, a circle's or a sphere's 2.
EDGE_DEPTH = 0.4


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
    source: np.ndarray, target: np.ndarray, *, samples_per_neighbor: int = 1
) -> np.ndarray:
    """Return the R^2 with which coordinates predict each column of a target, at least 0.

    Leave-one-out regression on the nearest neighbours. The mean of k neighbours has a k-th of the
    noise itself, which is taken into account: two independent arrays give 0, not -1/k.

    Shapes: source (n, d), target (n, m) -> (m,).
    """
    thin = thinned(len(source), PREDICTED_SAMPLES)
    source, target = source[thin], target[thin]
    # Few samples have fewer neighbours, which lie near each other, but at least 4.
    near = max(len(source) // samples_per_neighbor, 4)
    k = min(N_NEIGHBORS, near, len(source) - 1)
    # The sample itself is not a neighbour: a function would predict its own noise.
    rest = target - neighbour_means(source, k)(target)
    left = (rest**2).mean(axis=0) / (1 + 1 / k)
    return np.clip(1 - quotient(left, target.var(axis=0)), 0, 1)


def leaves_noise(places: np.ndarray, samples: np.ndarray) -> bool:
    """Return whether what places leave of the samples has no edge and no hole.

    Noise has none. Samples, (n, d), are predicted from their neighbours on the factors, (n, c). A
    small factor that was missed, an interval or a circle, shows in the rest as a direction of low
    kurtosis, which `has_edge` finds. At 4,000 samples an interval blurred by noise of a quarter of
    its width looks like noise.

    >>> rng = np.random.default_rng(0)
    >>> line = rng.uniform(size=(2000, 1))
    >>> noise = 0.1 * rng.normal(size=(2000, 1))
    >>> strip = 0.3 * rng.uniform(size=(2000, 1))
    >>> leaves_noise(line, np.hstack([line, noise]))
    True
    >>> leaves_noise(line, np.hstack([line, strip]))
    False
    """
    thin = thinned(len(samples), PREDICTED_SAMPLES)
    places, samples = places[thin], samples[thin]
    k = min(N_NEIGHBORS, len(places) - 1)
    rest = samples - neighbour_means(places, k)(samples)
    size = np.linalg.norm(samples - samples.mean(axis=0))
    # A rest below 1e-9 of the samples is rounding.
    if np.linalg.norm(rest - rest.mean(axis=0)) <= 1e-9 * size:
        return True
    return not has_edge(rest)


def has_edge(
    samples: np.ndarray, *, thick: float = 0.01, most_directions: int | None = None
) -> bool:
    """Return whether samples, (n, p), have an edge or a hole in a main direction.

    There the kurtosis is low, which is a low eigenvalue of the matrix of fourth moments of white
    samples (Cardoso, 1989). Directions with less than `thick` of the largest variance do not count:
    they are rounding, or noise of the regression that left the samples. Only the first
    `most_directions` count, since the lowest of many kurtoses is low by chance.

    >>> has_edge(np.linspace(-1, 1, 1000)[:, None])
    True
    """
    white, strength = whitened(samples)
    white = white[:, strength**2 >= thick * strength[0] ** 2][:, :most_directions]
    lowest = _lowest_kurtosis(white)
    if lowest > white.shape[1] + 2 - EDGE_DEPTH:
        return False
    # In many directions the lowest kurtosis of noise is low by chance.
    rng = np.random.default_rng(0)
    noise, _ = whitened(rng.normal(size=white.shape))
    return lowest < _lowest_kurtosis(noise) - EDGE_DEPTH


def whitened(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of variance 1 along the principal axes, (n, p), and singular values."""
    centred = samples - samples.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    return left * np.sqrt(len(left)), strength


def _lowest_kurtosis(white: np.ndarray) -> float:
    """Least eigenvalue of the fourth moments; p + 2 for a Gaussian of p directions."""
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return float(np.linalg.eigvalsh(fourth)[0])
