"""Molecules of two moving parts: a rotor that turns about z above a rest that is stretched sideways."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra

ROTOR, CYTOPLASMIC, BETA = 0, 1, 2

Point = tuple[float, float, float]  # radius in A, angle in degrees, height in A

# one subunit of the channel: part, kind of segment, start and end
SUBUNIT: list[tuple[int, str, Point, Point]] = [
    (
        ROTOR,
        "helix",
        (9, 0, 8),
        (18, 42, 46),
    ),  # S6, the inverted teepee around the pore
    (ROTOR, "helix", (19, 18, 12), (24, 62, 47)),  # S5
    (ROTOR, "helix", (20, 24, 47), (8, 8, 35)),  # pore helix
    (ROTOR, "strand", (4, 0, 36), (4, 0, 50)),  # selectivity filter
    (ROTOR, "helix", (14, 12, 52), (22, 60, 55)),  # turret
    (ROTOR, "helix", (12, -12, 8), (33, 30, 11)),  # S4-S5 linker, flat on the membrane
    (ROTOR, "helix", (46, 60, 10), (48, 70, 50)),  # S1 to S4, the voltage sensor
    (ROTOR, "helix", (38, 76, 8), (38, 78, 56)),
    (ROTOR, "helix", (31, 58, 12), (34, 48, 50)),
    (ROTOR, "helix", (38, 44, 10), (44, 48, 52)),
    (
        ROTOR,
        "helix",
        (41, 52, 54),
        (29, 40, 86),
    ),  # the paddle, standing out of the membrane
    (ROTOR, "helix", (24, 52, 84), (34, 66, 55)),
    (CYTOPLASMIC, "helix", (54, 50, 5), (30, 40, 3)),  # linker below the sensor
    (
        CYTOPLASMIC,
        "helix",
        (26, 36, 2),
        (20, 30, -12),
    ),  # pillar, with the window beside it
    (CYTOPLASMIC, "helix", (12, 0, -43), (11, 40, -14)),  # T1
    (CYTOPLASMIC, "helix", (19, -18, -40), (27, 28, -31)),
    (CYTOPLASMIC, "helix", (28, -6, -24), (19, 50, -18)),
    (CYTOPLASMIC, "helix", (20, 40, -42), (25, 62, -22)),
    (CYTOPLASMIC, "helix", (13, -34, -24), (22, 12, -13)),
    (CYTOPLASMIC, "strand", (18, 6, -38), (20, 4, -16)),
    (CYTOPLASMIC, "strand", (21, 18, -38), (22, 16, -17)),
    (CYTOPLASMIC, "strand", (17, 58, -36), (17, 55, -15)),
    (BETA, "helix", (14, 60, -76), (32, 66, -52)),  # what the barrel does not hold
    (BETA, "helix", (46, 60, -70), (52, 36, -46)),
    (BETA, "helix", (9, 20, -50), (26, 44, -42)),
    (BETA, "helix", (22, -8, -84), (44, 12, -86)),
]
BARREL_CENTRE, BARREL_AXIS = (36.0, 12.0, -64.0), np.array([0.35, 0.25, 1.0])

# rise in A and turn in degrees from one residue to the next, distances of backbone and side chain from the axis in A
KINDS = {"helix": (1.5, 100.0, (2.3, 5.2)), "strand": (3.3, 180.0, (0.9, 3.6))}


@dataclass(frozen=True)
class Molecule:
    """Atoms in a rotor and a rest.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, 3)
        x, y, z in Angstrom, the rotor's axis at x = y = 0.
    weights : ndarray of shape (n_atoms,)
        How strongly each atom scatters.
    parts : ndarray of int of shape (n_atoms,)
        0 for the rotor, which turns about z; 1 and more for the rest, which is stretched.
    """

    atoms: np.ndarray
    weights: np.ndarray
    parts: np.ndarray

    def __post_init__(self) -> None:
        shapes = np.shape(self.atoms), np.shape(self.weights), np.shape(self.parts)
        n = len(self.parts)
        if shapes != ((n, 3), (n,), (n,)):
            raise ValueError(
                "`atoms`, `weights` and `parts` must have shapes (n, 3), (n,) and (n,); "
                f"got {', '.join(map(str, shapes))}."
            )
        if not (np.isfinite(self.atoms).all() and np.isfinite(self.weights).all()):
            raise ValueError(
                "`atoms` and `weights` must be finite; remove the atoms that are not."
            )
        if not 0 < self.rotor.sum() < n:
            raise ValueError(
                f"`parts` must hold both the rotor (0) and the rest (1 and more); "
                f"{self.rotor.sum()} of {n} atoms are the rotor."
            )

    @cached_property
    def rotor(self) -> np.ndarray:
        """Which atoms turn, (n_atoms,) bool."""
        return np.asarray(self.parts) == ROTOR

    def moved(self, angle: float, stretch) -> np.ndarray:
        """The atoms with the rotor turned and the rest stretched.

        Parameters
        ----------
        angle : float
            Of the rotor, in radians.
        stretch : array-like of shape (2,)
            How far the lowest atom of the rest moves along x and y, in Angstrom; the others by :func:`lift` of it.

        Returns
        -------
        ndarray of shape (n_atoms, 3)

        Examples
        --------
        >>> molecule = Molecule(np.array([[1.0, 0, 9], [0, 0, 5], [0, 0, 0]]), np.ones(3), np.array([0, 1, 1]))
        >>> molecule.moved(np.pi / 2, [10.0, 0.0]).round(6)
        array([[ 0.,  1.,  9.],
               [ 0.,  0.,  5.],
               [10.,  0.,  0.]])
        """
        x, y = self.atoms[:, 0], self.atoms[:, 1]
        moved = self.atoms + self.lift[:, None] * [stretch[0], stretch[1], 0.0]
        turned = np.stack(
            [
                np.cos(angle) * x - np.sin(angle) * y,
                np.sin(angle) * x + np.cos(angle) * y,
            ],
            axis=1,
        )
        moved[:, :2] = np.where(self.rotor[:, None], turned, moved[:, :2])
        return moved

    @cached_property
    def lift(self) -> np.ndarray:
        """The share of the stretch that moves each atom, (n_atoms,); the rotor has none."""
        return np.where(self.rotor, 0.0, self.lift_at(self.atoms[:, 2]))

    def lift_at(self, z) -> np.ndarray:
        """The share of the stretch at heights z: the square of the way from the top of the rest to its lowest atom."""
        heights = self.atoms[~self.rotor, 2]
        height = np.ptp(heights) or 1.0  # a flat rest does not stretch
        return (np.maximum(heights.max() - z, 0) / height) ** 2

    def extremes(self, stretch) -> np.ndarray:
        """Points that reach as far along x, y and z as any state with up to this stretch, (2 n_atoms, 3)."""
        radius = np.hypot(self.atoms[:, 0], self.atoms[:, 1])
        reach = np.where(
            self.rotor[:, None],
            radius[:, None],
            self.lift[:, None] * np.asarray(stretch),
        )
        centre = self.atoms * np.where(self.rotor[:, None], [0.0, 0.0, 1.0], 1.0)
        reach = np.c_[reach, np.zeros(len(reach))]
        return np.concatenate([centre - reach, centre + reach])


def channel() -> Molecule:
    """A four-fold ion channel of 114 x 114 x 176 A, much like Kv1.2 with its beta subunits.

    It is built of helices and strands of beads; no measured structure goes into it. A quarter turn about z maps its
    set of atoms exactly onto itself. Its parts are the transmembrane rotor (0), the cytoplasmic part (1) and beta (2).

    Examples
    --------
    >>> molecule = channel()
    >>> molecule.atoms.shape, float(molecule.rotor.mean().round(2))
    ((5256, 3), 0.4)
    """
    pieces = [
        (part, _segment(_cartesian(start), _cartesian(end), kind))
        for part, kind, start, end in SUBUNIT
    ]
    pieces += [
        (BETA, beads) for beads in _barrel(_cartesian(BARREL_CENTRE), BARREL_AXIS)
    ]
    subunit = np.concatenate([beads for _, beads in pieces])
    subunit -= [0.0, 0.0, subunit[:, 2].mean()]
    atoms = _four_copies(subunit)
    parts = np.concatenate([np.full(len(beads), part) for part, beads in pieces])
    return Molecule(atoms, np.ones(len(atoms)), np.tile(parts, 4))


def _cartesian(point: Point) -> np.ndarray:
    radius, angle, height = point
    return np.array(
        [radius * np.cos(np.radians(angle)), radius * np.sin(np.radians(angle)), height]
    )


def _segment(start: np.ndarray, end: np.ndarray, kind: str) -> np.ndarray:
    """Residues along a line: a bead for the backbone and one for the side chain of each."""
    rise, turn, distances = KINDS[kind]
    length = np.linalg.norm(end - start)
    axis = (end - start) / length
    first, second = _frame_around(
        axis, [0.0, 0.0, 1.0] if abs(axis[2]) < 0.8 else [1.0, 0.0, 0.0]
    )
    along = np.arange(0.0, length + 1e-9, rise)[:, None]
    angle = np.radians(turn) * np.arange(len(along))[:, None]
    outward = np.cos(angle) * first + np.sin(angle) * second
    return np.concatenate(
        [start + along * axis + distance * outward for distance in distances]
    )


def _barrel(centre: np.ndarray, axis: np.ndarray) -> Iterator[np.ndarray]:
    """A beta/alpha barrel: eight strands inside, eight helices outside that run back."""
    axis = axis / np.linalg.norm(axis)
    first, second = _frame_around(axis, [0.0, 1.0, 0.0])

    def at(radius: float, angle: float, height: float) -> np.ndarray:
        return (
            centre
            + radius * (np.cos(angle) * first + np.sin(angle) * second)
            + height * axis
        )

    for angle in np.arange(8) * np.pi / 4:
        yield _segment(at(7, angle, -9), at(7, angle + 0.7, 9), "strand")
        yield _segment(at(16, angle + 0.6, 13), at(16, angle + 0.2, -13), "helix")


def _frame_around(axis: np.ndarray, other) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors at right angles to the axis and each other."""
    first = np.cross(axis, other)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _four_copies(subunit: np.ndarray) -> np.ndarray:
    """The subunit and its quarter turns, by exchange of coordinates: a cosine of 90 degrees is not exactly zero."""
    swapped = subunit[:, [1, 0, 2]]
    return np.concatenate(
        [subunit, swapped * [-1, 1, 1], subunit * [-1, -1, 1], swapped * [1, -1, 1]]
    )


