"""A molecule of two moving parts: a rotor that turns about z above a rest that is stretched."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

import numpy as np
from scipy import special
from sklearn.utils import check_random_state

from manifactor._support.errors import extra
from manifactor._support.files import require_regular_file
from manifactor._support.parameters import require_choice, require_count, require_number


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
        0 for the rotor, which turns about z; 1 and more for the rest, which is stretched.
    """

    atoms: np.ndarray
    weights: np.ndarray
    parts: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.parts)
        shapes = (np.shape(self.atoms), np.shape(self.weights), np.shape(self.parts))
        sums = np.sum(self.atoms), np.sum(self.weights)
        if shapes != ((n, 3), (n,), (n,)) or not np.isfinite(sums).all():
            raise ValueError(
                "`atoms`, `weights` and `parts` must be finite and have shapes (n, 3), (n,) and "
                f"(n,); got {', '.join(map(str, shapes))}. Remove the atoms that are not finite."
            )
        n_rotor = self.rotor.sum()
        if not 0 < n_rotor < n:
            raise ValueError(
                "`parts` must hold both the rotor (0) and the rest (1 and more); "
                f"{n_rotor} of {n} atoms are the rotor."
            )

    @cached_property
    def rotor(self) -> np.ndarray:
        """Mask of the atoms that turn, (n_atoms,) bool."""
        return np.asarray(self.parts) == 0

    def moved(self, angle: float, stretch) -> np.ndarray:
        """Return the atoms, (n_atoms, 3), with the rotor turned and the rest stretched.

        Parameters
        ----------
        angle : float
            Angle of the rotor in radians.
        stretch : array-like of shape (2,)
            Displacement of the lowest atom of the rest along x and y, in Angstrom. The
            other atoms move by their `lift` times this.

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
        turned = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=1)
        moved = self.atoms + self.lift[:, None] * [*stretch, 0.0]
        # Only x and y: a turn about z keeps every height.
        moved[self.rotor, :2] = turned[self.rotor]
        return moved

    @cached_property
    def lift(self) -> np.ndarray:
        """Fraction of the stretch that moves each atom, (n_atoms,); 0 for the rotor."""
        return np.where(self.rotor, 0.0, self.lift_at(self.atoms[:, 2]))

    def lift_at(self, z) -> np.ndarray:
        """Return the share of the stretch at heights z: the squared depth, 1 at the lowest atom."""
        heights = self.atoms[~self.rotor, 2]
        height = np.ptp(heights) or 1.0  # a flat rest does not stretch
        return (np.maximum(heights.max() - z, 0) / height) ** 2

    def extremes(self, stretch) -> np.ndarray:
        """Return points, (2 n_atoms, 3), that bound all states with up to this stretch."""
        x, y, _ = self.atoms.T
        # An atom of the rotor moves on a circle about the axis, and has no lift.
        radius = self.rotor * np.hypot(x, y)
        reach = np.pad(self.lift[:, None] * np.asarray(stretch) + radius[:, None], ((0, 0), (0, 1)))
        centre = self.atoms * np.where(self.rotor[:, None], [0.0, 0.0, 1.0], 1.0)
        return np.concatenate([centre - reach, centre + reach])


# The directions in which the rest is stretched.
MOTIONS = {"x": (1.0, 0.0), "xy": (1.0, 1.0), "stretches": (1.0, 1.0), "rigid": (0.0, 0.0)}
# Those in which the rotor turns, too.
TURNING = ("x", "xy")


@dataclass(frozen=True)
class Motion:
    """The distribution of the motions."""

    motions: str
    correlation: float
    symmetry: int
    stretch: float
    view_correlation: float = 0.0  # of the x-stretch with the elevation of the view

    def __post_init__(self) -> None:
        require_choice("motions", self.motions, MOTIONS)
        require_number("correlation", self.correlation, low=-1, high=1)
        require_count("symmetry", self.symmetry, low=1, high=1000)
        require_number("stretch", self.stretch, low=0)
        require_number("view_correlation", self.view_correlation, low=-1, high=1)
        # Above rounding: .6 and .8 are allowed.
        if self.correlation**2 + self.view_correlation**2 > 1 + 1e-9:
            raise ValueError(
                "the squares of `correlation` and `view_correlation` must add up to at most 1; got "
                f"{self.correlation} and {self.view_correlation}. Lower one of them."
            )

    @property
    def reach(self) -> np.ndarray:
        """The largest stretch along x and y, (2,)."""
        return self.stretch * np.array(MOTIONS[self.motions])

    def draw(
        self, n_samples: int, rng: np.random.Generator, *, view: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return angles, (n_samples,), and stretches, (n_samples, 2).

        `view` holds standard normal scores, (n_samples,), that the x-stretch may depend on.
        """
        # A Gaussian copula: normal variables can be correlated at will, and their distribution
        # function makes each of them uniform again.
        turn, x, y = rng.standard_normal((3, n_samples))
        own = max(1 - self.correlation**2 - self.view_correlation**2, 0.0)
        x = self.correlation * turn + self.view_correlation * view + np.sqrt(own) * x
        turns = self.motions in TURNING
        angle = turns * 2 * np.pi / self.symmetry * special.ndtr(turn)
        uniform = special.ndtr(np.stack([x, y], axis=1))
        return angle, self.reach * (2 * uniform - 1)


