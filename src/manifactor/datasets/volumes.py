"""Volumes of a molecule whose rotor turns while the rest is stretched."""

import numpy as np

from manifactor._support.parameters import require_choice
from manifactor.datasets.ion_channel import channel
from manifactor.datasets.molecule import Molecule
from manifactor.datasets.motions import TURNING, Motion, simulation_generator
from manifactor.datasets.noise import NoiseSettings, add_noise, require_samples
from manifactor.datasets.projection import (
    Frame,
    checked_frame,
    filtered,
    gaussian_transfer,
    grid_cells,
    require_inside,
    splat,
)


def simulate_volumes(
    n_samples: int,
    *,
    motions: str = "x",
    signal_to_noise: float | None = None,
    correlation: float = 0.0,
    molecule: Molecule | None = None,
    symmetry: int = 4,
    stretch: float = 40.0,
    size: int = 32,
    pixel_size: float = 7.0,
    blur: float = 7.0,
    settings: NoiseSettings = NoiseSettings(),
    random_state=None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate volumes of a moving molecule, with the motions behind them.

    The parameters are those of :func:`simulate_particles`, which draws the same angles
    and stretches from the same `random_state`; `settings` are a `NoiseSettings`.

    Returns
    -------
    volumes : ndarray of shape (n_samples, size, size, size), float32
        In the order z, y, x, as in MRC files.
    angle : ndarray of shape (n_samples,)
    stretch : ndarray of shape (n_samples, 2)

    Examples
    --------
    >>> volumes, angle, stretch = simulate_volumes(3, random_state=0)
    >>> volumes.shape, angle.shape, stretch.shape
    ((3, 32, 32, 32), (3,), (3, 2))
    """
    require_choice("motions", motions, TURNING)
    motion = Motion(motions, correlation, symmetry, stretch)
    frame = checked_frame(Frame(size, pixel_size, tilt=0.0))
    require_samples(n_samples, blur, signal_to_noise, settings)
    molecule = channel() if molecule is None else molecule
    origin = _origin(molecule, motion.reach, frame)
    rng = simulation_generator(random_state)
    angle, stretches = motion.draw(n_samples, rng)
    shape = (size, size, size)
    envelope = gaussian_transfer(shape, blur / pixel_size)
    volumes = np.empty((n_samples, *shape), dtype=np.float32)
    # One volume at a time: the transforms of all of them would not fit.
    for i in range(n_samples):
        atoms = molecule.moved(angle[i], stretches[i])
        cells = grid_cells(atoms, origin, pixel_size)
        volume = splat(cells, molecule.weights, shape).astype(np.float32)
        volumes[i] = filtered(volume, envelope, axes=(0, 1, 2))
    add_noise(volumes, signal_to_noise, signal=volumes, rng=rng, settings=settings)
    return volumes, angle, stretches


def _origin(molecule: Molecule, reach: np.ndarray, frame: Frame) -> np.ndarray:
    """Return the cell (z, y, x) of the point 0 with every state inside of the grid."""
    points = molecule.extremes(reach)
    # Along z the states together are centred; along x and y the rotor's axis is, so that a turn
    # moves nothing out.
    heights = points[:, 2]
    middle = (heights.min() + heights.max()) / 2
    size = frame.size
    z = (size - 1) / 2 - middle / frame.pixel_size
    origin = np.array([z, size / 2, size / 2])
    require_inside(grid_cells(points, origin, frame.pixel_size), frame)
    return origin