def read_molecule(
    path, *, rotor: Sequence[str], assembly: str | None = None
) -> Molecule:
    """The molecule in a PDB or mmCIF file.

    The axis of the rotor must run along z in the file; it is laid through the mean of x and y. Where the rotor is the
    lower part, the molecule is turned upside down (by half a turn about x, which keeps its hand). Weights are atomic
    numbers. Of several models the first is read, of alternative conformations the first, and no water.

    Parameters
    ----------
    path : str or Path
    rotor : sequence of str
        The atoms that turn, as chains, ``"B"``, and ranges of residues, ``"A:219-421"``, both ends included, with the
        names and numbers of the authors. All other atoms are the rest.
    assembly : str or None
        The name of a biological assembly to build, such as "1", where the file holds one subunit only. The copies of
        a chain keep its name.

    Returns
    -------
    Molecule

    Examples
    --------
    >>> molecule = read_molecule("channel.cif", rotor=["A:219-421", "B"], assembly="1")  # doctest: +SKIP
    """
    chains, numbers, atoms, weights = _read_atoms(Path(path), assembly)
    turns = np.zeros(len(atoms), dtype=bool)
    for selection in [rotor] if isinstance(rotor, str) else rotor:
        turns |= _selected(selection, chains, numbers)
    if not 0 < turns.sum() < len(turns):
        what = (
            "some atoms; it selects none"
            if not turns.any()
            else "a part of the molecule; it selects every atom"
        )
        raise ValueError(
            f"`rotor` must select {what}. The chains are {_names(chains)}."
        )
    atoms = atoms - atoms.mean(axis=0)
    if atoms[turns, 2].mean() < atoms[~turns, 2].mean():
        atoms = atoms * [1.0, -1.0, -1.0]
    return Molecule(atoms, weights, np.where(turns, ROTOR, 1))