def simulation_generator(random_state) -> np.random.Generator:
    """Return a generator from an int, a RandomState or None, the same for images and volumes."""
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng(seed)


# A model of an ion channel, built of helices and strands of beads, which channel.txt lists.

# Angstrom and degrees from one residue to the next, and the distances of backbone and side chain
# from the axis. An alpha helix has 3.6 residues a turn; a strand's side chains alternate.
SECONDARY_STRUCTURES = {"helix": (1.5, 100.0, 2.3, 5.2), "strand": (3.3, 180.0, 0.9, 3.6)}
PARTS = ("ROTOR", "REST", "BETA")  # the beta subunits belong to the rest


def channel() -> Molecule:
    """Return a four-fold ion channel of 114 x 114 x 176 A, similar to Kv1.2 with beta.

    It is built of helices and strands of beads; no measured structure is used. A
    quarter turn about z maps its set of atoms exactly onto itself. Its parts are the
    transmembrane rotor (0), the cytoplasmic part (1) and the beta subunits (2).

    Examples
    --------
    >>> molecule = channel()
    >>> molecule.atoms.shape, float(molecule.rotor.mean().round(2))
    ((5256, 3), 0.4)
    """
    pieces = []
    text = resources.files("manifactor.cryoem.simulate").joinpath("channel.txt").read_text("utf-8")
    # After three lines about the columns.
    for line in text.splitlines()[3:]:
        part, kind, *numbers = line.split()[:8]
        start, end = np.array(numbers, dtype=float).reshape(2, 3)
        pieces.append((PARTS.index(part), _segment(_cartesian(*start), _cartesian(*end), kind)))
    pieces += [(PARTS.index("BETA"), beads) for beads in _barrel()]
    subunit = np.concatenate([beads for _, beads in pieces])
    subunit -= [0.0, 0.0, subunit[:, 2].mean()]
    parts = np.repeat([part for part, _ in pieces], [len(beads) for _, beads in pieces])
    # The quarter turns about z exchange coordinates: in floating point, the cosine of 90 degrees is
    # not zero.
    swapped = subunit[:, [1, 0, 2]]
    turned = [swapped * [-1, 1, 1], subunit * [-1, -1, 1], swapped * [1, -1, 1]]
    atoms = np.concatenate([subunit, *turned])
    return Molecule(atoms, np.ones(len(atoms)), np.tile(parts, 4))


def _cartesian(radius: float, angle: float, height: float) -> np.ndarray:
    """Return x, y, z of a point that is given by its angle about z in degrees."""
    radians = np.radians(angle)
    return np.array([radius * np.cos(radians), radius * np.sin(radians), height])


def _segment(start: np.ndarray, end: np.ndarray, kind: str) -> np.ndarray:
    """Return the beads along a line: two a residue, for backbone and side chain."""
    rise, turn, *radii = SECONDARY_STRUCTURES[kind]
    length = np.linalg.norm(end - start)
    axis = (end - start) / length
    # A direction far from parallel to the axis keeps the frame well defined.
    other = [1.0, 0.0, 0.0] if abs(axis[2]) >= 0.8 else [0.0, 0.0, 1.0]
    first, second = _frame_around(axis, other)
    # The margin keeps a residue that rounding would put just beyond the end.
    along = np.arange(0.0, length + 1e-9, rise)[:, None]
    angle = np.radians(turn) * np.arange(len(along))[:, None]
    outward = np.cos(angle) * first + np.sin(angle) * second
    residues = start + along * axis
    return np.concatenate([residues + radius * outward for radius in radii])


def _barrel() -> Iterator[np.ndarray]:
    """Yield the beta/alpha barrel of a beta subunit: strands inside, helices outside."""
    centre = _cartesian(36.0, 12.0, -64.0)
    axis = np.array([0.35, 0.25, 1.0])
    axis = axis / np.linalg.norm(axis)
    first, second = _frame_around(axis, [0.0, 1.0, 0.0])

    def at(radius: float, angle: float, height: float) -> np.ndarray:
        outward = np.cos(angle) * first + np.sin(angle) * second
        return centre + radius * outward + height * axis

    # Eight strands and helices, as in aldo-keto reductases, the family of Kv beta.
    for angle in np.arange(8) * (2 * np.pi / 8):
        yield _segment(at(7.0, angle, -9.0), at(7.0, angle + 0.7, 9.0), "strand")
        # Downwards: the helix leads from the end of a strand to the next one's start.
        yield _segment(at(16.0, angle + 0.6, 13.0), at(16.0, angle + 0.2, -13.0), "helix")


