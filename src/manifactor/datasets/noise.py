"""White noise on simulated images and volumes, relative to their signal."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.extmath import randomized_svd

from manifactor._support.parameters import require_count, require_number
from manifactor._support.threads import one_blas_thread


@dataclass(frozen=True)
class NoiseSettings:
    """Settings of `add_noise`."""

    # The principal component whose variance is the signal: two components belong to the rotor's
    # circle, one or two to the stretch.
    component: int = 4
    # Images from which the signal is measured; more would change it little.
    n_calibration: int = 2500
    # Images that get their noise at a time, which bounds the memory.
    batch_size: int = 250


def add_noise(
    images: np.ndarray,
    signal_to_noise: float | None,
    *,
    signal: np.ndarray,
    rng: np.random.Generator,
    settings: NoiseSettings = NoiseSettings(),
) -> float:
    """Add white noise to the images in place and return its standard deviation.

    Shapes: images (n_samples, ...), signal (n_samples, ...).
    """
    noise = noise_level(signal, signal_to_noise, settings=settings)
    if noise == 0:
        return noise
    for batch in gen_batches(len(images), settings.batch_size):
        shape = images[batch].shape
        white = rng.standard_normal(shape, dtype=np.float32)
        images[batch] += np.float32(noise) * white
    return noise


def noise_level(
    signal: np.ndarray, signal_to_noise: float | None, *, settings: NoiseSettings = NoiseSettings()
) -> float:
    """Return the standard deviation of white noise at a signal-to-noise ratio.

    The parameters are those of `add_noise`.
    """
    if signal_to_noise is None or np.isinf(signal_to_noise):
        return 0.0
    variance = _component_variance(signal, settings)
    return float(np.sqrt(variance / signal_to_noise))


def require_samples(
    n_samples: int,
    blur: float,
    signal_to_noise: float | None,
    settings: NoiseSettings = NoiseSettings(),
) -> None:
    """Refuse numbers that cannot be, and too few samples to measure the signal."""
    require_count("n_samples", n_samples, low=1, high=10**9)
    require_number("blur", blur, low=0)
    if signal_to_noise is None or signal_to_noise == np.inf:
        return
    require_number("signal_to_noise", signal_to_noise, above=0)
    component = settings.component
    if n_samples <= component:
        raise ValueError(
            f"`n_samples` must be at least {component + 1} for noise by the "
            f"{component}th principal component; got {n_samples}. Add samples, or take "
            "`signal_to_noise=inf`."
        )


def _component_variance(images: np.ndarray, settings: NoiseSettings) -> float:
    """Return the variance of the images along their principal component."""
    X = images[: settings.n_calibration]
    X = X.reshape(len(X), -1)
    X = X - X.mean(axis=0)
    with one_blas_thread():  # the same bits on any number of cores
        values = randomized_svd(X, settings.component, random_state=0)[1]
    return float(values[settings.component - 1]) ** 2 / len(X)
