"""Tables in text: their delimiter, their line of names, and their numbers.

numpy reads a table of nothing but numbers. Where a cell is none, the cells are read one by one:
columns of text are left out with a warning, and a wrong cell is named by its line and column.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line, warn_caller
from manifactor._support.files import require_regular_file
from manifactor._support.parameters import as_number
from manifactor.samples.columns import ColumnWarning
from manifactor.tables.columns import ColumnChoice, Columns, Table, quoted, without_text

# Column delimiters of tables in text; None for any white space.
DELIMITERS: dict[str, str | None] = {".csv": ",", ".tsv": "\t", ".txt": None}
# How messages name them.
DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", None: "white space"}
# What programs write for a missing value; "nan" is read as a number.
MISSING = frozenset({"", "na", "n/a", "null", "none", "-", "?", "."})
# What stands for a byte that is not UTF-8.
NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class Layout:
    """The columns of a table in text."""

    names: tuple[str, ...] | None
    total: int  # number of columns
    header: int = 0  # number of the line of names, counted from 1; 0 if there is none
    # Whether only the first column has no name, as the index or names of the rows
    index: bool = False


def layout_of(path: Path) -> Layout:
    """Return the layout of a table in text."""
    names: tuple[str, ...] = ()
    rows = list(islice(lines(path), 2))
    line, cells = rows[0] if rows else (0, [])
    # `numpy.savetxt` writes names into a comment; the last before the first row counts.
    for number, comment in lines(path, comments=True):
        if number >= line:
            break
        names = tuple(cell for cell in (comment[0].lstrip("# "), *comment[1:]) if cell)
    below = rows[1][1] if len(rows) > 1 else []
    is_named = len(names) == len(cells)
    header = _is_header(cells, [] if is_named else below)
    if not rows or (header and not below):
        raise ValueError(f"{path} holds no samples; it must hold a line of numbers for each.")
    _require_delimiter(path, rows, int(header))
    if not header:
        return Layout(names if is_named else None, len(cells))
    cells = _with_row_names(cells, below)
    if len(cells) != len(below):
        return Layout(None, len(below), line)
    # Columns without a name get that of pandas.
    names = tuple(cell or f"Unnamed: {k}" for k, cell in enumerate(cells))
    return Layout(names, len(below), line, index=not cells[0] and all(cells[1:]))


def _with_row_names(names: list[str], below: list[str]) -> list[str]:
    """Return names, with an empty one before them if the rows have names in front, as R writes."""
    # A single name may also be a title; an empty last cell comes from a delimiter at the end.
    short = len(names) > 1 and len(below) == len(names) + 1 and below[-1]
    return ["", *names] if short and (below[0].isdecimal() or _is_word(below[0])) else names


def _is_header(cells: list[str], below: list[str]) -> bool:
    """Return whether a first line holds names."""
    if not any(map(_is_number, cells)):
        return any(map(_is_word, cells))
    if len(below) != len(cells):
        return False
    pairs = zip(cells, below, strict=True)
    over_numbers = any(_is_word(cell) and _is_number(lower) for cell, lower in pairs)
    return over_numbers or _has_numbered_columns(cells)


def _has_numbered_columns(cells: list[str]) -> bool:
    """Return whether cells are 0, 1, ..., as pandas names columns, perhaps behind an index."""
    start = [_is_number(cell) for cell in cells].index(True)
    before, names = cells[:start], cells[start:]
    counted = names == [str(k) for k in range(len(names))]
    if start and not any(before):
        # An index has no name by default; columns may be a selection, or years.
        return all(map(str.isdecimal, names)) and len(set(names)) == len(names)
    # A single 0 after the name of a sample is its value.
    return counted and all(map(_is_word, before)) and (len(names) > 1 or not start)


def _is_number(cell: str) -> bool:
    return as_number(cell) is not None


def _is_word(cell: str) -> bool:
    """Return whether a cell is text, and not the mark of a missing value."""
    return not _is_number(cell) and cell.lower() not in MISSING


def _require_delimiter(path: Path, rows: Sequence[tuple[int, list[str]]], header: int) -> None:
    """Refuse a row of numbers that has more of them with another delimiter or decimal commas."""
    line, cells = rows[header]
    delimiter = _delimiter(path)
    texts = [(delimiter or " ").join(row) for _, row in rows]
    others = {delimiter: cells}
    for other in (";", "\t", ",", None):
        parts = [[cell for cell in text.split(other or " ") if cell or other] for text in texts]
        split, beside = parts[header], parts[-1 - header]
        # Another delimiter may occur in text alone. If it separates the columns, both lines have
        # as many cells, but for a column of row names, which need not have a name.
        fits = other != delimiter and len(beside) > 1 and 0 <= len(split) - len(beside) <= header
        text = [cell for cell in (*split, *beside) if (delimiter or ",") in cell]
        if fits and (other is not None or all(map(_is_number, _with_points(text)))):
            others[other] = split
    best = max(others, key=lambda other: _share_of_numbers(_with_points(others[other])))
    if _share_of_numbers(_with_points(others[best])) <= _share_of_numbers(cells):
        return
    commas = any("," in cell for cell in others[best])
    raise ValueError(
        f"{path} must have {DELIMITER_NAMES[delimiter]} between its columns and decimal points; "
        f"line {line} has {DELIMITER_NAMES[best]}{' and decimal commas' * commas}. Convert it, for "
        f"instance with pandas: read_csv({path.name!r}, sep={best or chr(92) + 's+'!r}"
        f"{', decimal=' + repr(',') if commas else ''}).to_csv('new.csv', index=False)."
    )


def _with_points(cells: Sequence[str]) -> list[str]:
    return [cell.replace(",", ".") for cell in cells]


def _share_of_numbers(cells: Sequence[str]) -> float:
    return sum(map(_is_number, cells)) / len(cells)


def _delimiter(path: Path) -> str | None:
    return DELIMITERS[path.suffix.lower()]


def lines(path: Path, *, comments: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the numbers of lines, from 1, and their cells; not of empty lines."""
    require_regular_file(path)
    delimiter = _delimiter(path)
    try:
        # Spreadsheet programs start UTF-8 files with a mark that "utf-8-sig" skips.
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            for count, line in enumerate(file, start=1):
                if wrong := NOT_UTF8.search(line):
                    raise _not_utf8(path, count, ord(wrong[0]) & 0xFF)
                text = line.strip()
                if text and (comments or not text.startswith("#")):
                    yield count, _split(line.rstrip("\r\n"), delimiter)
    except csv.Error as error:
        raise ValueError(
            f"{path} must be a table of numbers: {error}. Repair the quotes in it."
        ) from error