def _frame_around(axis: np.ndarray, other) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors orthogonal to the axis and to each other."""
    first = np.cross(axis, other)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


# Molecules read from PDB and mmCIF files.


def read_molecule(path, *, rotor: Sequence[str], assembly: str | None = None) -> Molecule:
    """Read a molecule from a PDB or mmCIF file.

    The axis of the rotor must be parallel to z in the file; it is placed at the mean of
    x and y. If the rotor is the lower part, the molecule is turned upside down, by half
    a turn about x, which preserves its handedness. Weights are atomic numbers. Only the
    first model and the first of alternative conformations are read; water is removed.

    Parameters
    ----------
    path : str or Path
    rotor : sequence of str
        The atoms that turn, as chains, ``"B"``, and ranges of residues, ``"A:219-421"``, both ends
        included, with the authors' names and numbers. All other atoms are the rest.
    assembly : str or None
        The name of a biological assembly to build, such as "1", if the file holds one
        subunit only. The copies of a chain keep its name.

    Returns
    -------
    Molecule

    Examples
    --------
    >>> read_molecule(
    ...     "channel.cif", rotor=["A:219-421", "B"], assembly="1"
    ... )  # doctest: +SKIP
    """
    # Atoms refer to the structure, which must live as long as they do.
    structure = _structure(Path(path), assembly)
    sites = [site for model in list(structure)[:1] for site in model.all()]
    if not sites:
        raise ValueError(f"{path} must hold atoms; it holds none.")
    turns = _rotor_atoms(rotor, sites, path)
    atoms = np.array([site.atom.pos.tolist() for site in sites])
    atoms = atoms - atoms.mean(axis=0)
    z = atoms[:, 2]
    if z[turns].mean() < z[~turns].mean():
        # Half a turn about x; changing the sign of z alone would be a mirror image.
        atoms = atoms * [1.0, -1.0, -1.0]
    weights = np.array([float(site.atom.element.atomic_number) for site in sites])
    return Molecule(atoms, weights, np.where(turns, 0, 1))


def _rotor_atoms(rotor: Sequence[str], sites: list, path) -> np.ndarray:
    """Return the mask of the atoms that selections such as "B" or "A:219-421" name."""
    chains = np.array([site.chain.name for site in sites])
    residues = np.array([site.residue.seqid.num for site in sites])
    names = ", ".join(dict.fromkeys(chains.tolist()))
    turns = np.zeros(len(sites), dtype=bool)
    # A single selection is a sequence, too: of letters.
    for selection in [rotor] if isinstance(rotor, str) else rotor:
        # Residue numbers may be negative, as those of tags before the first residue.
        match = re.fullmatch(r"([^\s:]+)(?::(-?\d+)-(-?\d+))?", str(selection))
        if match is None:
            raise ValueError(
                f'`rotor` must hold selections such as "B" or "A:219-421"; got {selection!r}.'
            )
        chain, first, last = match.groups()
        selected = chains == chain
        if not selected.any():
            raise ValueError(f"`rotor` must name chains of the file, {names}; got {selection!r}.")
        if first is not None:
            numbers = residues[selected]
            if None in numbers:
                raise ValueError(
                    f"`rotor` selects residues by number; in {path}, chain {chain} has residues "
                    "without one. Number them, or name whole chains."
                )
            selected[selected] = (numbers >= int(first)) & (numbers <= int(last))
            if not selected.any():
                raise ValueError(
                    f"`rotor` must select some atoms; {selection!r} selects none. "
                    f"Chain {chain} has residues {numbers.min()} to {numbers.max()}."
                )
        turns |= selected
    if turns.all() or not turns.any():
        raise ValueError(
            "`rotor` must select some atoms, not all; it selects "
            f"{'every atom' if turns.any() else 'none'}. The chains are {names}."
        )
    return turns


def _structure(path: Path, assembly: str | None):
    """Return the structure in a file, or one of its assemblies, without water."""
    gemmi = extra("gemmi")
    require_regular_file(path, "`path`")
    try:
        # By content, since names do not tell: .ent, .pdb1, .cif.gz.
        structure = gemmi.read_structure(str(path), format=gemmi.CoorFormat.Detect)
    except (RuntimeError, ValueError, IndexError, OSError) as error:
        raise ValueError(
            f"{path} must be a PDB or mmCIF file; it cannot be read as one: {error}"
        ) from error
    known = [each.name for each in structure.assemblies]
    if assembly in known:
        # Copies keep the chain's name, so that a selection of the rotor names all of them.
        structure.transform_to_assembly(assembly, gemmi.HowToNameCopiedChain.Dup)
    elif assembly is not None:
        raise ValueError(
            "`assembly` must be one of "
            f"{known or 'those in the file, which has none'}; got {assembly!r}."
        )
    structure.remove_alternative_conformations()
    structure.remove_waters()
    return structure
