"""RELION's STAR files (versions 3.0, 3.1 and 5): their text, their values, and their particles.

Columns and rows are added and dropped in the text itself: all that is not ours stays as it was.
"""

import csv
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor.cryoem.files.particles import Columns, Particles, rows_of

# A value, quoted or not, with the blanks behind it.
VALUE = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"']\S*)[ \t]*""")


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
    """Return the blocks of a STAR file by name: tables, and the lines of other blocks."""
    # Not `splitlines`, which also ends lines at form feeds and the like.
    lines = StringIO(text, newline="").readlines()
    # Editors of Windows start a file with this mark.
    words = [line.strip().removeprefix("\ufeff") for line in lines]
    starts = [i for i, word in enumerate(words) if word.startswith("data_")]
    blocks: dict[str, Loop | list[str]] = {}
    for start, end in pairwise([*starts, len(words)]):
        inside = [i for i in range(start + 1, end) if words[i] and not words[i].startswith("#")]
        name = words[start].removeprefix("data_")
        blocks[name] = [words[i] for i in inside]
        if inside and words[inside[0]].startswith("loop_"):
            labels = list(takewhile(lambda i: words[i].startswith("_"), inside[1:]))
            blocks[name] = Loop(lines, labels, inside[1 + len(labels) :])
    return blocks


def line_values(line: str) -> list[str]:
    """Return the values in a line, without quotes and without its comment."""
    if not any(sign in line for sign in "\"'#"):
        return line.split()
    values = [value.rstrip(" \t") for value in VALUE.findall(line)]
    before_comment = takewhile(lambda value: value[0] != "#", values)
    return [value[1:-1] if value[0] in "\"'" else value for value in before_comment]


def particle_table(blocks: Mapping[str, Loop | list[str]]) -> Loop:
    """Return the table that holds one row for each particle."""
    tables = {name: block for name, block in blocks.items() if isinstance(block, Loop)}
    # Of RELION 3.1 and later, of older versions, of 3.0.
    blocks_of_particles = [tables[name] for name in ("particles", "images", "") if name in tables]
    named = [table for table in blocks_of_particles if table.labels]
    # Other programs name the block otherwise; its images tell it from the others.
    with_images = [table for table in tables.values() if "rlnImageName" in table.columns]
    if named or len(with_images) == 1:
        return [*named, *with_images][0]
    found = ", ".join(f"data_{name}" for name in blocks) or "no block"
    raise ValueError(
        "it must hold a table of particles (data_particles, or data_ as RELION 3.0 writes it); "
        f"it holds {found}."
    )


# Our own columns start with this; those of an earlier run are replaced.
STAR_PREFIX = "mfFactor"


def with_columns(loop: Loop, columns: Mapping[str, Sequence[str]], keep: np.ndarray) -> str:
    """Return the text with columns added, without our earlier ones and the rows not kept."""
    lines = dict(enumerate(loop.lines))
    dropped = [k for k, name in enumerate(loop.columns) if name.startswith(STAR_PREFIX)]
    for k in dropped:
        del lines[loop.labels[k]]
    labels = [i for i in loop.labels if i in lines]
    for number, i in enumerate(labels, start=1):
        if dropped:
            lines[i] = re.sub(r"#\d+", f"#{number}", lines[i])
    last = lines[labels[-1]]
    # Line ends of Windows stay what they are.
    ending = last[len(last.rstrip("\r\n")) :]
    added = enumerate(columns, start=len(labels) + 1)
    lines[labels[-1]] = last + "".join(f"_{name} #{number} {ending}" for number, name in added)
    kept = {loop.rows[row]: values for row, *values in zip(keep, *columns.values(), strict=True)}
    for i in loop.rows:
        if i in kept:
            lines[i] = _edited(lines[i], dropped, len(loop.labels), " ".join(kept[i]))
        else:
            del lines[i]
    return "".join(lines.values())


def _edited(line: str, dropped: Sequence[int], n_columns: int, values: str) -> str:
    """Return a row without some values, and with others in front of its comment and line end."""
    row = line.rstrip("\r\n")
    spans = []
    if dropped or "#" in row:
        spans = [found.span() for found in VALUE.finditer(row)][:n_columns]
        row = line[: spans[-1][1]]
    rest = line[len(row) :]
    for k in reversed(dropped):
        start, end = spans[k]
        row = row[:start] + row[end:]
    if rest.startswith("#"):
        # A comment keeps its distance.
        rest = row[len(row.rstrip()) :] + rest
        row = row.rstrip()
    space = "" if not values or row.endswith((" ", "\t")) else " "
    return row + space + values + rest


# The values of a table, as arrays.


