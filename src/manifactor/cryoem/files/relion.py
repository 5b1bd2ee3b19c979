"""Particles in RELION's STAR files: versions 3.0, 3.1 and 5."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from manifactor.cryoem.files.particles import Particles, finite, positive, whole
from manifactor.cryoem.files.star import (
    find_loops,
    particle_block,
    read_star,
    with_columns,
    without_columns,
)

# Our own columns start with this; those of an earlier run are replaced.
STAR_PREFIX = "mfFactor"

STAR_COLUMNS = {
    "defocus_u": "rlnDefocusU",
    "defocus_v": "rlnDefocusV",
    "defocus_angle": "rlnDefocusAngle",
    "phase_shift": "rlnPhaseShift",
    "voltage": "rlnVoltage",
    "spherical_aberration": "rlnSphericalAberration",
    "amplitude_contrast": "rlnAmplitudeContrast",
    "optics group": "rlnOpticsGroup",
    "half set": "rlnRandomSubset",
    "class": "rlnClassNumber",
    "flipped": "rlnCtfDataArePhaseFlipped",
    "premultiplied": "rlnCtfDataAreCtfPremultiplied",
}


# Columns of numbers of groups, or of yes and no.
WHOLE = ("optics group", "half set", "class", "flipped", "premultiplied")

IN_ANGSTROM = ("rlnOriginXAngst", "rlnOriginYAngst")
IN_PIXELS = ("rlnOriginX", "rlnOriginY")
DIRECTION = ("rlnAngleRot", "rlnAngleTilt")
# RELION 3.0 states the detector's pixel in micrometres, and the magnification.
DETECTOR = ("rlnDetectorPixelSize", "rlnMagnification")

Columns = Mapping[str, np.ndarray]


def read_relion(path: Path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a STAR file, with the properties of their optics groups."""
    blocks = read_star(path)
    table = blocks[particle_block(blocks, path)]
    count = len(table)
    if not count:
        raise ValueError(f"{path} holds no particles.")
    _require_own_columns(table, path)
    own = {name: table[name].to_numpy() for name in table.columns}
    columns = _with_optics(own, blocks.get("optics"), path)
    if pixel_size is None:
        pixel_sizes = _pixel_sizes(columns, path)
    else:
        pixel_sizes = np.full(count, float(pixel_size))
    slices = stacks = None
    if "rlnImageName" in columns:
        slices, stacks = _image_parts(columns["rlnImageName"], path)
    shift, unscaled = _shifts(columns, pixel_sizes, path)
    return Particles(
        path,
        np.arange(count),
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=_angles(columns, path),
        shift=shift,
        unscaled_shift=unscaled,
        microscope=_microscope(columns, path),
    )


def _require_own_columns(table, path: Path) -> None:
    """Refuse a table that would have no column left without ours."""
    if all(name.startswith(STAR_PREFIX) for name in table.columns):
        raise ValueError(
            f"{path} holds no columns but those of an earlier run ({STAR_PREFIX}). "
            "Give the original file."
        )


def _with_optics(columns: Columns, optics, path: Path) -> Columns:
    """Return the columns of the particles, completed by those of their optics groups.

    Where both have a column, that of the particles counts.
    """
    if optics is None or "rlnOpticsGroup" not in columns:
        return columns
    # A block of one optics group may be written as plain pairs instead of a loop.
    if not hasattr(optics, "columns"):
        optics = {name: [value] for name, value in optics.items()}
    groups = {name: np.asarray(optics[name]) for name in optics}
    rows = _optics_rows(groups, columns, path)
    shared = {name: values[rows] for name, values in groups.items() if name not in columns}
    return {**columns, **shared}


