"""Particles in cryoSPARC's .cs files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor._support.array_files import npy_header
from manifactor._support.errors import one_line
from manifactor._support.files import require_regular_file
from manifactor.cryoem.files.particles import (
    Particles,
    finite,
    floats,
    matrix_angles,
    positive,
    whole,
)

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

# Fields of numbers of groups.
WHOLE = ("optics group", "half set")

# Poses, the ones to prefer first. Those of a 2-D classification are one angle.
ALIGNMENTS = ("alignments3D", "alignments2D")


def read_cs(path: Path) -> np.ndarray:
    """Read the structured array of a .cs file, which is an .npy file.

    Nothing is unpickled.
    """
    require_regular_file(path, "the particles")
    try:
        with path.open("rb") as file:
            npy_header(file, path.stat().st_size)
            file.seek(0)
            # A pickled object could run any code when it is loaded.
            table = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        reason = one_line(error)
        raise ValueError(
            f"{path} is damaged, or no .cs file of plain fields: {reason}. Export it again."
        ) from error
    if table.dtype.names is None:
        raise ValueError(
            f"{path} must hold a table with named fields; got a plain array of shape {table.shape}."
        )
    if table.ndim != 1:
        raise ValueError(
            f"{path} must hold a table with one row for each particle; got one of "
            f"shape {table.shape}. Export it again."
        )
    if "uid" not in table.dtype.names:
        raise ValueError(
            f"{path} has no field `uid`, by which cryoSPARC knows its particles. Export it again."
        )
    if table["uid"].ndim != 1 or table["uid"].dtype.kind not in "iu":
        raise ValueError(
            f"the field `uid` of {path} must hold a whole number for each particle; "
            f"got {_kind(table['uid'])}. Export it again."
        )
    return table


def _kind(values: np.ndarray) -> str:
    return f"values of type {values.dtype}, shape {values.shape}"


def read_cryosparc(path: Path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a .cs file."""
    fields = _fields(path)
    rows = np.arange(len(fields["uid"]))
    return _particles(path, fields, rows, pixel_size)


