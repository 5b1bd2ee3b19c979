"""Selections of runs whose coordinates are in parts, written part by part."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from manifactor._support.extras import extra
from manifactor._support.files import write_whole
from manifactor.runs.folder import read_record
from manifactor.runs.parts import PlacedRows, each_part
from manifactor.runs.places import table_as_csv, table_columns
from manifactor.runs.run import Run
from manifactor.runs.selection import inside, require_some


def select_from_parts(
    folder: Path,
    out: Path,
    ranges: Sequence[tuple[int, float, float]],
    *,
    columns: Sequence[tuple[str, float, float]] = (),
    least_confidence: float = 0.0,
    inverted: bool = False,
) -> tuple[int, int]:
    """Write the samples in all ranges, whole or not at all; parameters of `selected`."""
    write = WRITERS.get(out.suffix.lower())
    if write is None:
        raise ValueError(
            f"--out must end in one of {', '.join(WRITERS)} for a run whose "
            f"coordinates are in parts; got {out.suffix or 'no ending'}."
        )
    record = read_record(folder)
    counts: list[int] = []

    def chosen() -> Iterator[PlacedRows]:
        for rows, places in each_part(folder, record):
            part = Run(folder, record, rows, places, drawn=True)
            found = inside(part, ranges, columns, least_confidence)
            some = np.flatnonzero(found != inverted)
            counts.append(len(some))
            yield rows[some], tuple(place[some] for place in places)
        require_some(sum(counts) > 0, inverted)

    write_whole(out, lambda file: write(file, chosen()))
    return sum(counts), record["n_samples"]


def _write_csv(file: BinaryIO, parts: Iterator[PlacedRows]) -> None:
    for number, (rows, places) in enumerate(parts):
        header, _, lines = table_as_csv(places, rows).partition(b"\n")
        file.write(lines if number else header + b"\n" + lines)


def _write_parquet(file: BinaryIO, parts: Iterator[PlacedRows]) -> None:
    arrow, parquet = extra("pyarrow"), extra("pyarrow.parquet")
    rows, places = next(parts)
    table = arrow.table(table_columns(places, rows))
    with parquet.ParquetWriter(file, table.schema) as writer:
        writer.write_table(table)
        for rows, places in parts:
            if len(rows):  # empty row groups would only be looked at in vain
                writer.write_table(arrow.table(table_columns(places, rows)))


WRITERS: dict[str, Callable[[BinaryIO, Iterator[PlacedRows]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
