"""Molecules of two moving parts: a rotor that turns about z above a stretched rest."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np


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
