"""Samples to prepared samples: what the data themselves show to be noise is taken off before neighbours are sought."""

from dataclasses import dataclass

import numpy as np

PREPARATIONS = ("auto", "none")
MOST_COLUMNS = 1000  # above, the covariance costs more than all that follows
FEWEST_SAMPLES = 150  # that can tell noise from signal
SHORTEST_TAIL = 3  # components that can be told to be alike
SLACK = 1.05  # on the edges of the Marchenko-Pastur law, which are sharp only for infinitely many columns
SURE, ALLOWANCE = 3.0, 0.01  # standard errors, and a share, by which the kurtosis of noise may differ from a Gaussian's


@dataclass(frozen=True)
class Preparation:
    """The principal components that hold more than noise.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
    components : ndarray of shape (n_features, n_kept)
        Principal axes.
    reason : str
        What was done and why.
    """

    mean: np.ndarray
    components: np.ndarray
    reason: str

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Prepared samples, (n, n_kept)."""
        return (X - self.mean) @ self.components


def prepare(X: np.ndarray) -> Preparation | None:
    """The preparation that samples, (n_samples, n_features), need; None for none.

    Few samples cannot tell noise from signal, and many columns cost too much: both are left as they are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line = np.c_[np.linspace(-5, 5, 2000), np.zeros((2000, 9))]
    >>> prepare(line) is None
    True
    >>> prepare(line + 0.1 * rng.normal(size=line.shape)).reason
    '9 of 10 principal components are isotropic Gaussian noise and were dropped'
    """
    n, n_columns = X.shape
    if n < FEWEST_SAMPLES or not SHORTEST_TAIL < n_columns <= MOST_COLUMNS:
        return None
    mean = X.mean(axis=0)
    variance, axes = np.linalg.eigh(np.cov((X - mean).T, bias=True))
    seen = variance > 1e-12 * variance[-1]
    variance, axes = variance[seen][::-1], axes[:, seen][:, ::-1]
    noise = noise_components((X - mean) @ axes, variance)
    if noise in (0, len(variance)):  # where all is noise, there is nothing to set it apart from
        return None
    reason = f"{noise} of {n_columns} principal components are isotropic Gaussian noise and were dropped"
    return Preparation(mean, axes[:, : len(variance) - noise], reason)


def noise_components(scores: np.ndarray, variance: np.ndarray) -> int:
    """How many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and together they must have the kurtosis of a
    Gaussian (Mardia, 1970): a tail of equal variances that is no Gaussian is structure, such as the coordinates of a
    sphere.
    """
    n, d = scores.shape
    square = np.zeros(n)  # squared length of the tail of each sample, in units of its standard deviations
    most = 0
    for m in range(1, d + 1):
        square += scores[:, -m] ** 2 / variance[-m]
        level, ratio = variance[-m:].mean(), np.sqrt(m / n)
        highest, lowest = SLACK * level * (1 + ratio) ** 2, level * max(0, 1 - ratio) ** 2 / SLACK
        gaussian = m * (m + 2)
        excess = abs((square**2).mean() - gaussian)
        alike = excess < SURE * np.sqrt(8 * gaussian / n) + ALLOWANCE * gaussian
        if m >= SHORTEST_TAIL and variance[-m] < highest and variance[-1] > lowest and alike:
            most = m
    return most