def _optics_rows(groups: Columns, columns: Columns, path: Path) -> np.ndarray:
    """Return the row of the optics table that each particle belongs to."""
    if "rlnOpticsGroup" not in groups:
        raise ValueError(
            f"the data_optics of {path} must number its groups; it has no column "
            "_rlnOpticsGroup. Add it, or export the particles again."
        )
    listed = whole(groups["rlnOpticsGroup"], "rlnOpticsGroup of data_optics", path)
    wanted = whole(columns["rlnOpticsGroup"], "rlnOpticsGroup", path)
    # Groups may be numbered in any order and with gaps.
    row_of = {group: row for row, group in enumerate(listed.tolist())}
    missing = next((group for group in wanted.tolist() if group not in row_of), None)
    if missing is not None:
        raise ValueError(
            f"{path} has particles of optics group {missing}, which its data_optics does not list."
        )
    return np.array([row_of[group] for group in wanted.tolist()])


def _microscope(columns: Columns, path: Path) -> dict[str, np.ndarray]:
    return {
        ours: (whole if ours in WHOLE else finite)(columns[theirs], theirs, path)
        for ours, theirs in STAR_COLUMNS.items()
        if theirs in columns
    }


def _stacked(columns: Columns, names: Sequence[str], path: Path) -> np.ndarray | None:
    """Return these columns side by side, (n, len(names)); None if one is missing."""
    if any(name not in columns for name in names):
        return None
    return np.column_stack([finite(columns[name], name, path) for name in names])


def _pixel_sizes(columns: Columns, path: Path) -> np.ndarray | None:
    if "rlnImagePixelSize" in columns:
        return positive(columns["rlnImagePixelSize"], "rlnImagePixelSize", path)
    if any(name not in columns for name in DETECTOR):
        return None
    micrometres, magnification = (positive(columns[name], name, path) for name in DETECTOR)
    return 1e4 * micrometres / magnification


def _angles(columns: Columns, path: Path) -> np.ndarray | None:
    psi = _stacked(columns, ["rlnAnglePsi"], path)
    if psi is None or not any(name in columns for name in DIRECTION):
        # A 2-D classification may state the in-plane angle alone.
        return None if psi is None else np.pad(psi, ((0, 0), (2, 0)))
    return _stacked(columns, [*DIRECTION, "rlnAnglePsi"], path)


def _shifts(
    columns: Columns, pixel_sizes: np.ndarray | None, path: Path
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the shifts in pixels, and in Angstrom where there is no pixel size.

    RELION states them in Angstrom since version 3.1.
    """
    in_angstrom = _stacked(columns, IN_ANGSTROM, path)
    in_pixels = _stacked(columns, IN_PIXELS, path)
    if in_angstrom is None:
        return in_pixels, None
    if pixel_sizes is not None:
        return in_angstrom / pixel_sizes[:, None], None
    return in_pixels, None if in_pixels is not None else in_angstrom


def _image_parts(names: Iterable, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the slices, from 0, and the stacks of names such as 000012@stack.mrcs."""
    slices, stacks = [], []
    for name in map(str, names):
        # A name without a number is a file with one image.
        full_name = name if "@" in name else f"1@{name}"
        number, _, stack = full_name.partition("@")
        # Longer numbers than these are no whole numbers of a computer.
        if not number.isdecimal() or len(number) > 18 or not _is_name(stack):
            raise ValueError(f"{path} must name images as 000001@stack.mrcs; got {name[:200]!r}.")
        slices.append(int(number) - 1)
        stacks.append(sys.intern(stack))
    # As objects, of which a stack is one, however long its name and its particles many.
    return np.array(slices), np.array(stacks, dtype=object)


def _is_name(text: str) -> bool:
    """Return whether a text can be the name of a file, and be written in UTF-8."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def write_relion(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the STAR file of these particles, with columns added."""
    # Decoding the bytes keeps the line ends as they are.
    loops = find_loops(particles.path.read_bytes().decode())
    name = particle_block(loops, particles.path)
    loop = without_columns(loops[name], STAR_PREFIX)
    # Six digits behind the point, as RELION writes its own numbers.
    values = {name: [f"{value:.6f}" for value in column] for name, column in columns.items()}
    return with_columns(loop, values, particles.rows).encode()
