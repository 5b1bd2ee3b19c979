"""A series of volumes to samples: downsampled, masked, principal components weighted by signal to noise."""

from dataclasses import dataclass

import numpy as np
from scipy import fft
from sklearn.utils.extmath import randomized_svd

from manifactor.cryoem.images import EMPHASIS, MOST_COMPONENTS, spikes
from manifactor.cryoem.stacks import ImageSource

SIDE = 32  # voxels to which volumes are downsampled


@dataclass(frozen=True)
class VolumeComponents:
    """Samples made of volumes.

    Attributes
    ----------
    samples : ndarray of shape (n, n_components)
        Weighted principal components, in units of the noise.
    signal_to_noise : ndarray of shape (n_components,)
        Variance of the signal over that of the noise, of each component.
    weights : ndarray of shape (n_components,)
    variance : float
        Share of the variance that the components hold.
    files : tuple of str
        Names of the volumes, in the order of the samples.
    """

    samples: np.ndarray
    signal_to_noise: np.ndarray
    weights: np.ndarray
    variance: float
    files: tuple[str, ...]

    def __str__(self) -> str:
        noisy = (
            ""
            if self.variance > 0.5
            else "; the rest is noise or detail, so the result may be doubtful"
        )
        return (
            f"{len(self.samples)} volumes, {len(self.weights)} principal components with {self.variance:.1%} of the "
            f"variance{noisy}"
        )


def volume_components(source: ImageSource) -> VolumeComponents:
    """Principal components of volumes inside the ball that fills the box; what they leave is taken as the noise."""
    target = min(SIDE, min(source.shape) // 2 * 2)
    ball = _ball(target)
    values = np.empty((len(source), int(ball.sum())), dtype=np.float32)
    for rows, volumes in source.blocks():
        values[rows] = np.stack(
            [_downsampled(volume, target)[ball] for volume in volumes]
        )
    values -= values.mean(axis=0)
    n, p = values.shape
    total = float((values.astype(float) ** 2).sum()) / n
    if not total:
        raise ValueError(f"the volumes must differ; all {n} are the same.")
    left, strength, _ = randomized_svd(
        values, min(MOST_COMPONENTS, n - 1, p), n_iter=7, random_state=0
    )
    variance = strength.astype(float) ** 2 / n
    noise = max(total - variance.sum(), 1e-9 * total) / p
    ratio = spikes(variance / noise, p / n)
    kept = max(1, int((ratio > 0).sum()))
    weights = (
        (ratio[:kept] / (1 + ratio[:kept])) ** EMPHASIS if ratio[0] > 0 else np.ones(1)
    )
    samples = (left * strength)[:, :kept] / np.sqrt(noise) * weights
    names = tuple(path.name for path in source.files)
    return VolumeComponents(
        samples.astype(float),
        ratio[:kept],
        weights,
        float(variance[:kept].sum() / total),
        names,
    )


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
