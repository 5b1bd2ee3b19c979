"""The motions of the molecule: the rotor's angle and the stretch of the rest."""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from scipy import special
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_choice, require_count, require_number

# The directions in which the rest is stretched.
MOTIONS = {
    "x": np.array([1.0, 0.0]),
    "xy": np.array([1.0, 1.0]),
    "stretches": np.array([1.0, 1.0]),
    "rigid": np.array([0.0, 0.0]),
}
# Those in which the rotor turns, too.
TURNING = ("x", "xy")


@dataclass(frozen=True)
class Motion:
    """The distribution of the motions."""

    motions: str
    correlation: float
    symmetry: int
    stretch: float
    view_correlation: float = 0.0

    def __post_init__(self) -> None:
        require_choice("motions", self.motions, MOTIONS)
        require_number("correlation", self.correlation, low=-1, high=1)
        require_count("symmetry", self.symmetry, low=1, high=1000)
        require_number("stretch", self.stretch, low=0)
        require_number("view_correlation", self.view_correlation, low=-1, high=1)
        # Above rounding: .6 and .8 are allowed.
        if self.correlation**2 + self.view_correlation**2 > 1 + 1e-9:
            raise ValueError(
                "the squares of `correlation` and `view_correlation` must add up to at "
                f"most 1; got {self.correlation} and {self.view_correlation}. Lower "
                "one of them."
            )

    @property
    def _own_variance(self) -> float:
        """Share of the x-stretch's normal variable that depends on nothing else."""
        return max(1 - self.correlation**2 - self.view_correlation**2, 0.0)

    @property
    def reach(self) -> np.ndarray:
        """The largest stretch along x and y, (2,)."""
        return self.stretch * MOTIONS[self.motions]

    def draw(
        self, n_samples: int, rng: np.random.Generator, *, view: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return angles (n_samples,) and stretches (n_samples, 2).

        Shapes: view (n_samples,).
        """
        # A Gaussian copula: normal variables can be correlated at will, and their distribution
        # function makes each of them uniform again.
        turn, x, y = rng.standard_normal((3, n_samples))
        own = np.sqrt(self._own_variance) * x
        x = self.correlation * turn + self.view_correlation * view + own
        turns = self.motions in TURNING
        angle = turns * 2 * np.pi / self.symmetry * special.ndtr(turn)
        xy = np.stack([x, y], axis=1)
        uniform = special.ndtr(xy)
        return angle, self.reach * (2 * uniform - 1)


def simulation_generator(random_state) -> np.random.Generator:
    """Return a generator from an int, a RandomState or None."""
    # Images and volumes use the same one, so that one seed gives the same motions.
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng(seed)


# Molecules of two moving parts: a rotor that turns about z above a stretched rest.


class Part(IntEnum):
    """The parts of a molecule; every part but the rotor is stretched."""

    ROTOR = 0
    REST = 1
    BETA = 2  # the beta subunits of the channel, below the rest


@dataclass(frozen=True)
class Molecule:
    """Atoms in a rotor and a rest.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, 3)
        x, y, z in Angstrom, with the rotor's axis at x = y = 0.
    weights : ndarray of shape (n_atoms,)
        The scattering strength of each atom.
    parts : ndarray of int of shape (n_atoms,)
        0 for the rotor, which turns about z; 1 and more for the rest, which is
        stretched.
    """

    atoms: np.ndarray
    weights: np.ndarray
    parts: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.parts)
        shapes = (np.shape(self.atoms), np.shape(self.weights), np.shape(self.parts))
        if shapes != ((n, 3), (n,), (n,)):
            raise ValueError(
                "`atoms`, `weights` and `parts` must have shapes (n, 3), (n,) and "
                f"(n,); got {', '.join(map(str, shapes))}."
            )
        finite_atoms = np.isfinite(self.atoms).all()
        finite_weights = np.isfinite(self.weights).all()
        if not (finite_atoms and finite_weights):
            raise ValueError("`atoms` and `weights` must be finite; remove the atoms that are not.")
        n_rotor = self.rotor.sum()
        if not 0 < n_rotor < n:
            raise ValueError(
                "`parts` must hold both the rotor (0) and the rest (1 and more); "
                f"{n_rotor} of {n} atoms are the rotor."
            )

    @cached_property
    def rotor(self) -> np.ndarray:
        """Mask of the atoms that turn, (n_atoms,) bool."""
        return np.asarray(self.parts) == Part.ROTOR

    def moved(self, angle: float, stretch) -> np.ndarray:
        """Return the atoms with the rotor turned and the rest stretched.

        Parameters
        ----------
        angle : float
            Angle of the rotor in radians.
        stretch : array-like of shape (2,)
            Displacement of the lowest atom of the rest along x and y, in Angstrom. The
            other atoms move by their :func:`lift` times this.

        Returns
        -------
        ndarray of shape (n_atoms, 3)

        Examples
        --------
        >>> atoms = np.array([[1.0, 0, 9], [0, 0, 5], [0, 0, 0]])
        >>> molecule = Molecule(atoms, np.ones(3), np.array([0, 1, 1]))
        >>> molecule.moved(np.pi / 2, [10.0, 0.0]).round(6)
        array([[ 0.,  1.,  9.],
               [ 0.,  0.,  5.],
               [10.,  0.,  0.]])
        """
        x, y, _ = self.atoms.T
        cosine, sine = np.cos(angle), np.sin(angle)
        turned_x = cosine * x - sine * y
        turned_y = sine * x + cosine * y
        turned = np.stack([turned_x, turned_y], axis=1)
        shift = [stretch[0], stretch[1], 0.0]
        moved = self.atoms + self.lift[:, None] * shift
        # Only x and y: a turn about z keeps every height.
        moved[self.rotor, :2] = turned[self.rotor]
        return moved

    @cached_property
    def lift(self) -> np.ndarray:
        """Fraction of the stretch that moves each atom, (n_atoms,); 0 for the rotor."""
        heights = self.atoms[:, 2]
        return np.where(self.rotor, 0.0, self.lift_at(heights))

    def lift_at(self, z) -> np.ndarray:
        """Return the fraction of the stretch at heights z.

        It is the squared depth below the top of the rest, 1 at the lowest atom.
        """
        heights = self.atoms[~self.rotor, 2]
        height = np.ptp(heights) or 1.0  # a flat rest does not stretch
        return (np.maximum(heights.max() - z, 0) / height) ** 2

    def extremes(self, stretch) -> np.ndarray:
        """Return points that bound every state with up to this stretch.

        Parameters
        ----------
        stretch : array-like of shape (2,)
            Largest displacement along x and y, in Angstrom.

        Returns
        -------
        ndarray of shape (2 n_atoms, 3)
            Their extent along x, y and z is that of all states together.
        """
        is_rotor = self.rotor[:, None]
        x, y, _ = self.atoms.T
        radius = np.hypot(x, y)
        displacement = self.lift[:, None] * np.asarray(stretch)
        reach = np.where(is_rotor, radius[:, None], displacement)
        reach = np.c_[reach, np.zeros(len(reach))]
        # An atom of the rotor moves on a circle about the axis.
        centre = self.atoms * np.where(is_rotor, [0.0, 0.0, 1.0], 1.0)
        return np.concatenate([centre - reach, centre + reach])


# The ball around all states of a molecule, and the images that hold it.


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
