"""RELION's STAR files: their text, their values, and their particles (versions 3.0, 3.1 and 5).

Columns and rows are added and dropped in the text itself, so everything that is not ours stays as
it was, byte for byte: other blocks, comments, the number of digits.
"""

import linecache
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor.cryoem.files.particles import Particles, finite, positive, whole

# Blocks of particles: of RELION 3.1 and later, of older versions, of 3.0.
PARTICLE_BLOCKS = ("particles", "images", "")

# A value, quoted or not, with the blanks behind it.
VALUE = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"']\S*)[ \t]*""")
# The number of a column, behind its label.
COLUMN_NUMBER = re.compile(r"#\d+")


@dataclass(frozen=True)
class Loop:
    """Position of one table of a STAR file in its lines."""

    lines: list[str]  # all lines of the file, with their ends
    labels: list[int]  # lines that name the columns
    rows: list[int]  # lines that hold a row each

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without the underscore."""
        labels = [self.lines[i].split()[0] for i in self.labels]
        return [label.removeprefix("_") for label in labels]


def find_blocks(text: str) -> dict[str, Loop | list[str]]:
    """Return the blocks of a STAR file by name.

    A table is a `Loop`, any other block the list of its lines.

    >>> find_blocks("data_general\\n_rlnVoltage 300\\n")
    {'general': ['_rlnVoltage 300']}
    """
    # Not `splitlines`, which also ends lines at form feeds and the like.
    lines = StringIO(text, newline="").readlines()
    # Editors of Windows start a file with this mark.
    words = [line.strip().removeprefix("\ufeff") for line in lines]
    starts = [i for i, word in enumerate(words) if word.startswith("data_")]
    blocks: dict[str, Loop | list[str]] = {}
    for start, end in pairwise([*starts, len(words)]):
        inside = [i for i in range(start + 1, end) if words[i] and not words[i].startswith("#")]
        name = words[start].removeprefix("data_")
        if inside and words[inside[0]].startswith("loop_"):
            blocks[name] = _loop(lines, words, inside[1:])
        else:
            blocks[name] = [words[i] for i in inside]
    return blocks


def _loop(lines: list[str], words: Sequence[str], inside: Sequence[int]) -> Loop:
    """Return a table; labels are its first lines that start with an underscore."""
    count = 0
    while count < len(inside) and words[inside[count]].startswith("_"):
        count += 1
    return Loop(lines, list(inside[:count]), list(inside[count:]))


def line_values(line: str) -> list[str]:
    """Return the values in a line, without quotes and without its comment.

    >>> line_values("  3 'a name' 0.5  # doubtful")
    ['3', 'a name', '0.5']
    """
    if '"' not in line and "'" not in line:
        return _before_comment(line.split())
    values = _before_comment([found[0].rstrip(" \t") for found in VALUE.finditer(line)])
    return [value[1:-1] if value.startswith(('"', "'")) else value for value in values]


def _before_comment(values: list[str]) -> list[str]:
    starts = (k for k, value in enumerate(values) if value.startswith("#"))
    return values[: next(starts, None)]


def particle_block(blocks: Mapping, path: Path) -> str:
    """Return the name of the block that holds one row for each particle."""
    tables = {
        name: block
        for name, block in blocks.items()
        if hasattr(block, "columns") and len(block.columns)
    }
    for name in PARTICLE_BLOCKS:
        if name in tables:
            return name
    # Other programs name the block otherwise; its images tell it from the others.
    with_images = [name for name, table in tables.items() if "rlnImageName" in table.columns]
    if len(with_images) == 1:
        return with_images[0]
    found = ", ".join(f"data_{name}" for name in blocks) or "no block"
    raise ValueError(
        f"{path} must hold a table of particles (data_particles, or data_ as RELION "
        f"3.0 writes it); it holds {found}."
    )


def without_columns(loop: Loop, prefix: str) -> Loop:
    """Return the table without the columns whose names start with a prefix.

    The columns that remain are renumbered if any was dropped.
    """
    dropped = {i for i, name in enumerate(loop.columns) if name.startswith(prefix)}
    if not dropped:
        return loop
    lines = loop.lines.copy()
    labels = [line for i, line in enumerate(loop.labels) if i not in dropped]
    for number, i in enumerate(labels, start=1):
        lines[i] = COLUMN_NUMBER.sub(f"#{number}", lines[i])
    for column in dropped:
        lines[loop.labels[column]] = ""
    for i in loop.rows:
        lines[i] = _without_values(lines[i], dropped)
    return replace(loop, lines=lines, labels=labels)


def _without_values(line: str, dropped: set[int]) -> str:
    values = list(VALUE.finditer(line))
    kept = [found[0] for k, found in enumerate(values) if k not in dropped]
    return line[: values[0].start()] + "".join(kept) + line[values[-1].end() :]


def with_columns(loop: Loop, columns: Mapping[str, Sequence[str]], keep: np.ndarray) -> str:
    """Return the text with columns added and without the rows that are not kept."""
    lines = dict(enumerate(loop.lines))
    last = loop.labels[-1]
    lines[last] = _with_labels(lines[last], columns, len(loop.labels))
    kept = {loop.rows[row]: position for position, row in enumerate(keep)}
    for i in loop.rows:
        if i in kept:
            values = " ".join(column[kept[i]] for column in columns.values())
            lines[i] = _with_values(lines[i], values)
        else:
            del lines[i]
    return "".join(lines.values())


def _with_labels(line: str, names: Mapping, number: int) -> str:
    """Return the line of the last label, with the lines of new ones behind it."""
    text = line.rstrip("\r\n")
    # Line ends of Windows stay what they are; the last line may have none.
    ending = line[len(text) :] or "\n"
    added = [f"_{name} #{number + i} " for i, name in enumerate(names, start=1)]
    return "".join(label + ending for label in [text, *added])


def _with_values(line: str, values: str) -> str:
    """Return a row with values added in front of its comment and its line end."""
    row = line.rstrip("\r\n")
    comments = (found.start() for found in VALUE.finditer(row) if found[0].startswith("#"))
    if "#" in row and (comment := next(comments, None)) is not None:
        row = row[:comment].rstrip()
    space = "" if not values or row.endswith((" ", "\t")) else " "
    return row + space + values + line[len(row) :]


# The values, which starfile reads.


def read_star(path: Path) -> dict[str, Any]:
    """Read the blocks of a STAR file by name: a loop as a DataFrame, any other block as a dict."""
    starfile = extra("starfile")
    try:
        text = path.read_bytes().decode()
        found = find_blocks(text)
        loops = {name: block for name, block in found.items() if isinstance(block, Loop)}
        # A disk that failed leaves zeros, at which starfile ends a value.
        if loops and "\0" in text:
            raise ValueError("it holds zero bytes. Copy it again.")
        for name, block in found.items():
            if not block:
                raise ValueError(f"its block data_{name} is empty. Remove it.")
            if isinstance(block, Loop):
                _require_rows(block)
        # starfile reads through this cache, and leaves in it a file that it cannot parse.
        linecache.checkcache(str(path))
        blocks = starfile.read(path, always_dict=True) if found else {}
        for name, loop in loops.items():
            _require_same(loop, blocks.get(name), name)
    except (OSError, MemoryError):
        raise
    # starfile and pandas raise errors of any class for a damaged file.
    except Exception as error:
        raise ValueError(
            f"{path} is not a STAR file that can be read: {one_line(error)}"
        ) from error
    return {name: block for name, block in blocks.items() if block is not None}


def _require_rows(loop: Loop) -> None:
    """Refuse rows that are not one line with a value for each of different columns."""
    columns = loop.columns
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise ValueError(f"a table has several columns _{twice}. Remove all but one.")
    for i in loop.rows:
        line = loop.lines[i]
        values = line_values(line)
        if len(values) != len(columns):
            raise ValueError(
                f"line {i + 1} has {len(values)} values for {len(columns)} columns. It may be "
                "truncated: copy the file again. Each row must be one line, and values with "
                "spaces quoted."
            )
        # starfile takes any # as the start of a comment.
        if "#" in line and any("#" in value for value in values):
            raise ValueError(f"line {i + 1} has a # within a value. Rename what it names.")


def _require_same(loop: Loop, table: Any, name: str) -> None:
    """Refuse a table that starfile has found elsewhere than we have."""
    columns = list(getattr(table, "columns", ()))
    if loop.rows and (columns != loop.columns or len(table) != len(loop.rows)):
        raise ValueError(
            f"its table data_{name} cannot be told from the lines around it. Write data_NAME, "
            "loop_, the labels and the rows below each other, one line for each row."
        )


# Particles, with the properties of their optics groups.

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
    if all(name.startswith(STAR_PREFIX) for name in table.columns):
        raise ValueError(
            f"{path} holds no columns but those of an earlier run ({STAR_PREFIX}). "
            "Give the original file."
        )
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
        microscope={
            ours: (whole if ours in WHOLE else finite)(columns[theirs], theirs, path)
            for ours, theirs in STAR_COLUMNS.items()
            if theirs in columns
        },
    )


def _with_optics(columns: Columns, optics, path: Path) -> Columns:
    """Return the columns of the particles, completed by those of their optics groups.

    Where both have a column, that of the particles counts.
    """
    if optics is None or "rlnOpticsGroup" not in columns:
        return columns
    # A block of one optics group may be written as plain pairs instead of a loop.
    groups = {name: np.atleast_1d(optics[name]) for name in optics}
    if "rlnOpticsGroup" not in groups:
        raise ValueError(
            f"the data_optics of {path} must number its groups; it has no column "
            "_rlnOpticsGroup. Add it, or export the particles again."
        )
    listed = whole(groups["rlnOpticsGroup"], "rlnOpticsGroup of data_optics", path)
    wanted = whole(columns["rlnOpticsGroup"], "rlnOpticsGroup", path)
    # Groups may be numbered in any order and with gaps.
    row_of = {group: row for row, group in enumerate(listed.tolist())}
    missing = set(wanted.tolist()) - row_of.keys()
    if missing:
        raise ValueError(
            f"{path} has particles of optics group {min(missing)}, which its data_optics "
            "does not list."
        )
    rows = [row_of[group] for group in wanted.tolist()]
    shared = {name: values[rows] for name, values in groups.items() if name not in columns}
    return {**columns, **shared}


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
        if not number.isdecimal() or len(number) > 18:
            raise ValueError(f"{path} must name images as 000001@stack.mrcs; got {name[:200]!r}.")
        slices.append(int(number) - 1)
        stacks.append(sys.intern(stack))
    # As objects, of which a stack is one, however long its name and its particles many.
    return np.array(slices), np.array(stacks, dtype=object)


def write_relion(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the STAR file of these particles, with columns added."""
    # Decoding the bytes keeps the line ends as they are.
    blocks = find_blocks(particles.path.read_bytes().decode())
    found = blocks[particle_block(blocks, particles.path)]
    assert isinstance(found, Loop)
    loop = without_columns(found, STAR_PREFIX)
    # Six digits behind the point, as RELION writes its own numbers.
    values = {name: [f"{value:.6f}" for value in column] for name, column in columns.items()}
    return with_columns(loop, values, particles.rows).encode()
