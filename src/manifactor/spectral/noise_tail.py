"""The number of principal components that are noise, in few columns and in many."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from manifactor.spectral.noise_edge import (
    NoiseEdgeSettings,
    even_edge,
    left_in_columns,
    uneven_edge,
)


@dataclass(frozen=True)
class NoiseSettings:
    """Settings of `noise_components` and of `first_noise_component`."""

    # Fewer components cannot be shown to have equal variances.
    shortest_tail: int = 3

    # The edges of the Marchenko-Pastur law are sharp only for infinitely many columns.
    edge_slack: float = 1.05

    # The kurtosis of noise may differ from a Gaussian's by so many standard errors, and by a
    # fraction of it.
    standard_errors: float = 3.0
    kurtosis_allowance: float = 0.01

    # Samples that are compared with each other where there are many columns. They have 45,000 inner
    # products, whose mean square is then known to 1 %.
    compared: int = 300

    # In fewer dimensions, samples of noise have large cosines by chance.
    fewest_dimensions: int = 50

    # A sample and another one are similar if their cosine is more than so many standard deviations
    # of the cosines of noise, which are normal: among 300 others there is one by chance once in
    # 6,000 times.
    similar_above: float = 5.0

    # Share of the samples that may have a similar one: a few may be nearly copies.
    similar_share: float = 0.05

    # Cosines this near 1 are those of copies, which may have the same noise.
    copy_tolerance: float = 1e-9

    edge: NoiseEdgeSettings = field(default_factory=NoiseEdgeSettings)


def noise_components(
    scores: Iterable[np.ndarray],
    variance: np.ndarray,
    n_samples: int,
    *,
    settings: NoiseSettings = NoiseSettings(),
) -> int:
    """Return how many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and together they must
    have the kurtosis of a Gaussian (Mardia, 1970): a tail of equal variances that is not Gaussian
    is structure, such as the coordinates of a sphere.

    Shapes: scores (n_rows, n_components), variance (n_components,).
    """
    kurtosis = _tail_kurtosis(scores, variance, n_samples)
    longest = 0
    for m in range(settings.shortest_tail, len(variance) + 1):
        even = _is_isotropic(variance[-m:], n_samples, settings)
        if even and _is_gaussian(kurtosis[m - 1], m, n_samples, settings):
            longest = m
    return longest


def _tail_kurtosis(
    scores: Iterable[np.ndarray], variance: np.ndarray, n_samples: int
) -> np.ndarray:
    """Return Mardia's kurtosis of the last 1, 2, ... components, (n_components,).

    It is the mean fourth power of the samples' length in those components, in units of their
    standard deviations.
    """
    fourth = np.zeros(len(variance))
    for block in scores:
        squares = np.cumsum(block[:, ::-1] ** 2 / variance[::-1], axis=1)
        fourth += (squares**2).sum(axis=0) / n_samples
    return fourth


def _is_isotropic(tail: np.ndarray, n_samples: int, settings: NoiseSettings) -> bool:
    """Return whether variances lie within the edges of the Marchenko-Pastur law."""
    level, ratio = tail.mean(), np.sqrt(len(tail) / n_samples)
    highest = settings.edge_slack * level * (1 + ratio) ** 2
    lowest = level * max(0, 1 - ratio) ** 2 / settings.edge_slack
    return bool(tail[0] < highest and tail[-1] > lowest)


def _is_gaussian(
    kurtosis: float, n_components: int, n_samples: int, settings: NoiseSettings
) -> bool:
    """Return whether a kurtosis is a Gaussian's up to the error of its estimate."""
    expected, error = gaussian_kurtosis(n_components, n_samples)
    allowed = settings.standard_errors * error + settings.kurtosis_allowance * expected
    return bool(abs(kurtosis - expected) < allowed)


def gaussian_kurtosis(n_components: int, n_samples: int) -> tuple[float, float]:
    """Return the kurtosis of a Gaussian (Mardia, 1970), and its standard error.

    The error is that of the estimate from so many samples.
    """
    of_many = n_components * (n_components + 2)
    # Lengths are measured by the samples' own covariance, which shortens the longest.
    expected = of_many * (n_samples - 1) / (n_samples + 1)
    return expected, np.sqrt(8 * of_many / n_samples)


def first_noise_component(
    samples: np.ndarray,
    axes: np.ndarray,
    *,
    variance: np.ndarray,
    rest: np.ndarray,
    n_samples: int,
    settings: NoiseSettings = NoiseSettings(),
) -> int | None:
    """Return the index of the first component that is noise; None if none of them is.

    In many columns the last components are not computed. The components from k on are noise if
    component k lies below the edge of the Marchenko-Pastur law, and if the samples are uncorrelated
    with each other in all of them: on a manifold, samples near each other have similar values of
    every component. The edge is that of even noise whose number of dimensions is measured, since
    pixels may be constant or correlated, or that of noise of unequal size in columns, whichever is
    larger.

    Shapes: samples (n_compared, n_features), axes (n_features, n_components), variance
    (n_components,), rest (n_components + 1,).
    """
    tails = _tails(samples, axes, settings)
    for first, (left, share, cosines) in enumerate(tails):
        n_dimensions = _effective_dimensions(cosines)
        if n_dimensions < settings.fewest_dimensions:
            continue
        even = even_edge(rest[first], n_dimensions, n_samples)
        uneven = uneven_edge(
            _with_sum(left, rest[first]),
            share,
            n_samples=n_samples,
            n_measured=len(samples),
            settings=settings.edge,
        )
        below = variance[first] < settings.edge_slack * max(even, uneven)
        if below and _are_uncorrelated(cosines, n_dimensions, settings):
            return first
    return None


def _tails(
    samples: np.ndarray, axes: np.ndarray, settings: NoiseSettings
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield what lies beyond the first 0, 1, 2, ... components.

    The mean squares of columns, the share of each column that lies there, and the cosines between
    samples.
    """
    scores = samples @ axes
    inner = samples @ samples.T
    share = np.ones(len(axes))
    columns = left_in_columns(samples, scores, axes)
    for left, axis, score in zip(columns, axes.T, scores.T, strict=True):
        yield left, share, _cosines_of_others(inner, settings)
        inner -= np.outer(score, score)
        share = share - axis**2


def _with_sum(columns: np.ndarray, total: float) -> np.ndarray:
    """Return variances of columns in some samples, scaled to the variance in all."""
    return columns * (total / max(columns.sum(), np.finfo(float).tiny))


def _effective_dimensions(cosines: np.ndarray) -> float:
    """Return the number of dimensions in which random vectors have such cosines.

    The mean square of their cosines is the inverse of the number of dimensions.
    """
    n_pairs = len(cosines) * (len(cosines) - 1)
    square = np.vdot(cosines, cosines) / n_pairs
    return 1 / square if square > 0 else 0.0


def _are_uncorrelated(cosines: np.ndarray, n_dimensions: float, settings: NoiseSettings) -> bool:
    """Return whether hardly any sample is similar to another."""
    limit = settings.similar_above / np.sqrt(n_dimensions)
    similar = (np.abs(cosines) > limit).any(axis=1)
    return bool(similar.mean() < settings.similar_share)


def _cosines_of_others(inner: np.ndarray, settings: NoiseSettings) -> np.ndarray:
    """Return the cosines between samples; 0 for a sample with itself or a copy."""
    length = np.sqrt(np.maximum(np.diag(inner), np.finfo(float).tiny))
    cosines = inner / np.outer(length, length)
    is_copy = cosines > 1 - settings.copy_tolerance
    np.fill_diagonal(is_copy, True)
    return np.where(is_copy, 0.0, cosines)
