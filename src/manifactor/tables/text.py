"""The layout of a table in text: its lines, its delimiter and its line of names."""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line, warn_caller
from manifactor._support.files import require_regular_file
from manifactor._support.parameters import as_number
from manifactor.estimators.columns import ColumnWarning
from manifactor.tables.columns import ColumnChoice, listed
from manifactor.tables.stores import is_stored, open_store, parquet_layout, stored_table

# Column delimiters of tables in text; None for any white space.
DELIMITERS: dict[str, str | None] = {".csv": ",", ".tsv": "\t", ".txt": None}

# How messages name them.
DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", None: "white space"}

# White space, as pandas is told of it.
SPACES = r"\s+"

# What programs write for a missing value; "nan" is read as a number.
MISSING = frozenset({"", "na", "n/a", "null", "none", "-", "?", "."})

# A number whose comma may separate thousands or decimals.
AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")

# Bytes of a line that are looked at together: a file without line breaks may be long.
PIECE_BYTES = 2**16


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
    _require_delimiter(path, rows, delimiter, header=header)
    if not header:
        return Layout(commented if known else None, len(cells), 0)
    cells = _with_row_names(cells, below or [])
    total = len(below or ())
    if len(cells) != total:
        return Layout(None, total, line)
    index = not cells[0] and all(cells[1:])
    return Layout(_named(cells), total, line, index)


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


def _named(cells: Sequence[str]) -> tuple[str, ...]:
    """Return names for all columns, those of pandas where there is none."""
    return tuple(cell or f"Unnamed: {k}" for k, cell in enumerate(cells))


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
    path: Path, rows: Sequence[tuple[int, list[str]]], delimiter: str | None, *, header: bool
) -> None:
    """Refuse a row that has more numbers with other delimiters or decimal commas."""
    line, cells = rows[header]
    readings = _readings(rows, delimiter, header=header)
    best = max(readings, key=lambda other: _share_of_numbers(_points(readings[other])))
    parts = readings[best]
    if _share_of_numbers(_points(parts)) <= _share_of_numbers(cells):
        return
    found, options, otherwise = _commas(parts)
    how = f"sep={best or SPACES!r}{options}"
    top = _splits(rows[0][1], delimiter)[best]
    if not _is_header(_points(top), _points(parts)):
        how = f"{how}, header=None"
    raise ValueError(
        f"{path} must have {DELIMITER_NAMES[delimiter]} between its columns and "
        f"decimal points; line {line} has {DELIMITER_NAMES[best]}{found}. Convert it, "
        f"for instance with pandas: read_csv({path.name!r}, {how})"
        f".to_csv('new.csv', index=False){otherwise}."
    )


def _commas(cells: Sequence[str]) -> tuple[str, str, str]:
    """Return what commas in numbers are, options of pandas for them, and others."""
    found = [cell for cell in cells if "," in cell]
    if not found:
        return "", "", ""
    if not all(map(AMBIGUOUS.fullmatch, found)):
        return " and decimal commas", ", decimal=','", ""
    return (
        f" and {found[0]}, which may have a thousands separator or a decimal comma",
        ", thousands=','",
        ", or decimal=',' instead of thousands=','",
    )


def _readings(
    rows: Sequence[tuple[int, list[str]]], delimiter: str | None, *, header: bool
) -> dict[str | None, list[str]]:
    """Return the cells of a row by its delimiter, and by others that fit both lines.

    Another delimiter may occur in text alone, such as in lists. If it separates the columns, both
    lines have as many cells, or the line of names has one less: it need not name the column of row
    names.
    """
    splits = _splits(rows[header][1], delimiter)
    if len(rows) == 1:
        return splits
    beside = _splits(rows[1 - header][1], delimiter)
    return {
        other: parts
        for other, parts in splits.items()
        if other == delimiter or 0 <= len(parts) - len(beside.get(other, ())) <= int(header)
    }


