"""Particles in RELION's STAR files: versions 3.0, 3.1 and 5."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from manifactor.cryoem.particles import Particles
from manifactor.cryoem.star import (
    VALUE,
    Loop,
    find_loops,
    particle_block,
    read_star,
    with_columns,
    without_columns,
)


def read_relion(path: Path) -> Particles:
    """The particles of a STAR file, with what its optics groups tell of them."""
    blocks = read_star(path)
    name = particle_block(blocks, path)
    table = blocks[name]
    if not len(table):
        raise ValueError(f"{path} holds no particles.")
    _require_whole_rows(
        find_loops(path.read_text(encoding="utf-8"))[name], len(table), path
    )
    columns = _with_optics(table, blocks.get("optics"), path)
    pixel = _pixel_sizes(columns)
    slices, stacks = (
        _image_parts(columns["rlnImageName"], path)
        if "rlnImageName" in columns
        else (None, None)
    )
    angles = [
        columns[name]
        for name in ("rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi")
        if name in columns
    ]
    return Particles(
        path,
        np.arange(len(table)),
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel,
        angles=np.column_stack(angles).astype(float) if len(angles) == 3 else None,
        shift=_shift(columns, pixel),
        microscope={
            ours: columns[theirs]
            for ours, theirs in STAR_COLUMNS.items()
            if theirs in columns
        },
    )


def _require_whole_rows(loop: Loop, n_rows: int, path: Path) -> None:
    """Refuse rows to which no value can be added: those over several lines, and those that end too early."""
    if n_rows != len(loop.rows):
        raise ValueError(
            f"{path} has rows that go over several lines, which cannot be kept as they are."
        )
    for i in loop.rows:
        count = len(VALUE.findall(loop.lines[i]))
        if count < len(loop.labels):
            raise ValueError(
                f"line {i + 1} of {path} has {count} values for {len(loop.labels)} columns. It may be truncated; copy "
                "it again."
            )


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
    "flipped": "rlnCtfDataArePhaseFlipped",
    "premultiplied": "rlnCtfDataAreCtfPremultiplied",
}


def _with_optics(table, optics, path: Path) -> dict[str, np.ndarray]:
    """Columns of the particles, and of their optics groups where the particles lack them."""
    columns = {name: table[name].to_numpy() for name in table.columns}
    if optics is None or "rlnOpticsGroup" not in columns:
        return columns
    optics = optics if hasattr(optics, "columns") else _one_row(optics)
    groups = np.asarray(optics["rlnOpticsGroup"])
    order = np.argsort(groups)
    at = np.minimum(
        np.searchsorted(groups[order], columns["rlnOpticsGroup"]), len(groups) - 1
    )
    row = order[at]
    if (groups[row] != columns["rlnOpticsGroup"]).any():
        lost = columns["rlnOpticsGroup"][groups[row] != columns["rlnOpticsGroup"]][0]
        raise ValueError(
            f"{path} has particles of optics group {lost}, which its data_optics does not list."
        )
    shared = {
        name: np.asarray(optics[name])[row] for name in optics if name not in columns
    }
    return {**columns, **shared}


def _one_row(block: Mapping) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in block.items()}


def _pixel_sizes(columns: Mapping) -> np.ndarray | None:
    if "rlnImagePixelSize" in columns:
        return np.asarray(columns["rlnImagePixelSize"], dtype=float)
    if (
        "rlnDetectorPixelSize" in columns and "rlnMagnification" in columns
    ):  # RELION 3.0: micrometres, magnification
        return np.asarray(
            1e4 * columns["rlnDetectorPixelSize"] / columns["rlnMagnification"],
            dtype=float,
        )
    return None


def _shift(columns: Mapping, pixel: np.ndarray | None) -> np.ndarray | None:
    if (
        "rlnOriginXAngst" in columns
        and "rlnOriginYAngst" in columns
        and pixel is not None
    ):
        return (
            np.column_stack([columns["rlnOriginXAngst"], columns["rlnOriginYAngst"]])
            / pixel[:, None]
        )
    if "rlnOriginX" in columns and "rlnOriginY" in columns:
        return np.column_stack([columns["rlnOriginX"], columns["rlnOriginY"]]).astype(
            float
        )
    return None


def _image_parts(names: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Places in the stacks, from 0, and the stacks of image names such as 000012@stack.mrcs."""
    parts = [
        str(name).partition("@") if "@" in str(name) else ("1", "@", str(name))
        for name in names
    ]
    wrong = next(
        (
            name
            for name, (number, _, _) in zip(names, parts, strict=True)
            if not number.isdecimal()
        ),
        None,
    )
    if wrong is not None:
        raise ValueError(
            f"{path} must name images as 000001@stack.mrcs; got {wrong!r}."
        )
    return np.array([int(number) - 1 for number, _, _ in parts]), np.array(
        [stack for _, _, stack in parts]
    )


def write_relion(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """The STAR file of these particles, with columns added."""
    loops = find_loops(particles.path.read_bytes().decode())  # line ends as they are
    loop = without_columns(loops[particle_block(loops, particles.path)], PREFIX)
    values = {
        name: [f"{value:.6f}" for value in column] for name, column in columns.items()
    }
    return with_columns(loop, values, particles.rows).encode()


PREFIX = "mfFactor"  # of our own columns: those of an earlier run are replaced
