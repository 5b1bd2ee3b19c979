"""Particles in cryoSPARC's .cs files, and the result groups that cryoSPARC imports."""

from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor._support.array_files import npy_header
from manifactor._support.errors import one_line
from manifactor._support.files import require_regular_file
from manifactor.cryoem.files.particles import Columns, Particles, matrix_angles, rows_of

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
    """Read the structured array of a .cs file, which is an .npy file; nothing is unpickled."""
    require_regular_file(path, "the particles")
    try:
        with path.open("rb") as file:
            npy_header(file, path.stat().st_size)
            file.seek(0)
            # A pickled object could run any code when it is loaded.
            table = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is damaged, or not a .cs file of plain fields: {one_line(error)}. "
            "Export it again."
        ) from error
    uid = table["uid"] if "uid" in (table.dtype.names or ()) else np.empty(())
    if table.ndim != 1 or uid.ndim != 1 or uid.dtype.kind not in "iu":
        raise ValueError(
            f"{path} must hold a table with one row for each particle, and a whole number in "
            f"the field `uid` of each; got shape {table.shape} of {str(table.dtype)[:60]}. "
            "Export it again."
        )
    return table


def read_cryosparc(
    path: Path, *, pixel_size: float | None = None, results: Path | None = None
) -> Particles:
    """Read the particles of a .cs file, or those of a job's results joined with it by uid."""
    # What a job did not change is in another file, its passthrough file, in any order, with more
    # particles.
    fields = _read_fields(path)
    rows = np.arange(len(fields["uid"]))
    if results is not None:
        found = _read_fields(results)
        rows, missing = rows_of(found["uid"], fields["uid"])
        if missing:
            raise ValueError(
                f"{path} must hold all particles of {results}; {len(missing)} of {len(rows)} are "
                f"missing, the first with uid {missing[0]}. Export both from the same job."
            )
        if len(np.unique(rows)) < len(rows):
            raise ValueError(f"{results} must hold each uid once; some occur twice.")
        own = {name: values[rows] for name, values in fields.items()}
        aligned = {name: values for name, values in found.items() if name.startswith("alignments")}
        fields = {**found, **own, **aligned}
    if pixel_size is not None:
        fields["blob/psize_A"] = np.full(len(rows), float(pixel_size))
    return _particles(Columns(path, fields), rows)


def _read_fields(path: Path) -> dict[str, np.ndarray]:
    table = read_cs(path)
    if not len(table):
        raise ValueError(f"{path} holds no particles.")
    return {name: table[name] for name in table.dtype.names or ()}


def _particles(columns: Columns, rows: np.ndarray) -> Particles:
    path, fields = columns.path, columns.values
    stacks = slices = pixel_sizes = None
    if "blob/path" in columns and "blob/idx" in columns:
        # cryoSPARC marks paths within its project with a ">".
        stacks = np.char.lstrip(_texts(fields["blob/path"], path), ">")
        slices = columns.numbers("blob/idx", "a whole number")
    if "blob/psize_A" in columns:
        pixel_sizes = columns.numbers("blob/psize_A", "a number above 0")
    known = columns.microscope(CS_FIELDS)
    labels = [f"{name}/class" for name in ALIGNMENTS if f"{name}/class" in columns]
    found = [columns.numbers(label, "a whole number") for label in labels]
    if found:
        # A refinement of one volume puts all particles into class 0: prefer another classification.
        several = [classes for classes in found if (classes != classes[0]).any()]
        known["class"] = (several or found)[0]
    return Particles(
        path,
        rows,
        uid=fields["uid"],
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=_angles(columns),
        shift=_shift(columns, pixel_sizes),
        microscope=known,
    )


def _texts(names: np.ndarray, path: Path) -> np.ndarray:
    try:
        return np.char.decode(names, "utf-8") if names.dtype.kind == "S" else names.astype(str)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must name its stacks (blob/path) in UTF-8: {error}.") from error


