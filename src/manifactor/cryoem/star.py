"""RELION's STAR files.

Columns and rows are added and dropped in the text itself, so everything that is not ours stays as
it was, byte for byte: other blocks, comments, the number of digits. `star_tables` reads values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np

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


def find_loops(text: str) -> dict[str, Loop]:
    """Return the tables of a STAR file by the name of their block.

    >>> find_loops("data_\\nloop_\\n_rlnClassNumber #1\\n3\\n4\\n")[""].rows
    [3, 4]
    """
    blocks = find_blocks(text)
    return {name: block for name, block in blocks.items() if isinstance(block, Loop)}


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
        inside = [i for i in range(start + 1, end) if _says_something(words[i])]
        name = words[start].removeprefix("data_")
        if inside and words[inside[0]].startswith("loop_"):
            blocks[name] = _loop(lines, words, inside[1:])
        else:
            blocks[name] = [words[i] for i in inside]
    return blocks


def _says_something(word: str) -> bool:
    return bool(word) and not word.startswith("#")


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
    values = _before_comment([found[0] for found in VALUE.finditer(line)])
    return [_unquoted(value.rstrip(" \t")) for value in values]


def _before_comment(values: list[str]) -> list[str]:
    starts = (k for k, value in enumerate(values) if value.startswith("#"))
    return values[: next(starts, None)]


def _unquoted(value: str) -> str:
    return value[1:-1] if value.startswith(('"', "'")) else value


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
    comment = _comment_start(row) if "#" in row else None
    if comment is not None:
        row = row[:comment].rstrip()
    space = "" if not values or row.endswith((" ", "\t")) else " "
    return row + space + values + line[len(row) :]


def _comment_start(row: str) -> int | None:
    values = VALUE.finditer(row)
    return next((found.start() for found in values if found[0].startswith("#")), None)
