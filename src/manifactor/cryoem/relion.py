"""Particles in RELION's STAR files: versions 3.0, 3.1 and 5."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from manifactor.cryoem.particles import Particles
from manifactor.cryoem.star import (
    Loop,
    count_values,
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


def read_relion(path: Path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a STAR file, with the properties of their optics groups.

    Parameters
    ----------
    path : Path
    pixel_size : float or None
        Angstrom; None for what the file states.
    """
    # starfile parses the values; the text is read too, as columns are added there.
    blocks = read_star(path)
    name = particle_block(blocks, path)
    table = blocks[name]
    if not len(table):
        raise ValueError(f"{path} holds no particles.")
    loop = find_loops(path.read_text(encoding="utf-8"))[name]
    _require_whole_rows(loop, len(table), path)

    columns = _with_optics(table, blocks.get("optics"), path)
    pixel_sizes = _pixel_sizes(columns)
    if pixel_size is not None:
        pixel_sizes = np.full(len(table), float(pixel_size))
    slices = stacks = None
    if "rlnImageName" in columns:
        slices, stacks = _image_parts(columns["rlnImageName"], path)
    shift, unscaled = _shifts(columns, pixel_sizes)
    return Particles(
        path,
        np.arange(len(table)),
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=_angles(columns),
        shift=shift,
        unscaled_shift=unscaled,
        microscope={
            ours: columns[theirs]
            for ours, theirs in STAR_COLUMNS.items()
            if theirs in columns
        },
    )


def _require_whole_rows(
    loop: Loop,
    n_rows: int,
    path: Path,
) -> None:
    """Refuse rows to which no value can be added.

    These are rows over several lines, and rows that end too early.
    """
    if n_rows != len(loop.rows):
        raise ValueError(
            f"{path} has rows that go over several lines, which cannot be kept as they "
            "are. Write each row on one line."
        )
    n_columns = len(loop.labels)
    for i in loop.rows:
        count = count_values(loop.lines[i])
        if count < n_columns:
            raise ValueError(
                f"line {i + 1} of {path} has {count} values for {n_columns} columns. "
                "It may be truncated; copy it again."
            )


def _with_optics(
    table,
    optics,
    path: Path,
) -> dict[str, np.ndarray]:
    """Return the columns of the particles, completed by those of their optics groups.

    Where both have a column, that of the particles counts.
    """
    columns = {name: table[name].to_numpy() for name in table.columns}
    if optics is None or "rlnOpticsGroup" not in columns:
        return columns
    # A block of one optics group may be written as plain pairs instead of a loop.
    if not hasattr(optics, "columns"):
        optics = {name: np.array([value]) for name, value in optics.items()}
    row = _optics_rows(np.asarray(optics["rlnOpticsGroup"]), columns, path)
    shared = {
        name: np.asarray(optics[name])[row] for name in optics if name not in columns
    }
    return {**columns, **shared}


def _optics_rows(
    groups: np.ndarray,
    columns: Mapping,
    path: Path,
) -> np.ndarray:
    """Return the row of the optics table that each particle belongs to."""
    wanted = columns["rlnOpticsGroup"]
    # Groups may be numbered in any order and with gaps.
    order = np.argsort(groups)
    position = np.searchsorted(groups[order], wanted)
    row = order[np.minimum(position, len(groups) - 1)]
    missing = groups[row] != wanted
    if missing.any():
        raise ValueError(
            f"{path} has particles of optics group {wanted[missing][0]}, which its "
            "data_optics does not list."
        )
    return row


def _stacked(columns: Mapping, *names: str) -> np.ndarray | None:
    """Return these columns side by side, (n, len(names)); None if one is missing."""
    if any(name not in columns for name in names):
        return None
    return np.column_stack([columns[name] for name in names]).astype(float)


def _pixel_sizes(columns: Mapping) -> np.ndarray | None:
    if "rlnImagePixelSize" in columns:
        return np.asarray(columns["rlnImagePixelSize"], dtype=float)
    if "rlnDetectorPixelSize" in columns and "rlnMagnification" in columns:
        # RELION 3.0 states the detector's pixel in micrometres, and the magnification.
        angstrom = 1e4 * columns["rlnDetectorPixelSize"]
        return np.asarray(angstrom / columns["rlnMagnification"], dtype=float)
    return None


def _angles(columns: Mapping) -> np.ndarray | None:
    psi = _stacked(columns, "rlnAnglePsi")
    names = ("rlnAngleRot", "rlnAngleTilt")
    if psi is None or not any(name in columns for name in names):
        # A 2-D classification may state the in-plane angle alone.
        return None if psi is None else np.pad(psi, ((0, 0), (2, 0)))
    return _stacked(columns, *names, "rlnAnglePsi")


def _shifts(
    columns: Mapping, pixel_sizes: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the shifts in pixels, and in Angstrom where there is no pixel size.

    RELION states them in Angstrom since version 3.1.
    """
    in_angstrom = _stacked(columns, "rlnOriginXAngst", "rlnOriginYAngst")
    in_pixels = _stacked(columns, "rlnOriginX", "rlnOriginY")
    if in_angstrom is None:
        return in_pixels, None
    if pixel_sizes is not None:
        return in_angstrom / pixel_sizes[:, None], None
    return in_pixels, None if in_pixels is not None else in_angstrom


def _image_parts(names: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the slices, from 0, and the stacks of names such as 000012@stack.mrcs."""
    slices, stacks = [], []
    for name in map(str, names):
        # A name without a number is a file with one image.
        full_name = name if "@" in name else f"1@{name}"
        number, _, stack = full_name.partition("@")
        if not number.isdecimal():
            raise ValueError(
                f"{path} must name images as 000001@stack.mrcs; got {name!r}."
            )
        slices.append(int(number) - 1)
        stacks.append(stack)
    return np.array(slices), np.array(stacks)


def write_relion(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the STAR file of these particles, with columns added."""
    # Decoding the bytes keeps the line ends as they are.
    loops = find_loops(particles.path.read_bytes().decode())
    name = particle_block(loops, particles.path)
    loop = without_columns(loops[name], STAR_PREFIX)
    # Six digits behind the point, as RELION writes its own numbers.
    values = {
        name: [f"{value:.6f}" for value in column] for name, column in columns.items()
    }
    return with_columns(loop, values, particles.rows).encode()