def _splits(cells: Sequence[str], delimiter: str | None) -> dict[str | None, list[str]]:
    """Return the cells of a line by its delimiter, and by others that it has."""
    text = (delimiter or " ").join(cells)
    splits: dict[str | None, list[str]] = {
        other: text.split(other) for other in ";\t," if other in text
    }
    spaced = [part for part in text.split(" ") if part]
    if len(spaced) > 1 and not any(_is_text_with(delimiter, part) for part in spaced):
        splits[None] = spaced
    return splits | {delimiter: list(cells)}


def _is_text_with(delimiter: str | None, part: str) -> bool:
    """Return whether a part of a line has its delimiter other than in a number."""
    if delimiter is None or delimiter not in part:
        return False
    return _share_of_numbers(_points([part])) == 0


def _points(cells: Sequence[str]) -> list[str]:
    """Return cells with decimal points in place of commas."""
    return [cell.replace(",", ".") for cell in cells]


def _share_of_numbers(cells: Sequence[str]) -> float:
    return sum(as_number(cell) is not None for cell in cells) / len(cells)


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
    line, byte = _first_other_byte(path)
    with path.open("rb") as file:
        # Spreadsheet programs start "Unicode text" with one of these.
        code = "utf-16" if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE) else "latin1"
    convert = shell_line("iconv", "-f", code, "-t", "utf-8", path)
    return ValueError(
        f"{path} must be text in UTF-8; line {line} has the byte {byte:#04x}, which is "
        f"not. Save it as UTF-8, or convert it: {convert} > new{path.suffix}"
    )


def _first_other_byte(path: Path) -> tuple[int, int]:
    """Return line and value of the first byte that is not UTF-8; zeros for none."""
    decoder = getincrementaldecoder("utf-8")()
    number, piece = 1, b"\n"
    with path.open("rb") as file:
        while piece:
            piece = file.readline(PIECE_BYTES)
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                return number, error.object[error.start]
            number += piece.endswith(b"\n")
    return 0, 0  # the file has changed meanwhile


def _split(line: str, delimiter: str | None) -> list[str]:
    # Faster without quotes, and the csv module limits the length of a cell.
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    if delimiter is None:
        line = " ".join(line.split())
    cells = next(csv.reader([line], delimiter=delimiter or " "), [])
    return [cell.strip() for cell in cells]


# Tables in text and in parquet: numbers, names of columns, columns of text.


@dataclass(frozen=True)
class Table:
    """Numbers in columns."""

    samples: np.ndarray  # (n_samples, n_used)
    numbers: Sequence[int]  # numbers of the columns used in the file, counted from 0
    total: int  # number of columns of the file
    names: tuple[str, ...] | None = None  # names of the columns used


def column_names(path) -> list[str]:
    """Return the names of a table's columns; empty if it has no line of names."""
    path = Path(path)
    suffix = path.suffix.lower()
    if is_stored(path):
        return list(open_store(path).names or ())
    if suffix == ".parquet":
        return list(parquet_layout(path)[0].names)
    if suffix not in DELIMITERS:
        return []
    return list(layout_of(path, DELIMITERS[suffix]).names or ())


def line_of(path: Path, row: int) -> int | None:
    """Return the line of a table in text that holds a row; None for other files."""
    suffix = path.suffix.lower()
    if suffix not in DELIMITERS:
        return None
    delimiter = DELIMITERS[suffix]
    numbered = _rows(path, delimiter, layout_of(path, delimiter))
    return next((line for k, (line, _) in enumerate(numbered) if k == row), None)


def read_text(path: Path, choice: ColumnChoice, *, delimiter: str | None) -> Table:
    """Return a table in text, which may start with a line of column names."""
    layout = layout_of(path, delimiter)
    used = _chosen(path, choice, layout)
    samples = _plain_numbers(path, delimiter, used, layout)
    if samples is None:
        cells = _cells(path, delimiter, used, layout)
        used, samples = _as_numbers(path, cells, layout.names, strict=choice.named)
    return Table(samples, used, layout.total, _names_of(used, layout.names))


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


