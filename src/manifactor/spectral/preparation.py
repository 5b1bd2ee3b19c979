"""Samples to prepared samples: principal components that are noise are removed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.choices import Choice

PREPARATIONS = ("auto", "none")


@dataclass(frozen=True)
class PreparationSettings:
    """Settings of `choose_preparation`."""

    # Fewer samples cannot tell noise from signal.
    fewest_samples: int = 150

    # Above, the covariance costs more than all that follows.
    most_columns: int = 1000

    # Fewer components cannot be shown to be alike.
    shortest_tail: int = 3

    # Components of less variance, relative to the first, are rounding.
    rank_tolerance: float = 1e-12

    # The edges of the Marchenko-Pastur law are sharp only for infinitely many columns.
    edge_slack: float = 1.05

    # The kurtosis of noise may differ from a Gaussian's by so many standard errors,
    # and by a fraction of it.
    standard_errors: float = 3.0
    kurtosis_allowance: float = 0.01

    # Numbers per step of the work: the samples are never copied whole.
    numbers_per_step: int = 2**20


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

    def __repr__(self) -> str:
        n_columns, n_kept = self.components.shape
        return f"Preparation({n_kept} of {n_columns} principal components kept)"

    def __str__(self) -> str:
        kept = self.components.shape[1]
        return f"{kept} principal component{'' if kept == 1 else 's'}"

    def __call__(
        self,
        X: np.ndarray,
        *,
        settings: PreparationSettings = PreparationSettings(),
    ) -> np.ndarray:
        """Return prepared samples, (n, n_kept)."""
        prepared = np.empty((len(X), self.components.shape[1]))
        for rows in _row_blocks(X, settings):
            prepared[rows] = (X[rows] - self.mean) @ self.components
        return prepared


def choose_preparation(
    X: np.ndarray,
    *,
    settings: PreparationSettings = PreparationSettings(),
) -> Choice:
    """Choose the preparation of samples, (n_samples, n_features).

    Few samples cannot tell noise from signal, and many columns cost too much: both are
    left as they are.

    Returns
    -------
    Choice of Preparation or None
        None if nothing is removed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line = np.c_[np.linspace(-5, 5, 2000), np.zeros((2000, 9))]
    >>> choose_preparation(line)
    Choice(value=None, why='no principal components are isotropic Gaussian noise')
    >>> choose_preparation(line + 0.1 * rng.normal(size=line.shape)).why
    '9 of 10 principal components are isotropic Gaussian noise and were dropped'
    """
    n_samples, n_columns = X.shape
    untested = _reason_not_to_test(n_samples, n_columns, settings)
    if untested:
        return Choice(None, untested)
    mean = X.mean(axis=0, dtype=np.float64)
    variance, axes = _principal_axes(X, mean, settings)
    scores = ((X[rows] - mean) @ axes for rows in _row_blocks(X, settings))
    noise = noise_components(scores, variance, n_samples, settings=settings)
    if noise == 0:
        return Choice(None, "no principal components are isotropic Gaussian noise")
    # Nothing sets noise apart from signal where there is no signal.
    if noise == len(variance):
        return Choice(None, "all principal components look like one Gaussian")
    reason = (
        f"{noise} of {n_columns} principal components are isotropic Gaussian noise "
        "and were dropped"
    )
    kept = axes[:, : len(variance) - noise]
    return Choice(Preparation(mean, kept, reason), reason)


def noise_components(
    scores: Iterable[np.ndarray],
    variance: np.ndarray,
    n_samples: int,
    *,
    settings: PreparationSettings = PreparationSettings(),
) -> int:
    """Return how many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and together
    they must have the kurtosis of a Gaussian (Mardia, 1970): a tail of equal variances
    that is not Gaussian is structure, such as the coordinates of a sphere.

    Parameters
    ----------
    scores : iterable of ndarrays of shape (n_rows, n_components)
        Blocks of the samples in the principal axes.
    variance : ndarray of shape (n_components,)
        Descending.
    n_samples : int
    settings : PreparationSettings
    """
    kurtosis = _tail_kurtosis(scores, variance, n_samples)
    longest = 0
    for m in range(settings.shortest_tail, len(variance) + 1):
        even = _is_isotropic(variance[-m:], n_samples, settings)
        if even and _is_gaussian(kurtosis[m - 1], m, n_samples, settings):
            longest = m
    return longest


def _reason_not_to_test(
    n_samples: int,
    n_columns: int,
    settings: PreparationSettings,
) -> str | None:
    """Return why samples of this shape are left as they are; None if they are not."""
    if n_samples < settings.fewest_samples:
        fewest = settings.fewest_samples
        return f"fewer than {fewest} samples cannot tell noise from signal"
    if n_columns <= settings.shortest_tail:
        return f"noise cannot be told from signal in {n_columns} columns"
    if n_columns > settings.most_columns:
        most = settings.most_columns
        return f"the covariance of more than {most:,} columns costs too much"
    return None


def _principal_axes(
    X: np.ndarray,
    mean: np.ndarray,
    settings: PreparationSettings,
) -> tuple[np.ndarray, np.ndarray]:
    """Return variances, descending, and axes, (n_features, n_components)."""
    blocks = _row_blocks(X, settings)
    scatter = sum((X[rows] - mean).T @ (X[rows] - mean) for rows in blocks)
    variance, axes = np.linalg.eigh(scatter / len(X))
    # `eigh` sorts ascending; the noise is expected in the last components.
    seen = variance > settings.rank_tolerance * variance[-1]
    return variance[seen][::-1], axes[:, seen][:, ::-1]


def _tail_kurtosis(
    scores: Iterable[np.ndarray],
    variance: np.ndarray,
    n_samples: int,
) -> np.ndarray:
    """Return Mardia's kurtosis of the last 1, 2, ... components, (n_components,).

    It is the mean fourth power of the samples' length in those components, in units of
    their standard deviations.
    """
    fourth = np.zeros(len(variance))
    for block in scores:
        squares = np.cumsum(block[:, ::-1] ** 2 / variance[::-1], axis=1)
        fourth += (squares**2).sum(axis=0) / n_samples
    return fourth


def _is_isotropic(
    tail: np.ndarray,
    n_samples: int,
    settings: PreparationSettings,
) -> bool:
    """Return whether variances lie within the edges of the Marchenko-Pastur law."""
    level, ratio = tail.mean(), np.sqrt(len(tail) / n_samples)
    highest = settings.edge_slack * level * (1 + ratio) ** 2
    lowest = level * max(0, 1 - ratio) ** 2 / settings.edge_slack
    return bool(tail[0] < highest and tail[-1] > lowest)


def _is_gaussian(
    kurtosis: float,
    n_components: int,
    n_samples: int,
    settings: PreparationSettings,
) -> bool:
    """Return whether a kurtosis is a Gaussian's up to the error of its estimate."""
    expected = n_components * (n_components + 2)
    # Mardia (1970): the variance of the estimate from Gaussian samples.
    error = np.sqrt(8 * expected / n_samples)
    allowed = settings.standard_errors * error + settings.kurtosis_allowance * expected
    return bool(abs(kurtosis - expected) < allowed)


def _row_blocks(X: np.ndarray, settings: PreparationSettings) -> Iterator[slice]:
    """Return slices of rows that hold about `numbers_per_step` numbers."""
    return gen_batches(len(X), max(1, settings.numbers_per_step // X.shape[1]))
