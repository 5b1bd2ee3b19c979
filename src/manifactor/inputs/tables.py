"""Tables in text and in parquet: numbers, names of columns, columns of text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.parameters import as_number
from manifactor._support.warning import warn_caller
from manifactor.estimators.columns import ColumnWarning
from manifactor.inputs.columns import ColumnChoice, listed
from manifactor.inputs.layout import DELIMITERS, Layout, layout_of, lines
from manifactor.inputs.stored import stored_table
from manifactor.inputs.stores import is_stored, open_store, parquet_layout


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
