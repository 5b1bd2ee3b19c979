"""Main directions of samples: what a sum is looked for in."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class DirectionSettings:
    """Settings of `main_directions`."""

    # Directions that are kept at most. The curve of a moving object in an image winds through some
    # 30; a distance in more is mostly noise.
    most: int = 40
    # Least variance of a direction, relative to the first. A factor thirty times smaller than
    # another has a thousandth of its variance.
    thin: float = 1e-4
    # Samples that directions are read from.
    samples: int = 3000
    # Columns up to which all directions are computed.
    few_columns: int = 600
    # A sample is far off beyond this number of deviations: among 10^8 Gaussian ones none is.
    far: float = 6.0


@dataclass(frozen=True)
class Directions:
    """The mean of samples and their principal axes."""

    mean: np.ndarray  # (n_features,)
    axes: np.ndarray  # (n_features, q): orthonormal columns, the one of the largest variance first

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Return samples in their main directions, (n, q)."""
        return (samples - self.mean) @ self.axes


def main_directions(
    samples: np.ndarray,
    *,
    settings: DirectionSettings = DirectionSettings(),
    rng: np.random.Generator,
) -> Directions:
    """Return the main directions of samples, (n, n_features)."""
    some = samples[thinned(len(samples), settings.samples)]
    # The mean of equal numbers is off by rounding, which those of 1e20 would make the main
    # direction.
    constant = (some == some[0]).all(axis=0)
    mean = np.where(constant, some[0], some.mean(axis=0))
    variance, axes = _principal_axes(some - mean, settings, rng)
    kept = variance > settings.thin * variance[0]
    return Directions(mean, axes[:, : settings.most][:, kept[: settings.most]])


def far_off(
    samples: np.ndarray, *, settings: DirectionSettings = DirectionSettings()
) -> np.ndarray:
    """Return which samples, (n, n_features), lie far from all others in a column.

    Measured by the median and the median absolute deviation, which no outlier moves.
    """
    off = np.abs(samples - np.median(samples, axis=0))
    # 1.4826 median absolute deviations are a Gaussian's standard deviation.
    deviation = 1.4826 * np.median(off, axis=0)
    return (off > settings.far * deviation).any(axis=1)


def _principal_axes(
    centred: np.ndarray, settings: DirectionSettings, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Variances, descending, and axes as columns."""
    if centred.shape[1] <= settings.few_columns:
        variance, axes = np.linalg.eigh(centred.T @ centred)
        return variance[::-1], axes[:, ::-1]
    count = min(settings.most, len(centred))
    seed = int(rng.integers(2**31))
    _, strength, axes = randomized_svd(centred, count, random_state=seed)
    return strength**2, axes.T
