"""A series of volumes to samples: downsampled, masked, principal components."""

from dataclasses import dataclass

import numpy as np
from scipy import fft
from sklearn.utils.extmath import randomized_svd

from manifactor.cryoem.stacks import ImageSource

SIDE = 32  # voxels to which volumes are downsampled
MOST_COMPONENTS = 50
KEPT = 0.999  # share of the variance


@dataclass(frozen=True)
class VolumeComponents:
    """Samples made of volumes.

    Attributes
    ----------
    samples : ndarray of shape (n, n_components)
        Principal components.
    variance : ndarray of shape (n_components,)
        Their share of the variance.
    """

    samples: np.ndarray
    variance: np.ndarray

    def __str__(self) -> str:
        return (
            f"{len(self.samples)} volumes, {len(self.variance)} principal components with {self.variance.sum():.1%} of "
            "the variance"
        )


def volume_components(source: ImageSource) -> VolumeComponents:
    """Principal components of volumes inside the ball that fills the box."""
    side = min(source.shape)
    target = min(SIDE, side - side % 2)
    ball = _ball(target)
    values = np.empty((len(source), int(ball.sum())), dtype=np.float32)
    for rows, volumes in source.blocks():
        values[rows] = np.stack([_downsampled(volume, target)[ball] for volume in volumes])
    values -= values.mean(axis=0)
    total = float((values**2).sum())
    if not total:
        raise ValueError(f"the volumes must differ; all {len(source)} are the same.")
    count = min(MOST_COMPONENTS, *values.shape)
    left, strength, _ = randomized_svd(values, count, n_iter=7, random_state=0)
    share = strength.astype(float) ** 2 / total
    kept = min(count, int(np.searchsorted(np.cumsum(share), KEPT)) + 1)
    return VolumeComponents((left * strength)[:, :kept].astype(float), share[:kept])


def _ball(side: int) -> np.ndarray:
    axis = (np.arange(side) - side // 2) ** 2
    return axis[:, None, None] + axis[:, None] + axis <= (side / 2) ** 2


def _downsampled(volume: np.ndarray, side: int) -> np.ndarray:
    """The volume's low frequencies on a coarser grid."""
    if volume.shape == (side, side, side):
        return volume
    transformed = fft.fftshift(fft.fftn(volume))
    middle = tuple(slice(n // 2 - side // 2, n // 2 + side // 2) for n in volume.shape)
    return fft.ifftn(fft.ifftshift(transformed[middle])).real * (side**3 / volume.size)
