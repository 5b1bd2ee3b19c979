"""Principal components of noise whose size differs between columns or samples."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import svds
from scipy.stats import kurtosis, skew

from manifactor.spectral.noise_tail import gaussian_kurtosis
from manifactor.spectral.principal import PrincipalAxes, centred_rows


@dataclass(frozen=True)
class UnevenNoiseSettings:
    """Settings of `components_beside_noise`."""

    # Random signs spread the variance of a component over all. On noise whose size varies 15-fold
    # between columns, and on Poisson noise, the first component has up to 1.2 times the variance of
    # any one that is left; signal has twice as much.
    random_sign_ratio: float = 1.3

    # Fewer components may be as many factors, each of its own size.
    fewest_components: int = 20

    # Samples whose signs are drawn: more hardly change a ratio of two variances.
    samples: int = 3000

    # Limits of the shape of noise, in which a Gaussian is 0. The kurtosis of an interval is -1.2,
    # those of a Laplace and an exponential distribution 3 and 6, and the skewness of the latter 2.
    # With 1,000 samples, the standard errors are .15 and .08.
    largest_skewness: float = 0.5
    least_kurtosis: float = -0.6
    largest_kurtosis: float = 1.5

    # The kurtosis of all components together may lie so far below that of a Gaussian, in standard
    # errors.
    standard_errors: float = 3.0


def components_beside_noise(
    X: np.ndarray, found: PrincipalAxes, *, settings: UnevenNoiseSettings = UnevenNoiseSettings()
) -> np.ndarray:
    """Return the principal components that are more than noise, as indices.

    Random signs turn structure into noise and leave noise as it is, whatever its size in each
    entry. The components from k on are noise if the variance of component k is hardly larger than
    that of any component of the same samples, less the components before k, with random signs. A
    factor that shows in one column only looks the same. It is told from noise by its distribution,
    which is no Gaussian.

    Shapes: X (n_samples, n_features).
    """
    rng = np.random.default_rng(0)
    samples = centred_rows(X, found.mean, settings.samples, rng)
    scores = samples @ found.axes
    everything = np.arange(len(found.variance))
    first = _first_noise_component(samples, scores, found.axes, settings)
    if first is None or not _fills_its_directions(scores[:, first:], settings):
        return everything
    is_signal = everything < first
    is_signal[first:] = ~_have_shape_of_noise(scores[:, first:], settings)
    return np.flatnonzero(is_signal)


def _first_noise_component(
    samples: np.ndarray, scores: np.ndarray, axes: np.ndarray, settings: UnevenNoiseSettings
) -> int | None:
    """First component that has no more variance than random signs leave."""
    last = axes.shape[1] - settings.fewest_components

    def is_noise(first: int) -> bool:
        return _is_of_random_sign(samples, scores, axes, first, settings)

    # Signal comes first: look at components 0, 1, 3, 7, ... and then in between.
    signal, first = -1, 0
    while first <= last and not is_noise(first):
        signal, first = first, max(first + 1, min(2 * first + 1, last))
    if first > last:
        return None
    while first - signal > 1:
        middle = (signal + first) // 2
        signal, first = (signal, middle) if is_noise(middle) else (middle, first)
    return first


def _is_of_random_sign(
    samples: np.ndarray,
    scores: np.ndarray,
    axes: np.ndarray,
    first: int,
    settings: UnevenNoiseSettings,
) -> bool:
    """Whether a component has hardly more variance than random signs leave."""
    rng = np.random.default_rng(0)
    rest = samples - scores[:, :first] @ axes[:, :first].T
    signs = rng.choice([-1.0, 1.0], size=rest.shape)
    start = rng.normal(size=min(rest.shape))
    # Both from these samples, of which fewer make the largest variance larger.
    own, largest = (
        svds(one, k=1, v0=start, tol=1e-3, return_singular_vectors=False)[0]
        for one in (rest, rest * signs)
    )
    return bool(own**2 < settings.random_sign_ratio * largest**2)


def _fills_its_directions(scores: np.ndarray, settings: UnevenNoiseSettings) -> bool:
    """Whether all components together have a Gaussian's kurtosis, or a larger one.

    The coordinates of a sphere have a smaller one. Noise whose size differs between samples has a
    larger one.
    """
    n_samples, n_components = scores.shape
    lengths = (scores**2 / (scores**2).mean(axis=0)).sum(axis=1)
    gaussian, error = gaussian_kurtosis(n_components, n_samples)
    return bool((lengths**2).mean() > gaussian - settings.standard_errors * error)


def _have_shape_of_noise(scores: np.ndarray, settings: UnevenNoiseSettings) -> np.ndarray:
    """Which components are Gaussian but for the size of the noise in each sample."""
    squares = scores**2 / (scores**2).mean(axis=0)
    others = squares.sum(axis=1, keepdims=True) - squares
    even = scores / np.sqrt(np.maximum(others, np.finfo(float).tiny))
    shape = kurtosis(even)
    return (
        (np.abs(skew(even)) < settings.largest_skewness)
        & (shape > settings.least_kurtosis)
        & (shape < settings.largest_kurtosis)
    )
