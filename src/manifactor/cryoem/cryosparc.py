"""Particles in cryoSPARC's .cs files."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor.cryoem.particles import Particles


def read_cs(path: Path) -> np.ndarray:
    """The structured array of a .cs file, which is an .npy file; nothing is unpickled."""
    try:
        with path.open("rb") as file:
            table = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is not a .cs file of plain fields; pickled objects are never loaded."
        ) from error
    if table.dtype.names is None:
        raise ValueError(
            f"{path} must hold a table with named fields; got a plain array of shape {table.shape}."
        )
    if "uid" not in table.dtype.names:
        raise ValueError(
            f"{path} has no field `uid`, by which cryoSPARC knows its particles. Export it again."
        )
    return table


def read_cryosparc(path: Path) -> Particles:
    """The particles of a .cs file."""
    table = read_cs(path)
    if not len(table):
        raise ValueError(f"{path} holds no particles.")
    names = table.dtype.names or ()
    has_images = "blob/path" in names and "blob/idx" in names
    pixel = table["blob/psize_A"].astype(float) if "blob/psize_A" in names else None
    shift = (
        table["alignments3D/shift"].astype(float)
        if "alignments3D/shift" in names
        else None
    )
    if (
        shift is not None and pixel is not None and "alignments3D/psize_A" in names
    ):  # aligned at another pixel size
        shift = shift * (table["alignments3D/psize_A"] / pixel)[:, None]
    return Particles(
        path,
        np.arange(len(table)),
        uid=table["uid"],
        stack=np.array([_text(p).lstrip(">") for p in table["blob/path"]])
        if has_images
        else None,
        slice=table["blob/idx"].astype(int) if has_images else None,
        pixel_sizes=pixel,
        angles=euler_angles(table["alignments3D/pose"])
        if "alignments3D/pose" in names
        else None,
        shift=shift,
        microscope={
            ours: unit * table[theirs]
            for ours, (theirs, unit) in CS_FIELDS.items()
            if theirs in names
        },
    )


DEGREES = 180 / np.pi
CS_FIELDS = {
    "defocus_u": ("ctf/df1_A", 1.0),
    "defocus_v": ("ctf/df2_A", 1.0),
    "defocus_angle": ("ctf/df_angle_rad", DEGREES),
    "phase_shift": ("ctf/phase_shift_rad", DEGREES),
    "voltage": ("ctf/accel_kv", 1.0),
    "spherical_aberration": ("ctf/cs_mm", 1.0),
    "amplitude_contrast": ("ctf/amp_contrast", 1.0),
    "optics group": ("ctf/exp_group_id", 1),
    "half set": ("alignments3D/split", 1),
}


def _text(value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def euler_angles(poses: np.ndarray) -> np.ndarray:
    """rot, tilt and psi in degrees, (n, 3), of rotation vectors as cryoSPARC keeps them.

    These turn the image to the molecule, RELION's matrices the molecule to the image.
    """
    matrix = Rotation.from_rotvec(-np.asarray(poses, dtype=float)).as_matrix()
    tilted = np.hypot(matrix[:, 2, 0], matrix[:, 2, 1]) > 1e-7
    rot = np.where(tilted, np.arctan2(matrix[:, 2, 1], matrix[:, 2, 0]), 0.0)
    tilt = np.arccos(np.clip(matrix[:, 2, 2], -1, 1))
    flat = np.arctan2(
        matrix[:, 0, 1], matrix[:, 1, 1]
    )  # seen along the axis: all is psi
    psi = np.where(tilted, np.arctan2(matrix[:, 1, 2], -matrix[:, 0, 2]), flat)
    return np.degrees(np.column_stack([rot, tilt, psi]))


PREFIX = "manifactor/"  # of our own fields


def write_cryosparc(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """The .cs file of these particles, with fields added; those of an earlier run are replaced."""
    table = read_cs(particles.path)[particles.rows]
    new = {
        f"{PREFIX}{name}": np.asarray(column, dtype="<f4")
        for name, column in columns.items()
    }
    old = [name for name in table.dtype.names or () if not name.startswith(PREFIX)]
    out = np.empty(
        len(table),
        dtype=[(name, table.dtype[name]) for name in old]
        + [(name, "<f4") for name in new],
    )
    for name in old:
        out[name] = table[name]
    for name, column in new.items():
        out[name] = column
    return npy_bytes(out)


def npy_bytes(array: np.ndarray) -> bytes:
    """An array as the bytes of an .npy file, which is also the form of .cs files."""
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