def _plain_numbers(
    path: Path, delimiter: str | None, used: Sequence[int], layout: Layout
) -> np.ndarray | None:
    """Return columns of numbers; None if a cell is no number."""
    # Where all columns are read, numpy also sees that rows are of one length.
    everything = len(used) == layout.total
    try:
        return np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=layout.header,
            usecols=None if everything else used,
            ndmin=2,
            encoding="utf-8-sig",
            quotechar='"',
        )
    except ValueError:
        return None


def _cells(
    path: Path, delimiter: str | None, used: Sequence[int], layout: Layout
) -> dict[int, list[str]]:
    """Return the cells of some columns as text."""
    columns: dict[int, list[str]] = {number: [] for number in used}
    for line, cells in _rows(path, delimiter, layout):
        if len(cells) != layout.total:
            raise ValueError(
                f"{path} must be a table of numbers: line {line} has {len(cells)} "
                f"cells, and the first row has {layout.total}. Repair or remove it."
            )
        for number, column in columns.items():
            column.append(cells[number])
    return columns


def _rows(path: Path, delimiter: str | None, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that holds a row, and its cells."""
    for line, cells in lines(path, delimiter):
        if line > layout.header:
            yield line, cells


def read_parquet(path: Path, choice: ColumnChoice) -> Table:
    """Return a table in parquet; columns of text are not read."""
    table = stored_table(path, choice)
    columns = table.columns
    samples = open_store(path).read(0, table.n_samples, columns.numbers)
    return Table(samples, columns.numbers, columns.total, columns.names)


def _as_numbers(
    path: Path, cells: Mapping[int, Sequence], names: Sequence[str] | None, *, strict: bool
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the numbers of the columns that hold numbers, and their values.

    Columns of text, such as names of samples, are left out with a warning. A column of numbers with
    a few other cells is refused. If `strict`, because the caller chose the columns, so is a column
    of text.
    """
    columns: dict[int, np.ndarray] = {}
    text = []
    for number, column in cells.items():
        values, wrong = _parsed(column)
        # Where most cells are numbers, the others are mistakes.
        if 2 * len(wrong) > len(column) and not strict:
            text.append(_label(number, names))
            continue
        if len(wrong):
            raise _wrong_cell(path, column, wrong, _label(number, names))
        columns[number] = values
    if text and not columns:
        raise ValueError(
            f"{path} must be a table of numbers: all columns hold text. "
            "Give a file with columns of numbers."
        )
    if text:
        warn_caller(f"columns that hold text were left out: {', '.join(text)}.", ColumnWarning)
    return tuple(columns), np.column_stack(list(columns.values()))


def _parsed(column: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """Return cells as numbers, and the rows of those that are none."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return column, np.empty(0, dtype=int)
    found = [as_number(cell) for cell in column]
    wrong = np.flatnonzero([number is None for number in found])
    values = np.array([np.nan if number is None else number for number in found])
    return values, wrong


def _wrong_cell(path: Path, column: Sequence, wrong: np.ndarray, label: str) -> ValueError:
    """Return an error that names the first cell that is no number."""
    row = int(wrong[0])
    line = line_of(path, row)
    where = f"row {row}" if line is None else f"line {line}"
    cell = str(column[row])
    what = f"holds {cell[:40]!r}" if cell.strip() else "is empty"
    more = f", and {len(wrong) - 1} more cells are no numbers" * (len(wrong) > 1)
    return ValueError(
        f"{path} must be a table of numbers: {where}, column {label} {what}{more}. "
        "Fill it in, remove the row, or leave the column out with --drop."
    )


def _label(number: int, names: Sequence[str] | None) -> str:
    return str(number) if names is None else repr(names[number])


def _names_of(used: Sequence[int], names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names[number] for number in used)
