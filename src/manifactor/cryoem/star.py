"""RELION's STAR files.

Values are read by starfile. Columns and rows are added and dropped in the text itself,
so everything that is not ours stays as it was, byte for byte: other blocks, comments,
the number of digits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra

# Blocks of particles: of RELION 3.1 and later, of older versions, of 3.0.
PARTICLE_BLOCKS = ("particles", "images", "")

# Starts a comment behind a row.
COMMENT = re.compile(r"\s+#")
# A value, quoted or not, with the blanks behind it.
VALUE = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"']\S*)[ \t]*""")
# The number of a column, behind its label.
COLUMN_NUMBER = re.compile(r"#\d+")


def read_star(path: Path) -> dict:
    """Read the blocks of a STAR file by name.

    A loop is a DataFrame, any other block a dict.
    """
    starfile = extra("starfile")
    try:
        blocks = starfile.read(path, always_dict=True)
    except OSError:
        # A file that cannot be opened is no damaged file.
        raise
    except Exception as error:  # a damaged or foreign file may lead to any of them
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{path} is not a STAR file that can be read: {reason}"
        ) from error
    return {name: block for name, block in blocks.items() if block is not None}


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
    with_images = [
        name for name, table in tables.items() if "rlnImageName" in table.columns
    ]
    if len(with_images) == 1:
        return with_images[0]
    found = ", ".join(f"data_{name}" for name in blocks) or "no block"
    raise ValueError(
        f"{path} must hold a table of particles (data_particles, or data_ as RELION "
        f"3.0 writes it); it holds {found}."
    )


@dataclass(frozen=True)
class Loop:
    """Position of one table of a STAR file in its lines.

    Attributes
    ----------
    lines : list of str
        All lines of the file, with their ends.
    labels : list of int
        Lines that name the columns.
    rows : list of int
        Lines that hold a row each.
    """

    lines: list[str]
    labels: list[int]
    rows: list[int]

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without the underscore."""
        labels = [self.lines[i].split()[0] for i in self.labels]
        return [label.removeprefix("_") for label in labels]


def find_loops(text: str) -> dict[str, Loop]:
    """Return the tables of a STAR file by the name of their block.

    Examples
    --------
    >>> find_loops("data_\\nloop_\\n_rlnClassNumber #1\\n3\\n4\\n")[""].rows
    [3, 4]
    """
    lines = text.splitlines(keepends=True)
    words = [line.strip() for line in lines]
    starts = [i for i, word in enumerate(words) if word.startswith("data_")]
    loops = {}
    ends = [*starts[1:], len(words)]
    for start, end in zip(starts, ends, strict=True):
        labels = [i for i in range(start, end) if words[i].startswith("_")]
        # A block without loop_ is a list of pairs and has no rows.
        if labels and "loop_" in words[start : labels[0]]:
            name = words[start].removeprefix("data_")
            rows = _row_lines(words, labels[-1] + 1, end)
            loops[name] = Loop(lines, labels, rows)
    return loops


def _row_lines(
    words: Sequence[str],
    start: int,
    end: int,
) -> list[int]:
    """Return the lines from `start` to `end` that are neither blank nor a comment."""
    lines = range(start, end)
    return [i for i in lines if words[i] and not words[i].startswith("#")]


def count_values(line: str) -> int:
    """Return the number of values in a line.

    Examples
    --------
    >>> count_values("  3 'a name' 0.5 ")
    3
    """
    return len(VALUE.findall(line))


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
    # From the back, so that the positions of those in front stay valid.
    for column in sorted(dropped, reverse=True):
        start, end = values[column].span()
        line = line[:start] + line[end:]
    return line


def with_columns(
    loop: Loop,
    columns: Mapping[str, Sequence[str]],
    keep: np.ndarray,
) -> str:
    """Return the text with columns added and without the rows that are not kept.

    Parameters
    ----------
    loop : Loop
    columns : mapping of str to sequence of str
        Values of the kept rows, written as they are.
    keep : ndarray of int
        Rows to keep, ascending.
    """
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


def _with_labels(
    line: str,
    names: Mapping,
    number: int,
) -> str:
    """Return the line of the last label, with the lines of new ones behind it."""
    text = line.rstrip("\r\n")
    # Line ends of Windows stay what they are; the last line may have none.
    ending = line[len(text) :] or "\n"
    added = [f"_{name} #{number + i} " for i, name in enumerate(names, start=1)]
    return "".join(label + ending for label in [text, *added])


def _with_values(line: str, values: str) -> str:
    """Return a row with values added in front of its comment and its line end."""
    row = COMMENT.split(line.rstrip("\r\n"), maxsplit=1)[0]
    space = "" if not values or row.endswith((" ", "\t")) else " "
    return row + space + values + line[len(row) :]