def _read_atoms(
    path: Path, assembly: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Name of the chain, number of the residue, position and atomic number of each atom."""
    structure = _read_structure(path)
    if assembly is not None:
        _build_assembly(structure, assembly)
    structure.remove_alternative_conformations()
    structure.remove_waters()
    found = [
        (c.name, r.seqid.num, a.pos.tolist(), a.element.atomic_number)
        for c, r, a in _each_atom(structure)
    ]
    if not found:
        raise ValueError(f"{path} must hold atoms; it holds none.")
    chains, numbers, atoms, weights = zip(*found, strict=True)
    return (
        np.array(chains),
        np.array(numbers),
        np.array(atoms),
        np.array(weights, dtype=float),
    )


def _each_atom(structure) -> Iterator[tuple]:
    """Chain, residue and atom, for each atom of the first model."""
    for model in list(structure)[:1]:
        for site in model.all():
            yield site.chain, site.residue, site.atom


def _read_structure(path: Path):
    gemmi = extra("gemmi")
    if not path.is_file():
        raise ValueError(
            f"`path` must be a file; {path} {'is a folder' if path.is_dir() else 'does not exist'}."
        )
    try:
        return gemmi.read_structure(str(path), format=gemmi.CoorFormat.Detect)
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} must be a PDB or mmCIF file; it cannot be read as one: {error}"
        ) from error


def _build_assembly(structure, name: str) -> None:
    known = [assembly.name for assembly in structure.assemblies]
    if name not in known:
        raise ValueError(
            f"`assembly` must be one of {known or 'those in the file, which has none'}; got {name!r}."
        )
    structure.transform_to_assembly(name, extra("gemmi").HowToNameCopiedChain.Dup)


def _selected(selection: str, chains: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Which atoms a selection such as "B" or "A:219-421" names."""
    match = (
        re.fullmatch(r"([^\s:]+)(?::(-?\d+)-(-?\d+))?", selection)
        if isinstance(selection, str)
        else None
    )
    if match is None:
        raise ValueError(
            f'`rotor` must hold selections such as "B" or "A:219-421"; got {selection!r}.'
        )
    chain, first, last = match.groups()
    if chain not in chains:
        raise ValueError(
            f"`rotor` must name chains of the file, {_names(chains)}; got {selection!r}."
        )
    inside = chains == chain
    if first is not None:
        span = numbers[inside].min(), numbers[inside].max()
        inside = inside & (numbers >= int(first)) & (numbers <= int(last))
        if not inside.any():
            raise ValueError(
                f"`rotor` must select some atoms; {selection!r} selects none. Chain {chain} has residues "
                f"{span[0]} to {span[1]}."
            )
    return inside


def _names(chains: np.ndarray) -> str:
    return ", ".join(dict.fromkeys(chains.tolist()))
