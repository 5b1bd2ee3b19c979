"""Damages to Parquet files that stay whole: other types, names and values."""

import io
from datetime import date
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from .mutations import BYTES, HOSTILE_FLOATS, HOSTILE_INTEGERS, Mutation, several

# What a cell may be; a column has cells of one of these types.
CELLS = (
    None,
    True,
    "x",
    "\x1b[31m",
    b"\xff",
    [1.0, 2.0],
    {"a": 1},
    Decimal("1.5"),
    date(2020, 1, 1),
    2**62,
)


def changed_table(data: bytes, rng: Random) -> bytes:
    """Return a Parquet file with one column, or all rows, changed."""
    try:
        table = pa.parquet.read_table(io.BytesIO(data), use_threads=False)
        table = rng.choice(TABLE_CHANGES)(table, rng)
    except Exception:  # a file that an earlier mutation has damaged
        return several(BYTES, data, rng)
    file = io.BytesIO()
    few = rng.choice((1, 7, 60, 1000))
    rows = few if table.num_rows < 2000 else 2**22
    pa.parquet.write_table(table, file, row_group_size=rows, store_schema=rows == few)
    return file.getvalue()


def _other_cells(table: pa.Table, rng: Random) -> pa.Table:
    at = rng.randrange(table.num_columns)
    column = pa.array([rng.choice(CELLS)] * table.num_rows)
    return table.set_column(at, table.column_names[at], column)


def _hostile_cells(table: pa.Table, rng: Random) -> pa.Table:
    at = rng.randrange(table.num_columns)
    cells = table.column(at).to_pylist()
    values = (*HOSTILE_FLOATS, None)
    if pa.types.is_integer(table.column(at).type):
        values = (*(n for n in HOSTILE_INTEGERS if abs(n) < 2**62), None)
    for _ in range(rng.choice((1, 5))):
        cells[rng.randrange(len(cells))] = rng.choice(values)
    return table.set_column(at, table.column_names[at], pa.array(cells))


def _other_names(table: pa.Table, rng: Random) -> pa.Table:
    names = list(table.column_names)
    new = ("", "x", names[0], "sample", "\x1b[31m", "A" * 10_000, "a.b", "\0")
    names[rng.randrange(len(names))] = rng.choice(new)
    return table.rename_columns(names)


def _other_columns(table: pa.Table, rng: Random) -> pa.Table:
    some = rng.sample(range(table.num_columns), rng.randint(0, table.num_columns))
    return table.select(some)


def _other_rows(table: pa.Table, rng: Random) -> pa.Table:
    return table.slice(0, rng.choice((0, 1, 5)))


def _many_rows(table: pa.Table, rng: Random) -> pa.Table:
    """Return the first row so many times that only its repetition is stored."""
    count = rng.choice((10**6, 4 * 10**6, 2 * 10**7))
    return table.select([0]).take(pa.array(np.zeros(count, np.int8)))


def _long_text(table: pa.Table, rng: Random) -> pa.Table:
    """Return the table with a column of one long text, stored once."""
    rows = np.zeros(60_000, np.int8)
    text = pa.DictionaryArray.from_arrays(rows, ["x" * 30_000])
    return table.select([0]).take(pa.array(rows)).append_column("text", text)


TABLE_CHANGES = (
    _many_rows,
    _long_text,
    _other_cells,
    _hostile_cells,
    _hostile_cells,
    _other_names,
    _other_columns,
    _other_rows,
)

PARQUET: tuple[Mutation, ...] = (*[changed_table] * 9, *BYTES)
