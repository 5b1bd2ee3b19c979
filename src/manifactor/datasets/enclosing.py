"""The ball around all states of a molecule, and the images that hold it."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from manifactor.datasets.molecule import Molecule
from manifactor.datasets.motions import Motion


def _distances_from_axis(molecule: Molecule, motion: Motion) -> np.ndarray:
    """Return the largest distance of each atom from the z axis in any state."""
    x, y, _ = np.abs(molecule.atoms.T)
    along_x, along_y = motion.reach
    lift = molecule.lift
    return np.hypot(x + lift * along_x, y + lift * along_y)


def centred(molecule: Molecule, motion: Motion) -> Molecule:
    """Return the molecule moved along z to the centre of the ball around its states."""
    z = molecule.atoms[:, 2]
    from_axis = _distances_from_axis(molecule, motion)

    def radius(centre: float) -> float:
        return float(np.hypot(from_axis, z - centre).max())

    # Convex, as a maximum of convex functions, so that there is one minimum.
    centre = minimize_scalar(radius, bounds=(z.min(), z.max()), method="bounded").x
    return replace(molecule, atoms=molecule.atoms - [0.0, 0.0, centre])


def require_room(
    molecule: Molecule, motion: Motion, size: int, pixel_size: float, *, shift: float
) -> None:
    """Refuse images that some state would leave in some view."""
    from_axis = _distances_from_axis(molecule, motion)
    radius = np.hypot(from_axis, molecule.atoms[:, 2]).max()
    # The centre is pixel size // 2, with one pixel less beyond it than before it.
    enough = 2 * (int(np.ceil(radius / pixel_size + shift)) + 1)
    if size < enough:
        raise ValueError(
            f"`size` must be at least {enough} pixels of {pixel_size:g} A for every "
            f"state to stay inside in every view; got {size}. Enlarge `size` or "
            "`pixel_size`, or lower `stretch`."
        )
