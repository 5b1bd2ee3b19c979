"""Samples in ranges of factors, as a file of any supported format."""

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.files import write_whole
from manifactor.cryoem.files.formats import particles_with
from manifactor.runs.folder import read_record
from manifactor.runs.parts import each_part
from manifactor.runs.places import (
    PlacedRows,
    coordinate_columns,
    in_range,
    table_as_csv,
    table_columns,
)
from manifactor.runs.run import Run, known_column


def selected(run: Run, ranges: Sequence[tuple[int, float, float]], **how) -> np.ndarray:
    """Return the samples in all ranges, ascending; options of `inside`."""
    chosen = np.flatnonzero(inside(run, ranges, **how))
    _require_some(len(chosen), **how)
    return chosen


def inside(
    run: Run,
    ranges: Sequence[tuple[int, float, float]],
    *,
    columns: Sequence[tuple[str, float, float]] = (),
    least_confidence: float = 0.0,
    inverted: bool = False,
) -> np.ndarray:
    """Return which samples lie in all ranges of factors and columns, both ends included, (n,).

    Or which do not, if inverted.
    """
    found = np.ones(len(run.rows), dtype=bool)
    for place in run.places:
        if place.confidence is not None:
            found &= place.confidence >= least_confidence
    for factor, low, high in ranges:
        found &= run.place(factor).between(low, high)
    for name, low, high in columns:
        if not low <= high:
            raise ValueError(
                f"the range of {name} must be two ascending numbers; got {low:g} {high:g}."
            )
        found &= in_range(known_column(run, name), low, high)
    return found != inverted


def _require_some(count: int, *, inverted: bool = False, **_) -> None:
    if not count:
        change = "Narrow" if inverted else "Widen"
        raise ValueError(f"the ranges must hold some samples; got none. {change} them.")


SELECTIONS = (".star", ".cs", ".csv", ".pkl", ".npy", ".parquet")


def selection(run: Run, chosen: np.ndarray, suffix: str) -> bytes:
    """Return the chosen samples as the bytes of a file of that suffix."""
    if suffix not in SELECTIONS:
        raise ValueError(
            f"--out must end in one of {', '.join(SELECTIONS)}; got {suffix or 'no ending'}."
        )
    some, buffer = run[chosen], io.BytesIO()
    if suffix in WRITERS:
        WRITERS[suffix](buffer, iter([(some.rows, some.places)]))
    elif suffix == ".pkl":
        # cryoDRGN's ind.pkl, in the order of the particles' file.
        pickle.dump(np.sort(some.rows), buffer)
    elif suffix == ".npy":
        np.save(buffer, np.sort(some.rows))
    elif run.particles.path.suffix.lower() != suffix:
        name = run.particles.path.name
        raise ValueError(f"the run's particles are {name}; choose --out with the same ending.")
    else:
        columns = coordinate_columns(some.places, suffix)
        return particles_with(run.particles[chosen], columns)
    return buffer.getvalue()


# Selections of runs whose coordinates are in parts, written part by part.


def select_from_parts(
    folder: Path, out: Path, ranges: Sequence[tuple[int, float, float]], **how
) -> tuple[int, int]:
    """Write the samples in all ranges, whole or not at all; options of `inside`.

    Returns how many they are, and how many samples the run has.
    """
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
            some = part[inside(part, ranges, **how)]
            counts.append(len(some.rows))
            yield some.rows, some.places
        _require_some(sum(counts), **how)

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
