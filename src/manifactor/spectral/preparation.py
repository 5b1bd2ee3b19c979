"""Samples to prepared samples: what the data themselves show to be noise is taken off before neighbours are sought."""

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

PREPARATIONS = ("auto", "pca", "weights", "none")
MOST_COLUMNS = 1000  # above, the covariance costs more than all that follows
FEWEST_SAMPLES = 150  # that can tell noise from signal: ten neighbourhoods
ESTIMATED_ON = 20_000  # samples that weights are estimated on
SHORTEST_TAIL = 3  # components that can be told to be alike
SLACK = 1.05  # on the edges of the Marchenko-Pastur law, which are sharp only for infinitely many columns
NEIGHBORS = 15
UNEQUAL = 0.5  # weight, relative to the largest, below which noise is unequal enough to weigh components
NOTHING = 0.05  # weight below which a component is all noise
ROUNDS = 3


@dataclass(frozen=True)
class Preparation:
    """A linear map that samples go through before their neighbours are sought.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    components : ndarray of shape (n_features, n_kept)
        Principal axes, scaled by their weights.
    weights : ndarray of shape (n_kept,)
        From 0 to 1: share of signal in each component.
    reason : str
        What was done and why.
    """

    mean: np.ndarray
    components: np.ndarray
    weights: np.ndarray
    reason: str

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Prepared samples, (n, n_kept)."""
        return (X - self.mean) @ self.components


def prepare(X: np.ndarray, method: str = "auto") -> Preparation | None:
    """The preparation that samples need, None for none.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    method : "auto", "pca", "weights" or "none"
        "pca" drops the principal components that look like isotropic Gaussian noise. "weights" multiplies each by the
        share of its variance that neighbours predict. "auto" does the first, and the second where what is left is
        unequally noisy.
    """
    n, n_columns = X.shape
    if method == "none" or n_columns < 2:
        return None
    if method == "auto" and (n_columns > MOST_COLUMNS or n < FEWEST_SAMPLES):
        return None
    mean = X.mean(axis=0)
    variance, axes = np.linalg.eigh(np.cov((X - mean).T, bias=True))
    variance, axes = variance[::-1], axes[:, ::-1]
    seen = variance > 1e-12 * variance[0]
    variance, axes = variance[seen], axes[:, seen]
    scores = (X - mean) @ axes
    noise = 0 if method == "weights" else noise_components(scores, variance)
    kept = len(variance) - noise
    weights = np.ones(kept) if method == "pca" else signal_weights(scores[:, :kept])
    done = []
    if noise:
        done.append(f"{noise} of {n_columns} principal components are isotropic Gaussian noise and were dropped")
    if method == "weights" or weights.min() < UNEQUAL * weights.max():
        done.append(
            f"components were weighted by their share of signal, from {weights.min():.2f} to {weights.max():.2f}"
        )
    else:
        weights = np.ones(kept)
    if not done:
        return None
    used = weights > NOTHING
    return Preparation(mean, axes[:, :kept][:, used] * weights[used], weights[used], "; ".join(done))


def noise_components(scores: np.ndarray, variance: np.ndarray) -> int:
    """How many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and their values must have the kurtosis of a
    Gaussian: a tail of equal variances that is no Gaussian is structure.
    """
    n, d = scores.shape
    kurtosis = (scores**4).mean(axis=0) / variance**2 - 3
    best = 0
    for m in range(SHORTEST_TAIL, d):
        level, ratio = variance[-m:].mean(), np.sqrt(m / n)
        inside = variance[-m] < SLACK * level * (1 + ratio) ** 2
        inside &= variance[-1] > level * max(0, 1 - ratio) ** 2 / SLACK
        if inside and abs(kurtosis[-m:].mean()) < 4 * np.sqrt(24 / (n * m)) + 0.05:
            best = m
    return best


def signal_weights(scores: np.ndarray) -> np.ndarray:
    """Share of each component's variance that a sample's neighbours predict, (n_components,).

    That is SNR / (1 + SNR). Neighbours are sought among the weighted components, so the weights sharpen themselves in
    a few rounds.
    """
    scores = scores[:: -(-len(scores) // ESTIMATED_ON)]
    k = min(NEIGHBORS, len(scores) - 1)
    weights = np.ones(scores.shape[1])
    for _ in range(ROUNDS):
        near = NearestNeighbors(n_neighbors=k).fit(scores * weights).kneighbors(return_distance=False)
        left = ((scores - scores[near].mean(axis=1)) ** 2).mean(axis=0) / (1 + 1 / k)
        weights = np.clip(1 - left / scores.var(axis=0), NOTHING / 2, 1)
        if weights.min() > UNEQUAL * weights.max():
            break
    return weights