def read_joined(path: Path, results: Path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a job's results, joined by uid with those of another file.

    cryoSPARC writes the results of a job into one file and what the job did not change into
    another, its passthrough file. Both may hold the particles in any order, and the second may hold
    more.
    """
    own, found = _fields(path), _fields(results)
    rows = _rows_of(found["uid"], own["uid"], path=path, results=results)
    aligned = {name: values for name, values in found.items() if name.startswith("alignments")}
    fields = {**found, **{name: values[rows] for name, values in own.items()}}
    return _particles(path, {**fields, **aligned}, rows, pixel_size)


def _rows_of(wanted: np.ndarray, uids: np.ndarray, *, path: Path, results: Path) -> np.ndarray:
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
    path: Path, fields: Mapping[str, np.ndarray], rows: np.ndarray, pixel_size: float | None
) -> Particles:
    table = _Fields(path, fields)
    stacks = slices = None
    if "blob/path" in fields and "blob/idx" in fields:
        stacks = np.array([_stack_name(name, path) for name in fields["blob/path"]])
        slices = table.numbers("blob/idx", whole)
    pixel_sizes = None
    if pixel_size is not None:
        pixel_sizes = np.full(len(rows), float(pixel_size))
    elif "blob/psize_A" in fields:
        pixel_sizes = table.numbers("blob/psize_A", positive)
    return Particles(
        path,
        rows,
        uid=fields["uid"],
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=_angles(table),
        shift=_shift(table, pixel_sizes),
        microscope=_microscope(table),
    )


@dataclass(frozen=True)
class _Fields:
    """Fields of a .cs file by name, and the file for messages."""

    path: Path
    fields: Mapping[str, np.ndarray]

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def numbers(
        self,
        name: str,
        convert: Callable[[np.ndarray, str, Path], np.ndarray] = floats,
        *,
        width: int | None = None,
    ) -> np.ndarray:
        """Return a field as numbers, one for each particle, or `width` of them."""
        values = self.fields[name]
        sides = () if width is None else (width,)
        if values.shape[1:] != sides or values.dtype.kind not in "fiubSU":
            wanted = f"{width or 1} number{'s' * (width is not None)}"
            raise ValueError(
                f"the field {name} of {self.path} must hold {wanted} for each "
                f"particle; got {_kind(values)}. Export it again."
            )
        return convert(values, name, self.path)


def _stack_name(value, path: Path) -> str:
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must name its stacks (blob/path) in UTF-8; got {value!r}."
        ) from error
    # cryoSPARC marks paths within its project with a ">".
    return text.lstrip(">")


def _angles(table: _Fields) -> np.ndarray | None:
    if "alignments3D/pose" in table:
        return euler_angles(table.numbers("alignments3D/pose", finite, width=3))
    if "alignments2D/pose" in table:
        # Radians, in the sense of a rotation vector along z.
        flat = table.fields["alignments2D/pose"].ndim == 1
        pose = table.numbers("alignments2D/pose", finite, width=None if flat else 1)
        return np.pad(np.degrees(pose.reshape(-1, 1)), ((0, 0), (2, 0)))
    return None


def _shift(table: _Fields, pixel_sizes: np.ndarray | None) -> np.ndarray | None:
    """Return the shifts in pixels of the images."""
    # The shifts go with the poses: those of another alignment have another frame.
    given = [name for name in ALIGNMENTS if f"{name}/pose" in table or f"{name}/shift" in table]
    used = next(iter(given), "")
    if f"{used}/shift" not in table:
        return None
    shift = table.numbers(f"{used}/shift", finite, width=2)
    if pixel_sizes is None or f"{used}/psize_A" not in table:
        return shift
    # Particles may be aligned at another pixel size than that of their images.
    return shift * (table.numbers(f"{used}/psize_A", finite) / pixel_sizes)[:, None]


def _microscope(table: _Fields) -> dict[str, np.ndarray]:
    degrees = 180 / np.pi
    known = {}
    for ours, theirs in CS_FIELDS.items():
        if theirs in table:
            # Our angles are in degrees, as RELION's.
            unit = degrees if theirs.endswith("_rad") else 1
            convert = whole if ours in WHOLE else finite
            known[ours] = unit * table.numbers(theirs, convert)
    classes = _classes(table)
    return known if classes is None else {**known, "class": classes}


def _classes(table: _Fields) -> np.ndarray | None:
    """Return the class of each particle; of two classifications, one that has some."""
    found = [
        table.numbers(f"{name}/class", whole) for name in ALIGNMENTS if f"{name}/class" in table
    ]
    # A refinement of one volume puts all particles into class 0.
    several = [classes for classes in found if (classes != classes[0]).any()]
    return next(iter(several or found), None)


def euler_angles(poses: np.ndarray) -> np.ndarray:
    """Return rot, tilt and psi in degrees of cryoSPARC's rotation vectors.

    These turn the image to the molecule, RELION's matrices the molecule to the image.

    Shapes: poses (n, 3) -> (n, 3).
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

    >>> npy_bytes(np.zeros(3))[:6]
    b'\\x93NUMPY'
    """
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


# Particles as a result group, which cryoSPARC imports: a .cs file and its .csg.

# Results of particles that cryoSPARC knows, each with its fields, such as blob/path.
RESULTS = ("alignments2D", "alignments3D", "blob", "ctf", "location", "ml_properties", "pick_stats")
# What a reconstruction needs.
NEEDED = ("alignments3D", "blob", "ctf")
# The oldest release of which the layout of a .csg file is known to us.
RELEASE = "v4.0.0"


def with_own_paths(content: bytes, folder: Path) -> bytes:
    """Return a .cs file that can be imported from anywhere.

    Paths marked by ">" are relative to the file that they stand in: these become absolute. Others
    are relative to the project's folder and stay as they are.
    """
    table = _table(content)
    if "blob/path" not in _group_fields(table):
        return content
    names = [_text(name) for name in table["blob/path"]]
    if not any(name.startswith(">") for name in names):
        return content
    paths = [str(folder / name.lstrip(">")) if name.startswith(">") else name for name in names]
    return npy_bytes(_with_field(table, "blob/path", np.array(paths).astype(bytes)))


def result_group(content: bytes, metafile: str) -> bytes:
    """Return the .csg file of a .cs file, for the job Import Result Group."""
    table = _table(content)
    lines = [
        f"created: {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}",
        "group:",
        "  description: Particles of one bin along a factor",
        "  name: particles",
        "  title: Particles",
        "  type: particle",
        "results:",
    ]
    for result in results_of(content):
        lines += [
            f"  {result}:",
            f"    metafile: '>{metafile}'",
            f"    num_items: {len(table)}",
            f"    type: particle.{result}",
        ]
    return "\n".join([*lines, f"version: {RELEASE}", ""]).encode()


def results_of(content: bytes) -> list[str]:
    """Return which results of particles a .cs file holds."""
    found = {name.partition("/")[0] for name in _group_fields(_table(content))}
    return [result for result in RESULTS if result in found]


def _table(content: bytes) -> np.ndarray:
    return np.lib.format.read_array(BytesIO(content), allow_pickle=False)


def _group_fields(table: np.ndarray) -> tuple[str, ...]:
    return table.dtype.names or ()


def _text(name) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _with_field(table: np.ndarray, name: str, values: np.ndarray) -> np.ndarray:
    """Return a table whose field has other values, of another type."""
    types = [
        (each, values.dtype if each == name else table.dtype[each]) for each in _group_fields(table)
    ]
    out = np.empty(len(table), dtype=types)
    for each in _group_fields(table):
        out[each] = values if each == name else table[each]
    return out
