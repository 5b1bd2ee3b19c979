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

# Poses, the ones to prefer first. Those of a 2-D classification are one angle.
ALIGNMENTS = ("alignments3D", "alignments2D")


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


def read_cryosparc(path: Path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a .cs file.

    Parameters
    ----------
    path : Path
    pixel_size : float or None
        Angstrom; None for what the file states.
    """
    fields = _fields(path)
    rows = np.arange(len(fields["uid"]))
    return _particles(path, fields, rows, pixel_size)


def read_joined(
    path: Path, results: Path, *, pixel_size: float | None = None
) -> Particles:
    """Read the particles of a job's results, joined by uid with those of another file.

    cryoSPARC writes the results of a job into one file and what the job did not change
    into another, its passthrough file. Both may hold the particles in any order, and
    the second may hold more.

    Parameters
    ----------
    path : Path
        The passthrough file, or any other with these particles.
    results : Path
        Its alignments count where both files have some.
    pixel_size : float or None
        Angstrom; None for what the files state.

    Returns
    -------
    Particles
        Of the file `path`, in the order of the results.
    """
    own, found = _fields(path), _fields(results)
    rows = _rows_of(found["uid"], own["uid"], path=path, results=results)
    aligned = {
        name: values for name, values in found.items() if name.startswith("alignments")
    }
    fields = {**found, **{name: values[rows] for name, values in own.items()}}
    return _particles(path, {**fields, **aligned}, rows, pixel_size)


def _rows_of(
    wanted: np.ndarray, uids: np.ndarray, *, path: Path, results: Path
) -> np.ndarray:
    """Return the rows at which a file has the wanted uids."""
    order = np.argsort(uids, kind="stable")
    position = np.searchsorted(uids[order], wanted)
    rows = order[np.minimum(position, len(order) - 1)]
    missing = np.flatnonzero(uids[rows] != wanted)
    if len(missing):
        raise ValueError(
            f"{path} must hold all particles of {results}; {len(missing)} of "
            f"{len(wanted)} are missing, the first with uid {wanted[missing[0]]}. "
            "Export both from the same job."
        )
    if len(np.unique(rows)) < len(rows):
        raise ValueError(f"{results} must hold each uid once; some occur twice.")
    return rows


def _fields(path: Path) -> dict[str, np.ndarray]:
    """Return the fields of a .cs file by name."""
    table = read_cs(path)
    if not len(table):
        raise ValueError(f"{path} holds no particles.")
    return {name: table[name] for name in table.dtype.names or ()}


def _particles(
    path: Path,
    fields: Mapping[str, np.ndarray],
    rows: np.ndarray,
    pixel_size: float | None,
) -> Particles:
    stacks = slices = None
    if "blob/path" in fields and "blob/idx" in fields:
        stacks = np.array([_stack_name(name) for name in fields["blob/path"]])
        slices = fields["blob/idx"].astype(int)
    pixel_sizes = None
    if pixel_size is not None:
        pixel_sizes = np.full(len(rows), float(pixel_size))
    elif "blob/psize_A" in fields:
        pixel_sizes = fields["blob/psize_A"].astype(float)
    return Particles(
        path,
        rows,
        uid=fields["uid"],
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=_angles(fields),
        shift=_shift(fields, pixel_sizes),
        microscope=_microscope(fields),
    )


def _stack_name(value) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    # cryoSPARC marks paths within its project with a ">".
    return text.lstrip(">")


def _angles(fields: Mapping[str, np.ndarray]) -> np.ndarray | None:
    if "alignments3D/pose" in fields:
        return euler_angles(fields["alignments3D/pose"])
    if "alignments2D/pose" in fields:
        # Radians, in the sense of a rotation vector along z.
        psi = np.degrees(fields["alignments2D/pose"].astype(float).reshape(-1, 1))
        return np.pad(psi, ((0, 0), (2, 0)))
    return None


def _shift(
    fields: Mapping[str, np.ndarray], pixel_sizes: np.ndarray | None
) -> np.ndarray | None:
    """Return the shifts in pixels of the images."""
    # The shifts go with the poses: those of another alignment have another frame.
    given = [
        name
        for name in ALIGNMENTS
        if f"{name}/pose" in fields or f"{name}/shift" in fields
    ]
    used = next(iter(given), "")
    if f"{used}/shift" not in fields:
        return None
    shift = fields[f"{used}/shift"].astype(float)
    if pixel_sizes is None or f"{used}/psize_A" not in fields:
        return shift
    # Particles may be aligned at another pixel size than that of their images.
    return shift * (fields[f"{used}/psize_A"] / pixel_sizes)[:, None]


def _microscope(fields: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    degrees = 180 / np.pi
    known = {}
    for ours, theirs in CS_FIELDS.items():
        if theirs in fields:
            # Our angles are in degrees, as RELION's.
            unit = degrees if theirs.endswith("_rad") else 1
            known[ours] = unit * fields[theirs]
    classes = _classes(fields)
    return known if classes is None else {**known, "class": classes}


def _classes(fields: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the class of each particle; of two classifications, one that has some."""
    found = [
        fields[f"{name}/class"].astype(int)
        for name in ALIGNMENTS
        if f"{name}/class" in fields
    ]
    # A refinement of one volume puts all particles into class 0.
    several = [classes for classes in found if (classes != classes[0]).any()]
    return next(iter(several or found), None)


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