def _not_utf8(path: Path, line: int, byte: int) -> ValueError:
    """Return an error that names the first byte that is not UTF-8, and a remedy."""
    # Spreadsheet programs start "Unicode text" with FF FE or FE FF.
    code = "utf-16" if line == 1 and byte >= 0xFE else "latin1"
    convert = shell_line("iconv", "-f", code, "-t", "utf-8", path)
    return ValueError(
        f"{path} must be text in UTF-8; line {line} has the byte {byte:#04x}, which is "
        f"not. Save it as UTF-8, or convert it: {convert} > new{path.suffix}"
    )


def _split(line: str, delimiter: str | None) -> list[str]:
    # Faster without quotes, and the csv module limits the length of a cell.
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    if delimiter is None:
        line = " ".join(line.split())
    cells = next(csv.reader([line], delimiter=delimiter or " "), [])
    return [cell.strip() for cell in cells]


def line_of(path: Path, row: int) -> int | None:
    """Return the line of a table in text that holds a row; None for other files."""
    if path.suffix.lower() not in DELIMITERS:
        return None
    return next((line for line, _ in islice(_rows(path, layout_of(path)), row, None)), None)


def _rows(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that holds a row, and its cells."""
    return ((line, cells) for line, cells in lines(path) if line > layout.header)


def read_text(path: Path, choice: ColumnChoice) -> Table:
    """Return a table in text, which may start with a line of column names."""
    layout = layout_of(path)
    used = _chosen(path, choice, layout)
    try:
        samples = np.loadtxt(
            path,
            delimiter=_delimiter(path),
            skiprows=layout.header,
            # Where all columns are read, numpy also sees that rows are of one length.
            usecols=None if len(used) == layout.total else used,
            ndmin=2,
            encoding="utf-8-sig",
            quotechar='"',
        )
    except ValueError:  # a cell that is not a number
        used, samples = _mixed(path, used, layout, strict=choice.named)
    return Table(samples, Columns.of(used, layout.total, layout.names))


def read_labels(path: Path, choice: ColumnChoice) -> np.ndarray:
    """Return the cells of one column as text, (n,); None for missing ones."""
    layout = layout_of(path)
    (number,) = choice.numbers(layout.names, layout.total)
    cells = (next(iter(cells[number:]), "") for _, cells in _rows(path, layout))
    return np.array([None if cell.lower() in MISSING else cell for cell in cells], dtype=object)


def _chosen(path: Path, choice: ColumnChoice, layout: Layout) -> tuple[int, ...]:
    """Return the numbers of the columns to read; warn of what may not be meant."""
    used = choice.numbers(layout.names, layout.total)
    # The names of an earlier run were in its table, too.
    if layout.header and choice.labels is None and any(map(_is_number, layout.names or ())):
        warn_caller(
            f"line {layout.header} of {path} was taken for the names of the columns: "
            f"{quoted(layout.names or ())}. If it is a sample, add a line of names above it.",
            ColumnWarning,
        )
    if not layout.index or choice.named or used[0] != 0 or len(used) == 1:
        return used
    warn_caller(
        f"the first column of {path} has no name and was left out, as the index of "
        f"the rows. To use it, give it a name, or pass --columns 0-{layout.total - 1}.",
        ColumnWarning,
    )
    return used[1:]


def _mixed(
    path: Path, used: Sequence[int], layout: Layout, *, strict: bool
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the columns that hold numbers, and their values; leave those of text out.

    A column of numbers with a few other cells is refused, and one of text if `strict`.
    """
    rows = list(_rows(path, layout))
    for line, cells in rows:
        if len(cells) != layout.total:
            raise ValueError(
                f"{path} must be a table of numbers: line {line} has {len(cells)} "
                f"cells, and the first row has {layout.total}. Repair or remove it."
            )
    wrong = {
        k: [(line, cells[k]) for line, cells in rows if not _is_number(cells[k])] for k in used
    }
    # Where most cells are numbers, the others are mistakes.
    text = [number for number in used if 2 * len(wrong[number]) > len(rows) and not strict]
    used = without_text(path, used, text, layout.names)
    for number in used:
        for line, cell in wrong[number][:1]:
            label = number if layout.names is None else repr(layout.names[number])
            what = f"holds {cell[:40]!r}" if cell else "is empty"
            more = len(wrong[number]) - 1
            raise ValueError(
                f"{path} must be a table of numbers: line {line}, column {label} {what}"
                f"{f', and {more} more cells are not numbers' * (more > 0)}. Fill it in, remove "
                "the row, or leave the column out with --drop."
            )
    return used, np.array([[float(cells[number]) for number in used] for _, cells in rows])
