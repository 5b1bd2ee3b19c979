"""Particles as a result group, which cryoSPARC imports: a .cs file and its .csg."""

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import numpy as np

from manifactor.cryoem.cryosparc import npy_bytes

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
    if "blob/path" not in _fields(table):
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
    found = {name.partition("/")[0] for name in _fields(_table(content))}
    return [result for result in RESULTS if result in found]


def _table(content: bytes) -> np.ndarray:
    return np.lib.format.read_array(BytesIO(content), allow_pickle=False)


def _fields(table: np.ndarray) -> tuple[str, ...]:
    return table.dtype.names or ()


def _text(name) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _with_field(table: np.ndarray, name: str, values: np.ndarray) -> np.ndarray:
    """Return a table whose field has other values, of another type."""
    types = [(each, values.dtype if each == name else table.dtype[each]) for each in _fields(table)]
    out = np.empty(len(table), dtype=types)
    for each in _fields(table):
        out[each] = values if each == name else table[each]
    return out