def read_star(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the columns of the particles of a STAR file, and those of its optics groups."""
    try:
        text = path.read_bytes().decode()
        if "\0" in text:
            # A disk that failed leaves zeros.
            raise ValueError("it holds zero bytes. Copy it again.")
        blocks = find_blocks(text)
        return _columns(particle_table(blocks)), _columns(blocks.get("optics", []))
    # What decoding, our own checks and pandas raise for a damaged file.
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{path} is not a STAR file that can be read: {one_line(error)}"
        ) from error


def _columns(block: Loop | list[str]) -> dict[str, np.ndarray]:
    """Return the columns of a table, or of a block of pairs, which is a table with one row."""
    if isinstance(block, list):
        pairs = map(line_values, block)
        return {name.removeprefix("_"): np.array([value]) for name, value in pairs}
    columns, rows = block.columns, []
    for i in block.rows:
        values = line_values(block.lines[i])
        if len(values) != len(columns):
            raise ValueError(
                f"line {i + 1} has {len(values)} values for {len(columns)} columns. It may be "
                "truncated: copy the file again. Each row must be one line, and values with "
                "spaces quoted."
            )
        rows.append("\x1f".join(values))
    table = extra("pandas").read_csv(
        StringIO("\n".join(rows)),
        # A sign that ends values, so that it is in none.
        sep="\x1f",
        names=columns,
        quoting=csv.QUOTE_NONE,
        keep_default_na=False,
        na_values=["nan", "NaN", "<NA>"],
        low_memory=False,
        index_col=False,
        skip_blank_lines=False,
    )
    return {name: table[name].to_numpy() for name in columns}


# Particles, with the properties of their optics groups.

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
DIRECTION = ("rlnAngleRot", "rlnAngleTilt")


def read_relion(path: Path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a STAR file, with the properties of their optics groups."""
    own, optics = read_star(path)
    if all(name.startswith(STAR_PREFIX) for name in own):
        raise ValueError(
            f"{path} holds no columns but those of an earlier run ({STAR_PREFIX}). "
            "Give the original file."
        )
    count = len(next(iter(own.values())))
    if not count:
        raise ValueError(f"{path} holds no particles.")
    if pixel_size is not None:
        own["rlnImagePixelSize"] = np.full(count, float(pixel_size))
    columns = _with_optics(Columns(path, own), Columns(path, optics))
    pixel_sizes = _pixel_sizes(columns)
    slices = stacks = None
    if "rlnImageName" in columns:
        slices, stacks = _image_parts(columns.values["rlnImageName"], path)
    angles = columns.side_by_side(*DIRECTION, "rlnAnglePsi")
    if "rlnAnglePsi" in columns and not any(name in columns for name in DIRECTION):
        # A 2-D classification may state the in-plane angle alone.
        angles = np.pad(columns.numbers("rlnAnglePsi")[:, None], ((0, 0), (2, 0)))
    # RELION states shifts in Angstrom since version 3.1.
    in_angstrom = columns.side_by_side("rlnOriginXAngst", "rlnOriginYAngst")
    shift = columns.side_by_side("rlnOriginX", "rlnOriginY")
    if in_angstrom is not None and pixel_sizes is not None:
        shift = in_angstrom / pixel_sizes[:, None]
    return Particles(
        path,
        np.arange(count),
        stack=stacks,
        slice=slices,
        pixel_sizes=pixel_sizes,
        angles=angles,
        shift=shift,
        unscaled_shift=in_angstrom if shift is None else None,
        microscope=columns.microscope(STAR_COLUMNS),
    )


def _with_optics(columns: Columns, groups: Columns) -> Columns:
    """Return the columns of particles, and of their optics groups those that they lack."""
    label, path = "rlnOpticsGroup", columns.path
    if not groups.values or label not in columns:
        return columns
    if label not in groups:
        raise ValueError(
            f"the data_optics of {path} must number its groups; it has no column "
            "_rlnOpticsGroup. Add it, or export the particles again."
        )
    # Groups may be numbered in any order and with gaps.
    listed = groups.numbers(label, "a whole number")
    rows, missing = rows_of(columns.numbers(label, "a whole number"), listed)
    if missing:
        raise ValueError(
            f"{path} has particles of optics group {min(missing)}, which its data_optics "
            "does not list."
        )
    shared = {name: values[rows] for name, values in groups.values.items()}
    return Columns(path, {**shared, **columns.values})


def _pixel_sizes(columns: Columns) -> np.ndarray | None:
    kind = "a number above 0"
    if "rlnImagePixelSize" in columns:
        return columns.numbers("rlnImagePixelSize", kind)
    # RELION 3.0 states the detector's pixel in micrometres, and the magnification.
    detector = columns.side_by_side("rlnDetectorPixelSize", "rlnMagnification", kind=kind)
    return None if detector is None else 1e4 * detector[:, 0] / detector[:, 1]


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
    loop = particle_table(find_blocks(particles.path.read_bytes().decode()))
    # Six digits behind the point, as RELION writes its own numbers.
    values = {name: [f"{value:.6f}" for value in column] for name, column in columns.items()}
    return with_columns(loop, values, particles.rows).encode()
