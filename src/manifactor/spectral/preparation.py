"""Samples to prepared samples: what the data themselves show to be noise is taken off before neighbours are sought."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

PREPARATIONS = ("auto", "none")
MOST_COLUMNS = 1000  # above, the covariance costs more than all that follows
BLOCK = 2**20  # numbers that are worked on at a time
FEWEST_SAMPLES = 150  # that can tell noise from signal
SHORTEST_TAIL = 3  # components that can be told to be alike
SLACK = 1.05  # on the edges of the Marchenko-Pastur law, which are sharp only for infinitely many columns
SURE, ALLOWANCE = (
    3.0,
    0.01,
)  # standard errors, and a share, by which the kurtosis of noise may differ from a Gaussian's


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
        out = np.empty((len(X), self.components.shape[1]))
        for rows in gen_batches(len(X), max(1, BLOCK // X.shape[1])):
            out[rows] = (X[rows] - self.mean) @ self.components
        return out


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
    mean = X.mean(axis=0, dtype=np.float64)
    blocks = list(
        gen_batches(n, max(1, BLOCK // n_columns))
    )  # the samples are never copied whole
    variance, axes = np.linalg.eigh(
        sum((X[rows] - mean).T @ (X[rows] - mean) for rows in blocks) / n
    )
    seen = variance > 1e-12 * variance[-1]
    variance, axes = variance[seen][::-1], axes[:, seen][:, ::-1]
    noise = noise_components(((X[rows] - mean) @ axes for rows in blocks), variance, n)
    if noise in (
        0,
        len(variance),
    ):  # where all is noise, there is nothing to set it apart from
        return None
    reason = f"{noise} of {n_columns} principal components are isotropic Gaussian noise and were dropped"
    return Preparation(mean, axes[:, : len(variance) - noise], reason)


def noise_components(
    scores: Iterable[np.ndarray], variance: np.ndarray, n_samples: int
) -> int:
    """How many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and together they must have the kurtosis of a
    Gaussian (Mardia, 1970): a tail of equal variances that is no Gaussian is structure, such as the coordinates of a
    sphere.
    """
    fourth = np.zeros(
        len(variance)
    )  # of the length of the tail of each sample, in units of its standard deviations
    for block in scores:
        fourth += (np.cumsum(block[:, ::-1] ** 2 / variance[::-1], axis=1) ** 2).sum(
            axis=0
        ) / n_samples
    most = 0
    for m in range(1, len(variance) + 1):
        level, ratio = variance[-m:].mean(), np.sqrt(m / n_samples)
        highest, lowest = (
            SLACK * level * (1 + ratio) ** 2,
            level * max(0, 1 - ratio) ** 2 / SLACK,
        )
        gaussian = m * (m + 2)
        excess = abs(fourth[m - 1] - gaussian)
        alike = excess < SURE * np.sqrt(8 * gaussian / n_samples) + ALLOWANCE * gaussian
        if (
            m >= SHORTEST_TAIL
            and variance[-m] < highest
            and variance[-1] > lowest
            and alike
        ):
            most = m
    return most
