"""Changes of images that are no motion: errors of poses, and contrast."""

import numpy as np

from manifactor.cryoem.all_views.slices import VolumeGrid


def rigid_motions(volume: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return how a volume changes if it is shifted along or rotated about each axis.

    Shapes: volume (grid.size,) -> (6, grid.size).
    """
    cube = volume.reshape(3 * (grid.side,))
    frequency = np.stack(np.meshgrid(*3 * (grid.axis,), indexing="ij"))
    # A shift multiplies by a phase; a rotation moves along circles about the axis.
    shifts = 1j * frequency * cube
    slopes = np.stack(np.gradient(cube))
    rotations = np.cross(frequency, slopes, axis=0)
    return np.concatenate([shifts, rotations]).reshape(6, -1) * grid.inside


def contrasts(volume: np.ndarray, grid: VolumeGrid, *, degree: int = 3) -> np.ndarray:
    """Return how a volume changes with contrast, resolution and defocus.

    Shapes: volume (grid.size,) -> (degree + 1, grid.size).
    """
    squared = sum(axis**2 for axis in np.meshgrid(*3 * (grid.axis,), indexing="ij"))
    relative = (squared / grid.cut**2).ravel()
    return np.stack([volume * relative**power for power in range(degree + 1)])


def without_nuisances(volumes: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return the mean volume, and the others less what changes the mean as a whole.

    Shapes: volumes (rank + 1, grid.size).
    """
    mean, others = volumes[0], volumes[1:]
    changes = np.concatenate([rigid_motions(mean, grid), contrasts(mean, grid)])
    changes /= np.linalg.norm(changes, axis=1, keepdims=True)
    # Volumes are real, so the products of their transforms are, too.
    products = (changes @ changes.conj().T).real
    along = (changes @ others.conj().T).real
    shares = np.linalg.lstsq(products, along, rcond=None)[0]
    return np.concatenate([volumes[:1], others - shares.T @ changes])
