"""Tables in text: their delimiter, their line of names, and their numbers.

numpy reads a table of nothing but numbers. Where a cell is none, the cells are read one by one:
columns of text are left out with a warning, and a wrong cell is named by its line and column.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line, warn_caller
from manifactor._support.files import require_regular_file
from manifactor._support.parameters import as_number
from manifactor.estimators.columns import ColumnWarning
from manifactor.tables.columns import ColumnChoice, Table, listed, without_text

# Column delimiters of tables in text; None for any white space.
DELIMITERS: dict[str, str | None] = {".csv": ",", ".tsv": "\t", ".txt": None}
# How messages name them.
DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", None: "white space"}
# What programs write for a missing value; "nan" is read as a number.
MISSING = frozenset({"", "na", "n/a", "null", "none", "-", "?", "."})


@dataclass(frozen=True)
class Layout:
    """The columns of a table in text."""

    names: tuple[str, ...] | None
    total: int  # number of columns
    header: int  # number of the line of names, counted from 1; 0 if there is none
    # Whether only the first column has no name, as the index or names of the rows
    index: bool = False

    @property
    def numbers_in_names(self) -> bool:
        """Whether the line of names holds numbers, and might be a sample."""
        return self.header > 0 and any(as_number(name) is not None for name in self.names or ())


def layout_of(path: Path, delimiter: str | None) -> Layout:
    """Return the layout of a table in text."""
    rows = list(islice(lines(path, delimiter), 2))
    line, cells = rows[0] if rows else (0, [])
    _, below = rows[1] if len(rows) > 1 else (0, None)
    commented = _names_in_comments(path, delimiter)
    known = len(commented) == len(cells)
    header = _is_header(cells, None if known else below)
    if not rows or (header and below is None):
        raise ValueError(f"{path} holds no samples; it must hold a line of numbers for each.")
    _require_delimiter(path, rows, delimiter, int(header))
    if not header:
        return Layout(commented if known else None, len(cells), 0)
    cells = _with_row_names(cells, below or [])
    total = len(below or ())
    if len(cells) != total:
        return Layout(None, total, line)
    index = not cells[0] and all(cells[1:])
    # Columns without a name get that of pandas.
    names = tuple(cell or f"Unnamed: {k}" for k, cell in enumerate(cells))
    return Layout(names, total, line, index)


def _names_in_comments(path: Path, delimiter: str | None) -> tuple[str, ...]:
    """Return the names in the last comment before the first row."""
    names: tuple[str, ...] = ()
    for _, cells in lines(path, delimiter, comments=True):
        if not cells[0].startswith("#"):
            break
        # `numpy.savetxt` writes names into a comment.
        names = tuple(cell for cell in (cells[0].lstrip("# "), *cells[1:]) if cell)
    return names


def _with_row_names(names: list[str], below: Sequence[str]) -> list[str]:
    """Return names, with an empty one before them if the rows have names in front.

    R writes row names, text or whole numbers, under no name at all. A single name may also be a
    title, and an empty last cell comes from a delimiter at the end of rows.
    """
    short = len(names) > 1 and len(below) == len(names) + 1
    if not short or not below[-1]:
        return names
    return ["", *names] if _is_whole(below[0]) or _is_word(below[0]) else names


def _is_header(cells: Sequence[str], below: Sequence[str] | None) -> bool:
    """Return whether a first line holds names."""
    if not any(as_number(cell) is not None for cell in cells):
        return any(map(_is_word, cells))
    if below is None or len(below) != len(cells):
        return False
    over_numbers = [
        cell
        for cell, lower in zip(cells, below, strict=True)
        if _is_word(cell) and as_number(lower) is not None
    ]
    return len(over_numbers) > 0 or _has_numbered_columns(cells)


def _has_numbered_columns(cells: Sequence[str]) -> bool:
    """Return whether cells are names as pandas gives them to numbered columns.

    They are 0, 1, ..., which the name of an index may precede.
    """
    start = next(k for k, cell in enumerate(cells) if as_number(cell) is not None)
    before, names = cells[:start], list(cells[start:])
    counted = names == [str(k) for k in range(len(names))]
    if not before:
        return counted
    if not any(before):
        # An index has no name by default; columns may be a selection, or years.
        return all(map(_is_whole, names)) and len(set(names)) == len(names)
    # A single 0 after the name of a sample is its value.
    return counted and len(names) > 1 and all(map(_is_word, before))


def _is_word(cell: str) -> bool:
    """Return whether a cell is text, and not the mark of a missing value."""
    return as_number(cell) is None and cell.lower() not in MISSING


def _is_whole(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _require_delimiter(
    path: Path, rows: Sequence[tuple[int, list[str]]], delimiter: str | None, header: int
) -> None:
    """Refuse a row of numbers that has more of them with another delimiter or decimal commas."""
    line, cells = rows[header]
    others: dict[str | None, list[str]] = {delimiter: cells}
    for other in (";", "\t", ",", None):
        texts = [(delimiter or " ").join(each) for _, each in rows]
        parts = [[each for each in text.split(other or " ") if each or other] for text in texts]
        own, beside = parts[header], parts[-1 - header]
        # Another delimiter may occur in text alone. If it separates the columns, both lines have
        # as many cells, but for a column of row names, which need not have a name.
        fits = other != delimiter and len(beside) > 1 and 0 <= len(own) - len(beside) <= header
        text = [each for each in (*own, *beside) if (delimiter or ",") in each]
        if fits and (other is not None or not text or _share_of_numbers(text, comma=".") == 1):
            others[other] = own
    best = max(others, key=lambda other: _share_of_numbers(others[other], comma="."))
    found = others[best]
    if _share_of_numbers(found, comma=".") <= _share_of_numbers(cells):
        return
    commas = any("," in cell for cell in found)
    raise ValueError(
        f"{path} must have {DELIMITER_NAMES[delimiter]} between its columns and decimal points; "
        f"line {line} has {DELIMITER_NAMES[best]}{' and decimal commas' * commas}. Convert it, for "
        f"instance with pandas: read_csv({path.name!r}, sep={best or chr(92) + 's+'!r}"
        f"{', decimal=' + repr(',') if commas else ''}).to_csv('new.csv', index=False)."
    )


def _share_of_numbers(cells: Sequence[str], comma: str = ",") -> float:
    return sum(as_number(cell.replace(",", comma)) is not None for cell in cells) / len(cells)


def lines(
    path: Path, delimiter: str | None, *, comments: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the numbers of lines, from 1, and their cells; not of empty lines."""
    require_regular_file(path)
    try:
        # Spreadsheet programs start UTF-8 files with a mark that "utf-8-sig" skips.
        with path.open(encoding="utf-8-sig") as file:
            for count, line in enumerate(file, start=1):
                text = line.strip()
                if text and (comments or not text.startswith("#")):
                    yield count, _split(line.rstrip("\r\n"), delimiter)
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise ValueError(
            f"{path} must be a table of numbers: {error}. Repair the quotes in it."
        ) from error


