"""The largest variance of a principal component of noise, from its size in columns."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar


@dataclass(frozen=True)
class NoiseEdgeSettings:
    """Settings of `uneven_edge`."""

    # So many columns of larger variance may be as many factors, each of its own size. Their
    # variance counts as that of the next column.
    n_spared: int = 20

    # Error of the place of the minimum, between 0 and 1; that of the minimum is of the order of its
    # square.
    tolerance: float = 1e-4


def even_edge(total: float, n_dimensions: float, n_samples: int) -> float:
    """Return the edge of the Marchenko-Pastur law, from the variance in all dimensions.

    >>> print(even_edge(800.0, 400, 1600))
    4.5
    """
    return float(total / n_dimensions * (1 + np.sqrt(n_dimensions / n_samples)) ** 2)


def uneven_edge(
    left: np.ndarray,
    share: np.ndarray,
    *,
    n_samples: int,
    n_measured: int,
    settings: NoiseEdgeSettings = NoiseEdgeSettings(),
) -> float:
    """Return the largest variance of a component of noise, uneven between columns.

    The principal components of independent noise have variances below the edge of the generalised
    Marchenko-Pastur law (Silverstein and Choi, 1995), the minimum of ``1/c + sum(variance / (1 -
    variance * c)) / n_samples`` over c. For equal variances this is the edge of the
    Marchenko-Pastur law.

    Leading components hold a part of the noise of each column, the leverage of the column. With the
    other part, its share, the column counts in the sum, and its variance is what is left divided by
    its share.

    >>> even, uneven = np.full(400, 2.0), np.repeat([1.0, 3.0], 200)
    >>> for left in (even, uneven):
    ...     edge = uneven_edge(left, np.ones(400), n_samples=1600, n_measured=1600)
    ...     print(f"{edge:.3f}")
    4.500
    5.657

    Shapes: left (n_features,), share (n_features,).
    """
    share = np.maximum(share, np.finfo(float).eps)
    variance = _without_sampling_error(left / share, share, n_measured)
    n_larger = min(settings.n_spared, len(variance) - 1)
    largest = np.sort(variance)[-1 - n_larger]
    if largest <= 0:
        return 0.0
    relative = np.minimum(1.0, variance / largest)
    weight = share * relative / n_samples
    return float(largest * _least(relative, weight, settings.tolerance))


def _least(relative: np.ndarray, weight: np.ndarray, tolerance: float) -> float:
    """Return the minimum of ``1/c + sum(weight / (1 - relative * c))``, 0 < c < 1."""

    def edge(c: float) -> float:
        return 1 / c + float((weight / (1 - relative * c)).sum())

    options = {"xatol": tolerance}
    found = minimize_scalar(edge, bounds=(0, 1), method="bounded", options=options)
    return float(found.fun)


def _without_sampling_error(variance: np.ndarray, share: np.ndarray, n_measured: int) -> np.ndarray:
    """Return measured variances, drawn towards their mean.

    They then vary as much as the true ones: those of Gaussian noise are measured with a relative
    error of ``sqrt(2 / n_measured)``.
    """
    mean = np.average(variance, weights=share)
    spread = np.average((variance - mean) ** 2, weights=share)
    error = 2 / n_measured * np.average(variance**2, weights=share)
    true = np.sqrt(max(0.0, 1 - error / spread)) if spread > 0 else 0.0
    return mean + true * (variance - mean)


def left_in_columns(
    samples: np.ndarray, scores: np.ndarray, axes: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield mean squares of columns beyond the first 0, 1, 2, ... components.

    Shapes: samples (n_samples, n_features), scores (n_samples, n_components), axes (n_features,
    n_components).
    """
    left = (samples**2).mean(axis=0)
    along = samples.T @ scores / len(samples)
    squares = scores.T @ scores / len(samples)
    for k, axis in enumerate(axes.T):
        yield np.maximum(0.0, left)
        # What is left of the samples, times the scores of the component.
        inner = along[:, k] - axes[:, :k] @ squares[:k, k]
        left = left - 2 * axis * inner + axis**2 * squares[k, k]
