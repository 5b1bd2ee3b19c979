"""Samples made of a series of volumes, and projections of a volume.

Volumes are downsampled and masked; their principal components are weighted by signal to noise.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft, ndimage
from sklearn.utils.extmath import randomized_svd

from manifactor.cryoem.components import MAX_COMPONENTS, component_weights, spikes
from manifactor.cryoem.files.stacks import ImageSource

# Voxels along each side to which volumes are downsampled.
MAX_SIDE = 32


@dataclass(frozen=True)
class VolumeComponents:
    """Samples made of volumes."""

    samples: np.ndarray  # (n, n_components): weighted principal components, in units of the noise
    # (n_components,): variance of the signal over that of the noise, for each component
    signal_to_noise: np.ndarray
    weights: np.ndarray  # (n_components,)
    variance: float  # share of the variance that the components hold
    files: tuple[str, ...]  # names of the volumes, in the order of the samples

    def __str__(self) -> str:
        text = (
            f"{len(self.samples)} volumes, {len(self.weights)} principal components "
            f"with {self.variance:.1%} of the variance"
        )
        # Less than half: most of how the volumes differ is not in the samples.
        if self.variance > 0.5:
            return text
        return f"{text}; the rest is noise or detail, so the result may be doubtful"


def volume_components(source: ImageSource) -> VolumeComponents:
    """Compute weighted principal components of volumes inside of the inscribed ball.

    What the components leave is taken as the noise.
    """
    values = _centred_values(source)
    n, p = values.shape
    total = float((values.astype(float) ** 2).sum()) / n
    if not total:
        raise ValueError(f"the volumes must differ; all {n} are the same.")
    # Fixed seed: a decomposition has no randomness that a user should notice.
    rank = min(MAX_COMPONENTS, n - 1, p)
    left, strength, _ = randomized_svd(values, rank, n_iter=7, random_state=0)
    variance = strength.astype(float) ** 2 / n
    # At least some noise, for volumes that the components reproduce exactly.
    noise = max(total - variance.sum(), 1e-9 * total) / p
    ratio = spikes(variance / noise, p / n)
    # At least one component, so that there are samples even where noise hides them all.
    kept = max(1, int((ratio > 0).sum()))
    weights = component_weights(ratio[:kept]) if ratio[0] > 0 else np.ones(1)
    samples = (left * strength)[:, :kept] / np.sqrt(noise) * weights
    return VolumeComponents(
        samples=samples.astype(float),
        signal_to_noise=ratio[:kept],
        weights=weights,
        variance=float(variance[:kept].sum() / total),
        files=tuple(path.name for path in source.files),
    )


def _centred_values(source: ImageSource) -> np.ndarray:
    """Return the voxels inside of the ball, (n, n_voxels), less their mean."""
    side = min(MAX_SIDE, min(source.shape) // 2 * 2)
    ball = ball_of(side)
    values = np.empty((len(source), int(ball.sum())), dtype=np.float32)
    for rows, volumes in source.blocks():
        values[rows] = [downsampled(volume, side)[ball] for volume in volumes]
    values -= values.mean(axis=0)
    return values


def ball_of(side: int) -> np.ndarray:
    """Return which voxels of a cube lie in its ball."""
    squared = (np.arange(side) - side // 2) ** 2
    distance = squared[:, None, None] + squared[:, None] + squared
    return distance <= (side / 2) ** 2


def downsampled(volume: np.ndarray, side: int) -> np.ndarray:
    """Return the volume's low frequencies on a coarser grid."""
    if volume.shape == (side, side, side):
        return volume
    # Cutting the transform is an ideal low-pass, so nothing is aliased.
    transformed = fft.fftshift(fft.fftn(volume))
    half = side // 2
    middle = tuple(slice(n // 2 - half, n // 2 + half) for n in volume.shape)
    coarse = fft.ifftn(fft.ifftshift(transformed[middle])).real
    # The inverse transform divides by the number of voxels, which is smaller now.
    return coarse * (side**3 / volume.size)


def projection(volume: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Return the image of a cube, indexed by z, y, x, from a direction, (side, side).

    Shapes: volume (side, side, side), rotation (3, 3).
    """
    # Axes of arrays come in reverse: z, y, x.
    back = rotation.T[::-1, ::-1]
    centre = np.full(3, len(volume) // 2)
    turned = ndimage.affine_transform(volume, back, offset=centre - back @ centre, order=1)
    return turned.sum(axis=0)
