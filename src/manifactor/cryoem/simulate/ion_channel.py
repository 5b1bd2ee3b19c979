"""A model of an ion channel, built of helices and strands of beads."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manifactor.cryoem.simulate.molecule import Molecule, Part

Point = tuple[float, float, float]  # radius in A, angle in degrees, height in A
Beads = tuple[Part, np.ndarray]

# The segments of one subunit but those of the barrel: part, secondary structure, start and end as
# radius in A, angle in degrees and height in A, and what it models.
SUBUNIT_SEGMENTS = """\
ROTOR helix    9   0   8   18  42  46  S6, the inverted teepee around the pore
ROTOR helix   19  18  12   24  62  47  S5
ROTOR helix   20  24  47    8   8  35  pore helix
ROTOR strand   4   0  36    4   0  50  selectivity filter
ROTOR helix   14  12  52   22  60  55  turret
ROTOR helix   12 -12   8   33  30  11  S4-S5 linker, flat on the membrane
ROTOR helix   46  60  10   48  70  50  voltage sensor, S1 to S4
ROTOR helix   38  76   8   38  78  56  voltage sensor
ROTOR helix   31  58  12   34  48  50  voltage sensor
ROTOR helix   38  44  10   44  48  52  voltage sensor
ROTOR helix   41  52  54   29  40  86  paddle, outside of the membrane
ROTOR helix   24  52  84   34  66  55  paddle
REST  helix   54  50   5   30  40   3  linker below the sensor
REST  helix   26  36   2   20  30 -12  pillar, with the window beside it
REST  helix   12   0 -43   11  40 -14  T1
REST  helix   19 -18 -40   27  28 -31  T1
REST  helix   28  -6 -24   19  50 -18  T1
REST  helix   20  40 -42   25  62 -22  T1
REST  helix   13 -34 -24   22  12 -13  T1
REST  strand  18   6 -38   20   4 -16  T1
REST  strand  21  18 -38   22  16 -17  T1
REST  strand  17  58 -36   17  55 -15  T1
BETA  helix   14  60 -76   32  66 -52  outside of the barrel
BETA  helix   46  60 -70   52  36 -46  outside of the barrel
BETA  helix    9  20 -50   26  44 -42  outside of the barrel
BETA  helix   22  -8 -84   44  12 -86  outside of the barrel
"""


@dataclass(frozen=True)
class SecondaryStructure:
    """Geometry of the residues along the axis of a helix or strand."""

    rise: float  # A from one residue to the next
    turn: float  # degrees from one residue to the next
    backbone: float  # distance of the backbone from the axis in A
    side_chain: float  # distance of the side chain from the axis in A


# An alpha helix has 3.6 residues a turn; a strand's side chains alternate.
SECONDARY_STRUCTURES = {
    "helix": SecondaryStructure(1.5, 100.0, backbone=2.3, side_chain=5.2),
    "strand": SecondaryStructure(3.3, 180.0, backbone=0.9, side_chain=3.6),
}


@dataclass(frozen=True)
class Barrel:
    """The beta/alpha barrel of a beta subunit: strands inside, helices outside."""

    centre: Point = (36.0, 12.0, -64.0)
    axis: tuple[float, float, float] = (0.35, 0.25, 1.0)
    # Eight strands and helices, as in aldo-keto reductases, the family of Kv beta.
    n_repeats: int = 8
    strand_radius: float = 7.0
    strand_half_length: float = 9.0
    strand_twist: float = 0.7  # radians from the start of a strand to its end
    helix_radius: float = 16.0
    helix_half_length: float = 13.0
    helix_angles: tuple[float, float] = (0.6, 0.2)  # radians after the strand's start


def channel(*, barrel: Barrel = Barrel()) -> Molecule:
    """Return a four-fold ion channel of 114 x 114 x 176 A, similar to Kv1.2 with beta.

    It is built of helices and strands of beads; no measured structure is used. A
    quarter turn about z maps its set of atoms exactly onto itself. Its parts are the
    transmembrane rotor (0), the cytoplasmic part (1) and the beta subunits (2).

    Parameters
    ----------
    barrel : Barrel

    Returns
    -------
    Molecule

    Examples
    --------
    >>> molecule = channel()
    >>> molecule.atoms.shape, float(molecule.rotor.mean().round(2))
    ((5256, 3), 0.4)
    """
    pieces = [*_segments(), *_barrel(barrel)]
    subunit = np.concatenate([beads for _, beads in pieces])
    subunit -= [0.0, 0.0, subunit[:, 2].mean()]
    sizes = [len(beads) for _, beads in pieces]
    parts = np.repeat([part for part, _ in pieces], sizes)
    atoms = _four_copies(subunit)
    weights = np.ones(len(atoms))
    return Molecule(atoms, weights, np.tile(parts, 4))


def _segments() -> Iterator[Beads]:
    """Yield the beads of each line of `SUBUNIT_SEGMENTS`."""
    for line in SUBUNIT_SEGMENTS.splitlines():
        part, kind, *numbers = line.split()[:8]
        r1, angle1, z1, r2, angle2, z2 = map(float, numbers)
        start = _cartesian((r1, angle1, z1))
        end = _cartesian((r2, angle2, z2))
        yield Part[part], _segment(start, end, kind)


def _cartesian(point: Point) -> np.ndarray:
    radius, angle, height = point
    radians = np.radians(angle)
    x = radius * np.cos(radians)
    y = radius * np.sin(radians)
    return np.array([x, y, height])


def _segment(start: np.ndarray, end: np.ndarray, kind: str) -> np.ndarray:
    """Return the beads along a line: two a residue, for backbone and side chain."""
    structure = SECONDARY_STRUCTURES[kind]
    length = np.linalg.norm(end - start)
    axis = (end - start) / length
    # A direction far from parallel to the axis keeps the frame well defined.
    is_upright = abs(axis[2]) >= 0.8
    other = [1.0, 0.0, 0.0] if is_upright else [0.0, 0.0, 1.0]
    first, second = _frame_around(axis, other)
    # The margin keeps a residue that rounding would put just beyond the end.
    along = np.arange(0.0, length + 1e-9, structure.rise)[:, None]
    residue = np.arange(len(along))[:, None]
    angle = np.radians(structure.turn) * residue
    outward = np.cos(angle) * first + np.sin(angle) * second
    residues = start + along * axis
    backbone = residues + structure.backbone * outward
    side_chains = residues + structure.side_chain * outward
    return np.concatenate([backbone, side_chains])


def _barrel(barrel: Barrel) -> Iterator[Beads]:
    """Yield the strands inside and the helices outside, which run back."""
    centre = _cartesian(barrel.centre)
    axis = np.array(barrel.axis)
    axis = axis / np.linalg.norm(axis)
    first, second = _frame_around(axis, [0.0, 1.0, 0.0])

    def at(radius: float, angle: float, height: float) -> np.ndarray:
        outward = np.cos(angle) * first + np.sin(angle) * second
        return centre + radius * outward + height * axis

    to_start, to_end = barrel.helix_angles
    twist, half = barrel.strand_twist, barrel.strand_half_length
    helix_half = barrel.helix_half_length
    step = 2 * np.pi / barrel.n_repeats
    for angle in np.arange(barrel.n_repeats) * step:
        start = at(barrel.strand_radius, angle, -half)
        end = at(barrel.strand_radius, angle + twist, half)
        yield Part.BETA, _segment(start, end, "strand")
        # Downwards: the helix leads from the end of a strand to the next one's start.
        start = at(barrel.helix_radius, angle + to_start, helix_half)
        end = at(barrel.helix_radius, angle + to_end, -helix_half)
        yield Part.BETA, _segment(start, end, "helix")


def _frame_around(axis: np.ndarray, other) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors orthogonal to the axis and to each other."""
    first = np.cross(axis, other)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _four_copies(subunit: np.ndarray) -> np.ndarray:
    """Return the subunit and its quarter turns about z."""
    # Exchanged coordinates: in floating point, the cosine of 90 degrees is not zero.
    swapped = subunit[:, [1, 0, 2]]
    quarter_turn = swapped * [-1, 1, 1]
    half_turn = subunit * [-1, -1, 1]
    three_quarters = swapped * [1, -1, 1]
    return np.concatenate([subunit, quarter_turn, half_turn, three_quarters])