def _not_utf8(path: Path) -> ValueError:
    """Return an error that names the first byte that is not UTF-8, and a remedy."""
    content, line, byte = path.read_bytes(), 0, 0
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
    # Spreadsheet programs start "Unicode text" with one of these.
    code = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
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


def text_column_names(path: Path) -> list[str]:
    """Return the names of a table's columns; empty if it has no line of names."""
    return list(layout_of(path, DELIMITERS[path.suffix.lower()]).names or ())


def line_of(path: Path, row: int) -> int | None:
    """Return the line of a table in text that holds a row; None for other files."""
    suffix = path.suffix.lower()
    if suffix not in DELIMITERS:
        return None
    rows = _rows(path, DELIMITERS[suffix], layout_of(path, DELIMITERS[suffix]))
    return next((line for line, _ in islice(rows, row, None)), None)


def _rows(path: Path, delimiter: str | None, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that holds a row, and its cells."""
    return ((line, cells) for line, cells in lines(path, delimiter) if line > layout.header)


def read_text(path: Path, choice: ColumnChoice) -> Table:
    """Return a table in text, which may start with a line of column names."""
    delimiter = DELIMITERS[path.suffix.lower()]
    layout = layout_of(path, delimiter)
    used = _chosen(path, choice, layout)
    try:
        samples = np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=layout.header,
            # Where all columns are read, numpy also sees that rows are of one length.
            usecols=None if len(used) == layout.total else used,
            ndmin=2,
            encoding="utf-8-sig",
            quotechar='"',
        )
    except ValueError:  # a cell that is not a number
        used, samples = _mixed(path, delimiter, used, layout, strict=choice.named)
    names = None if layout.names is None else tuple(layout.names[number] for number in used)
    return Table(samples, used, layout.total, names)


def _chosen(path: Path, choice: ColumnChoice, layout: Layout) -> tuple[int, ...]:
    """Return the numbers of the columns to read; warn of what may not be meant."""
    used = choice.numbers(layout.names, layout.total)
    # The names of an earlier run were in its table, too.
    if layout.numbers_in_names and choice.labels is None:
        warn_caller(
            f"line {layout.header} of {path} was taken for the names of the columns: "
            f"{listed(layout.names or ())}. If it is a sample, add a line of names "
            "above it.",
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
    path: Path, delimiter: str | None, used: Sequence[int], layout: Layout, *, strict: bool
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the columns that hold numbers, and their values; leave those of text out.

    A column of numbers with a few other cells is refused. If `strict`, because the caller chose the
    columns, so is a column of text.
    """
    columns: dict[int, list[str]] = {number: [] for number in used}
    for line, cells in _rows(path, delimiter, layout):
        if len(cells) != layout.total:
            raise ValueError(
                f"{path} must be a table of numbers: line {line} has {len(cells)} "
                f"cells, and the first row has {layout.total}. Repair or remove it."
            )
        for number, column in columns.items():
            column.append(cells[number])
    values = {number: list(map(as_number, column)) for number, column in columns.items()}
    # Where most cells are numbers, the others are mistakes.
    text = [
        number
        for number, found in values.items()
        if 2 * found.count(None) > len(found) and not strict
    ]
    used = without_text(path, used, text, layout.names)
    for number in used:
        if None in values[number]:
            raise _wrong_cell(path, columns[number], values[number], number, layout.names)
    return used, np.array([values[number] for number in used], dtype=np.float64).T.copy()


def _wrong_cell(
    path: Path,
    column: Sequence[str],
    values: list[float | None],
    number: int,
    names: Sequence[str] | None,
) -> ValueError:
    """Return an error that names the first cell that is not a number."""
    row, count = values.index(None), values.count(None)
    label = number if names is None else repr(names[number])
    what = f"holds {column[row][:40]!r}" if column[row] else "is empty"
    more = f", and {count - 1} more cells are not numbers" * (count > 1)
    return ValueError(
        f"{path} must be a table of numbers: line {line_of(path, row)}, column {label} {what}"
        f"{more}. Fill it in, remove the row, or leave the column out with --drop."
    )
