"""Particles in cryoSPARC's .cs files."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor.cryoem.particles import Particles, matrix_angles

# Our own fields start with this; those of an earlier run are replaced.
CS_PREFIX = "manifactor/"

CS_FIELDS = {
    "defocus_u": "ctf/df1_A",
    "defocus_v": "ctf/df2_A",
    "defocus_angle": "ctf/df_angle_rad",
    "phase_shift": "ctf/phase_shift_rad",
    "voltage": "ctf/accel_kv",
    "spherical_aberration": "ctf/cs_mm",
    "amplitude_contrast": "ctf/amp_contrast",
    "optics group": "ctf/exp_group_id",
    "half set": "alignments3D/split",
}


def read_cs(path: Path) -> np.ndarray:
    """Read the structured array of a .cs file, which is an .npy file.

    Nothing is unpickled.
    """
    try:
        with path.open("rb") as file:
            # A pickled object could run any code when it is loaded.
            table = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is not a .cs file of plain fields; pickled objects are never "
            "loaded."
        ) from error
    if table.dtype.names is None:
        raise ValueError(
            f"{path} must hold a table with named fields; got a plain array of shape "
            f"{table.shape}."
        )
    if "uid" not in table.dtype.names:
        raise ValueError(
            f"{path} has no field `uid`, by which cryoSPARC knows its particles. "
            "Export it again."
        )
    return table


def read_cryosparc(path: Path) -> Particles:
    """Read the particles of a .cs file."""
    table = read_cs(path)
    if not len(table):
        raise ValueError(f"{path} holds no particles.")
    names = table.dtype.names or ()
    stacks = slices = None
    if "blob/path" in names and "blob/idx" in names:
        stacks = np.array([_stack_name(name) for name in table["blob/path"]])
        slices = table["blob/idx"].astype(int)
    angles = None
    if "alignments3D/pose" in names:
        angles = euler_angles(table["alignments3D/pose"])
    pixel_sizes = None
    if "blob/psize_A" in names:
        pixel_sizes = table["blob/psize_A"].astype(float)
    return Particles(
        path,
        np.arange(len(table)),
        uid=table["uid"],
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=angles,
        shift=_shift(table, pixel_sizes),
        microscope=_microscope(table),
    )


def _stack_name(value) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    # cryoSPARC marks paths within its project with a ">".
    return text.lstrip(">")


def _shift(table: np.ndarray, pixel_sizes: np.ndarray | None) -> np.ndarray | None:
    """Return the shifts in pixels of the images."""
    names = table.dtype.names or ()
    if "alignments3D/shift" not in names:
        return None
    shift = table["alignments3D/shift"].astype(float)
    if pixel_sizes is None or "alignments3D/psize_A" not in names:
        return shift
    # Particles may be aligned at another pixel size than that of their images.
    return shift * (table["alignments3D/psize_A"] / pixel_sizes)[:, None]


def _microscope(table: np.ndarray) -> dict[str, np.ndarray]:
    degrees = 180 / np.pi
    known = {}
    for ours, theirs in CS_FIELDS.items():
        if theirs in (table.dtype.names or ()):
            # Our angles are in degrees, as RELION's.
            unit = degrees if theirs.endswith("_rad") else 1
            known[ours] = unit * table[theirs]
    return known


def euler_angles(poses: np.ndarray) -> np.ndarray:
    """Return rot, tilt and psi in degrees of cryoSPARC's rotation vectors.

    These turn the image to the molecule, RELION's matrices the molecule to the image.

    Parameters
    ----------
    poses : ndarray of shape (n, 3)

    Returns
    -------
    ndarray of shape (n, 3)
    """
    inverse = -np.asarray(poses, dtype=float)
    return matrix_angles(Rotation.from_rotvec(inverse).as_matrix())


def write_cryosparc(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the .cs file of these particles, with fields added.

    Our fields of an earlier run are replaced.
    """
    table = read_cs(particles.path)[particles.rows]
    names = table.dtype.names or ()
    old = [name for name in names if not name.startswith(CS_PREFIX)]
    new = {f"{CS_PREFIX}{name}": column for name, column in columns.items()}
    # Copied field by field: a dtype with gaps would write the gaps as fields.
    fields = [(name, table.dtype[name]) for name in old]
    fields += [(name, np.dtype("<f4")) for name in new]
    out = np.empty(len(table), dtype=fields)
    for name in old:
        out[name] = table[name]
    for name, column in new.items():
        out[name] = column
    return npy_bytes(out)


def npy_bytes(array: np.ndarray) -> bytes:
    """Return an array as the bytes of an .npy file, which is also what .cs files are.

    Examples
    --------
    >>> npy_bytes(np.zeros(3))[:6]
    b'\\x93NUMPY'
    """
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