def _angles(columns: Columns) -> np.ndarray | None:
    if "alignments3D/pose" in columns:
        return euler_angles(columns.numbers("alignments3D/pose", sides=(3,)))
    if "alignments2D/pose" in columns:
        # Radians, in the sense of a rotation vector along z.
        sides = (1,) * (columns.values["alignments2D/pose"].ndim - 1)
        pose = columns.numbers("alignments2D/pose", sides=sides)
        return np.pad(np.degrees(pose.reshape(-1, 1)), ((0, 0), (2, 0)))
    return None


def _shift(columns: Columns, pixel_sizes: np.ndarray | None) -> np.ndarray | None:
    """Return the shifts in pixels of the images."""
    # The shifts go with the poses: those of another alignment have another frame.
    given = (
        name for name in ALIGNMENTS if {f"{name}/pose", f"{name}/shift"} & columns.values.keys()
    )
    used = next(given, "")
    if f"{used}/shift" not in columns:
        return None
    shift = columns.numbers(f"{used}/shift", sides=(2,))
    if pixel_sizes is None or f"{used}/psize_A" not in columns:
        return shift
    # Particles may be aligned at another pixel size than that of their images.
    return shift * (columns.numbers(f"{used}/psize_A") / pixel_sizes)[:, None]


def euler_angles(poses: np.ndarray) -> np.ndarray:
    """Return rot, tilt and psi in degrees, (n, 3), of cryoSPARC's rotation vectors, (n, 3)."""
    # These turn the image to the molecule, RELION's matrices the molecule to the image.
    inverse = -np.asarray(poses, dtype=float)
    return matrix_angles(Rotation.from_rotvec(inverse).as_matrix())


def write_cryosparc(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the .cs file of particles with fields added; ours of an earlier run are replaced."""
    table = read_cs(particles.path)[particles.rows]
    new = {f"{CS_PREFIX}{name}": np.asarray(column, "<f4") for name, column in columns.items()}
    old = {name: table[name] for name in table.dtype.names or () if not name.startswith(CS_PREFIX)}
    return _cs_bytes({**old, **new})


def _cs_bytes(fields: Mapping[str, np.ndarray]) -> bytes:
    # Copied field by field: a dtype with gaps would write the gaps as fields.
    types = [(name, values.dtype, values.shape[1:]) for name, values in fields.items()]
    out = np.empty(len(next(iter(fields.values()))), dtype=types)
    for name, values in fields.items():
        out[name] = values
    return npy_bytes(out)


def npy_bytes(array: np.ndarray) -> bytes:
    """Return an array as the bytes of an .npy file, which is also what .cs files are."""
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


# Particles as a result group, which cryoSPARC imports: a .cs file and its .csg.

# Results of particles that cryoSPARC knows, each with its fields, such as blob/path.
RESULTS = ("alignments2D", "alignments3D", "blob", "ctf", "location", "ml_properties", "pick_stats")
# The oldest release of which the layout of a .csg file is known to us.
GROUP = """\
created: {created:%Y-%m-%d %H:%M:%S.%f}
group:
  description: Particles of one bin along a factor
  name: particles
  title: Particles
  type: particle
results:
{results}version: v4.0.0
"""
RESULT = """\
  {name}:
    metafile: '>{metafile}'
    num_items: {count}
    type: particle.{name}
"""


def result_group(content: bytes, metafile: str, folder: Path) -> tuple[bytes, bytes, list[str]]:
    """Return a .cs file and its .csg for the job Import Result Group, and what it lacks.

    Paths marked by ">" are relative to the file that they stand in, and become absolute; others are
    relative to the project's folder.
    """
    table = np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    fields = {name: table[name] for name in table.dtype.names or ()}
    names = _texts(fields.get("blob/path", np.array([])), folder).tolist()
    if any(name.startswith(">") for name in names):
        paths = [str(folder / name.lstrip(">")) if name[:1] == ">" else name for name in names]
        content = _cs_bytes({**fields, "blob/path": np.array(paths).astype(bytes)})
    found = {name.partition("/")[0] for name in fields}
    results = (
        RESULT.format(name=name, metafile=metafile, count=len(table))
        for name in RESULTS
        if name in found
    )
    group = GROUP.format(created=datetime.now(UTC), results="".join(results))
    # What a reconstruction needs.
    missing = [name for name in ("alignments3D", "blob", "ctf") if name not in found]
    return content, group.encode(), missing
