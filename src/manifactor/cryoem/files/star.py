"""RELION's STAR files.

Columns and rows are added and dropped in the text itself, so everything that is not ours stays as
it was, byte for byte: other blocks, comments, the number of digits. `star_tables` reads values.
"""

import linecache
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import extra, one_line

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


# Values of STAR files, read by starfile once the text was found to be fit for it.

# Blanks at which starfile does not divide a row, and the zero byte, which ends it.
ODD_BLANK = re.compile(r"[^\S \t\r\n]|\0")
ODD_ASCII = "\0\x0b\x0c\x1c\x1d\x1e\x1f"


@dataclass(frozen=True)
class StarSettings:
    """Limits of files that starfile reads in seconds."""

    # RELION 5 knows some 500 labels. 2,000 columns take .4 s, 20,000 a minute.
    most_columns: int = 2000

    # Files of particles have a few. 1,000 blocks take 2 s.
    most_blocks: int = 1000

    # Characters of a value outside of tables. 64,000 take .1 s, a million half a minute.
    longest_pair: int = 2**16


def read_star(path: Path, settings: StarSettings = StarSettings()) -> dict[str, Any]:
    """Read the blocks of a STAR file by name.

    A loop is a DataFrame, any other block a dict.
    """
    # Bytes that are not UTF-8 are refused below, unless the file is no STAR file.
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    found = find_blocks(text)
    try:
        _require_readable(text, found, settings)
        blocks = _parsed(path) if found else {}
        _require_same(blocks, found)
    except _Unreadable as error:
        raise ValueError(
            f"{path} is not a STAR file that can be read: {error}"
        ) from error.__cause__
    return blocks


class _Unreadable(ValueError):
    """What is wrong with a file, as the end of a sentence, and what to do."""


def _parsed(path: Path) -> dict[str, Any]:
    """Return the blocks of a file as starfile reads them."""
    starfile = extra("starfile")
    # starfile reads through this cache, and leaves in it a file that it cannot parse.
    linecache.checkcache(str(path))
    try:
        blocks = starfile.read(path, always_dict=True)
    except (OSError, MemoryError):
        # A file that cannot be opened is no damaged file.
        raise
    # Nothing but starfile and pandas is inside, which raise any kind.
    except Exception as error:
        raise _Unreadable(f"{one_line(error)}.") from error
    return {name: block for name, block in blocks.items() if block is not None}


def _require_readable(text: str, found: Mapping, settings: StarSettings) -> None:
    """Refuse what starfile reads otherwise than it is written, or not within seconds."""
    if not found:
        return
    if len(found) > settings.most_blocks:
        raise _Unreadable(
            f"it has {len(found)} blocks, and at most {settings.most_blocks} are read. "
            "Leave out all but the particles and their optics."
        )
    if not _is_utf8(text):
        raise _Unreadable("it must be text in UTF-8. Save it so.")
    odd = _has_odd_blanks(text)
    for name, block in found.items():
        if not block:
            raise _Unreadable(f"its block data_{name} is empty. Remove it, or copy the file again.")
        if isinstance(block, Loop):
            _require_labels(block.columns, settings)
            _require_rows(block, odd=odd)
        elif any(len(line) > settings.longest_pair for line in block):
            raise _Unreadable(
                "a value outside of its tables is longer than "
                f"{settings.longest_pair} characters. Leave it out."
            )


def _has_odd_blanks(text: str) -> bool:
    # One search for each is ten times as fast as one for all.
    if text.isascii():
        return any(blank in text for blank in ODD_ASCII)
    return ODD_BLANK.search(text) is not None


def _is_utf8(text: str) -> bool:
    try:
        _ = text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _require_labels(labels: Sequence[str], settings: StarSettings) -> None:
    if len(labels) > settings.most_columns:
        raise _Unreadable(
            f"a table has {len(labels)} columns, and at most {settings.most_columns} "
            "are read. Leave out those that are not needed."
        )
    if len(set(labels)) < len(labels):
        names, counts = np.unique(labels, return_counts=True)
        raise _Unreadable(
            f"a table has {counts.max()} columns _{names[counts.argmax()]}. Remove all but one."
        )


def _require_rows(loop: Loop, *, odd: bool) -> None:
    """Refuse rows that are not one line with a value for each column."""
    n_labels = len(loop.labels)
    for i in loop.rows:
        line = loop.lines[i]
        values = line_values(line)
        if len(values) != n_labels:
            raise _no_row(line, i + 1, len(values), n_labels)
        if "#" in line and any("#" in value for value in values):
            raise _Unreadable(
                f"line {i + 1} has a # within a value, where a comment would start. "
                "Rename what it names."
            )
        if odd and (blank := ODD_BLANK.search(line)):
            raise _Unreadable(
                f"line {i + 1} has the blank {blank[0]!r}, which is neither space nor "
                "tab. Replace it."
            )


def _no_row(line: str, number: int, count: int, n_labels: int) -> _Unreadable:
    """Return the error of a line that is not the row of a table."""
    if VALUE.sub("", line.strip())[:1] in ('"', "'"):
        return _Unreadable(
            "it has rows that go over several lines, which cannot be kept as they are. "
            f"Write each row on one line; line {number} ends within quotes."
        )
    remedy = "Name all columns, and quote values with spaces."
    if count < n_labels:
        remedy = "It may be truncated; copy it again."
    return _Unreadable(f"line {number} of it has {count} values for {n_labels} columns. {remedy}")


def _require_same(blocks: Mapping[str, Any], found: Mapping) -> None:
    """Refuse tables that starfile has found elsewhere than we have."""
    for name, block in found.items():
        if not isinstance(block, Loop) or not block.rows:
            continue
        table: Any = blocks.get(name, ())
        columns = list(getattr(table, "columns", ()))
        if columns != block.columns or len(table) != len(block.rows):
            raise _Unreadable(
                f"its table data_{name} cannot be told from the lines around it. Write "
                "data_NAME, loop_, the labels and the rows below each other, one line "
                "for each row."
            )
