"""RELION STAR files: values are read by starfile; columns and rows are added and dropped in the text itself.

So everything that is not ours stays as it was, byte for byte: other blocks, comments, the number of digits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra

NAMES = (
    "particles",
    "images",
    "",
)  # blocks of particles: RELION 3.1 and later, older ones, 3.0
COMMENT = re.compile(r"\s+#")  # what starts a comment behind a row


def read_star(path: Path) -> dict:
    """The blocks of a STAR file by name: a DataFrame for a loop, a dict otherwise."""
    starfile = extra("starfile")
    try:
        blocks = starfile.read(path, always_dict=True)
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is not a STAR file that can be read: {' '.join(str(error).split())}"
        ) from error
    return {name: block for name, block in blocks.items() if block is not None}


def particle_block(blocks: Mapping, path: Path) -> str:
    """Name of the block that holds one row for each particle."""
    tables = {
        name: block
        for name, block in blocks.items()
        if hasattr(block, "columns") and len(block.columns)
    }
    for name in NAMES:
        if name in tables:
            return name
    with_images = [
        name for name, table in tables.items() if "rlnImageName" in table.columns
    ]
    if len(with_images) == 1:
        return with_images[0]
    raise ValueError(
        f"{path} must hold a table of particles (data_particles, or data_ as RELION 3.0 writes it); it holds "
        f"{', '.join('data_' + name for name in blocks) or 'no block'}."
    )


@dataclass(frozen=True)
class Loop:
    """Where one table of a STAR file lies in its lines.

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
        return [self.lines[i].split()[0][1:] for i in self.labels]


def find_loops(text: str) -> dict[str, Loop]:
    """The tables of a STAR file by the name of their block.

    Examples
    --------
    >>> find_loops("data_\\nloop_\\n_rlnClassNumber #1\\n3\\n4\\n")[""].rows
    [3, 4]
    """
    lines = text.splitlines(keepends=True)
    words = [line.strip() for line in lines]
    starts = [i for i, word in enumerate(words) if word.startswith("data_")]
    loops = {}
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        labels = [i for i in range(start, end) if words[i].startswith("_")]
        if labels and "loop_" in words[start : labels[0]]:
            rows = [
                i
                for i in range(labels[-1] + 1, end)
                if words[i] and not words[i].startswith("#")
            ]
            loops[words[start].removeprefix("data_")] = Loop(lines, labels, rows)
    return loops


def without_columns(loop: Loop, prefix: str) -> Loop:
    """The table without the columns whose names start with a prefix; the others are numbered anew if there are any."""
    dropped = {i for i, name in enumerate(loop.columns) if name.startswith(prefix)}
    if not dropped:
        return loop
    lines = loop.lines.copy()
    labels = [line for i, line in enumerate(loop.labels) if i not in dropped]
    for number, i in enumerate(labels, start=1):
        lines[i] = NUMBER.sub(f"#{number}", lines[i])
    for i in (loop.labels[j] for j in dropped):
        lines[i] = ""
    for i in loop.rows:
        values = list(VALUE.finditer(lines[i]))[: len(loop.labels)]
        for j in sorted(dropped, reverse=True):
            lines[i] = lines[i][: values[j].start()] + lines[i][values[j].end() :]
    return Loop(lines, labels, loop.rows)


VALUE = re.compile(
    r"""(?:"[^"]*"|'[^']*'|[^\s"']\S*)[ \t]*"""
)  # with the blanks behind it
NUMBER = re.compile(r"#\d+")


def with_columns(
    loop: Loop, columns: Mapping[str, Sequence[str]], keep: np.ndarray
) -> str:
    """The text with columns added, one value a kept row each, and with all rows dropped that are not kept.

    Parameters
    ----------
    loop : Loop
    columns : mapping of str to sequence of str
        Values of the kept rows, written as they are.
    keep : ndarray of int
        Rows to keep, ascending.
    """
    lines = dict(enumerate(loop.lines))
    number = len(loop.labels)
    last = lines[loop.labels[-1]]
    ending = last[len(last.rstrip("\r\n")) :] or "\n"
    lines[loop.labels[-1]] = last.rstrip("\r\n") + ending
    for i, name in enumerate(columns, start=1):
        lines[loop.labels[-1]] += f"_{name} #{number + i} {ending}"
    kept = {loop.rows[row]: k for k, row in enumerate(keep)}
    for i in loop.rows:
        if i not in kept:
            del lines[i]
            continue
        values = " ".join(values[kept[i]] for values in columns.values())
        line = COMMENT.split(lines[i].rstrip("\r\n"), maxsplit=1)[0]
        space = "" if not values or line.endswith((" ", "\t")) else " "
        lines[i] = line + space + values + lines[i][len(line) :]
    return "".join(lines.values())
