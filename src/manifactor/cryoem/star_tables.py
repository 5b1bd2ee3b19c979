"""Values of STAR files, read by starfile once the text was found to be fit for it."""

import linecache
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import one_line
from manifactor._support.extras import extra
from manifactor.cryoem.star import VALUE, Loop, find_blocks, line_values

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
