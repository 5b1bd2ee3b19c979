"""Signal to noise of principal components, and the weights that follow from it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class WeightingSettings:
    """Settings of `component_weights` and of the components that are weighted."""

    max_components: int = 60

    # 1 would be Wiener's filter. Under it weak components still add a dimension of noise to the
    # samples, which the neighbour graph then takes for geometry.
    exponent: int = 3


def component_weights(
    signal_to_noise: np.ndarray, *, settings: WeightingSettings = WeightingSettings()
) -> np.ndarray:
    """Return the weights of principal components that have unit noise.

    >>> component_weights(np.array([3.0, 1.0])).tolist()
    [0.421875, 0.125]
    """
    wiener = signal_to_noise / (1 + signal_to_noise)
    return wiener**settings.exponent


def spikes(variance: np.ndarray, gamma: float) -> np.ndarray:
    """Return the signal to noise behind the variances of principal components.

    It is 0 for a variance below the edge of the noise.

    >>> signal, gamma = 4.0, 0.5
    >>> spikes(np.array([(1 + signal) * (1 + gamma / signal), 1.0]), gamma).tolist()
    [4.0, 0.0]
    """
    # Noise alone has sample variances up to (1 + sqrt(gamma))^2 (Marchenko-Pastur). A signal s
    # beyond it shows up as v = (1 + s)(1 + gamma / s), solved here for s.
    edge = (1 + np.sqrt(gamma)) ** 2
    middle = variance - 1 - gamma
    root = np.sqrt(np.maximum(middle**2 - 4 * gamma, 0))
    return np.where(variance > edge, (middle + root) / 2, 0.0)
