"""A run folder, opened for the commands that come after `fit`, and samples selected from it."""

import csv
import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.files import write_whole
from manifactor.runs.folder import (
    PARTS_FOLDER,
    drawn_places,
    has_parts,
    last_changed,
    part_files,
    read_part,
    read_places,
    read_record,
)
from manifactor.runs.places import (
    CLUSTER,
    FILE,
    Place,
    PlacedRows,
    in_range,
    table_as_csv,
    table_columns,
)
from manifactor.runs.sources import sources
from manifactor.tables.columns import ColumnChoice, Columns
from manifactor.tables.files import column_names, read_like, read_samples, read_table
from manifactor.tables.stores import StoredTable, stored_table


@dataclass(frozen=True)
class Run:
    """A run folder: its record, and the places of its samples."""

    folder: Path
    record: dict  # what run.json says
    rows: np.ndarray  # (n,): the samples' numbers in the input
    places: tuple[Place, ...]  # one for each factor
    # Whether these are some of the run's samples, drawn at random, since all are too many
    drawn: bool = False

    @property
    def input(self) -> Path:
        """The input that was fitted."""
        return Path(self.record.get("input", ""))

    @property
    def inputs(self) -> list[Path]:
        """The input, and other files that were fitted together with it."""
        return [self.input, *map(Path, self.record.get("further", []))]

    @property
    def particles(self) -> Any:
        """Particles of the run's samples, in their order."""
        raise ValueError(
            f"{self.folder} knows no particles. Fit again with --particles ORIGINAL.star or "
            "ORIGINAL.cs. `manifactor select` needs none to write .csv, .parquet or .pkl."
        )

    def images(self) -> Any:
        """Return the images, or volumes, of the run's samples, in their order."""
        raise ValueError(
            f"averages need images or volumes; {self.folder} was fitted to numbers "
            "alone. Fit again with --particles, or fit the images themselves."
        )

    @property
    def known_columns(self) -> dict[str, np.ndarray]:
        """Columns of numbers that are known of the samples, beside their places and their table."""
        return {}

    def selected_file(self, chosen: np.ndarray, suffix: str) -> bytes:
        """Return the file that the samples come from with the chosen ones, and their places."""
        return self.particles[chosen]

    @property
    def warnings(self) -> list[str]:
        """What may be wrong with the run, in sentences."""
        found = []
        if self.drawn:
            found.append(
                f"Shown are {len(self.rows):,} of {self.record['n_samples']:,} "
                "samples, drawn at random; manifactor select finds all in a range."
            )
        then = self.record.get("input_changed")
        if then is not None and not self.input.exists():
            found.append(f"The input {self.input} no longer exists.")
        elif then is not None and last_changed(self.input) != then:
            found.append(
                f"The input {self.input} was changed after the fit; what is shown of "
                "it may be other samples."
            )
        return found

    def __getitem__(self, some: np.ndarray) -> "Run":
        """Return the run with some of its samples only."""
        places = tuple(place[some] for place in self.places)
        return replace(self, rows=self.rows[some], places=places)

    @cached_property
    def names(self) -> list[str] | None:
        """Names of the files of the run's samples, if each has its own."""
        return None if has_parts(self.folder) else self._column(FILE)

    @cached_property
    def clusters(self) -> np.ndarray | None:
        """The cluster of each of the run's samples, counted from 1, if it has any."""
        if "found" not in self.record.get("all_views", {}):
            return None
        return np.array(self._column(CLUSTER), dtype=int)

    def _column(self, name: str) -> list[str] | None:
        """Return a column of coordinates.csv; None if it has none."""
        with (self.folder / "coordinates.csv").open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            if name not in (lines.fieldnames or ()):
                return None
            known = {line["sample"]: line[name] for line in lines}
        return [known.get(str(row), "") for row in self.rows]

    def samples(self) -> np.ndarray:
        """Return the numbers that the run was fitted to, one row for each sample."""
        if self.drawn:
            return self.table.take(self.rows)
        first, *others = (self.read(path) for path in self.inputs)
        samples = np.concatenate([first, *others]) if others else first
        require_as_many(self, len(samples), "samples")
        return samples

    def read(self, path) -> np.ndarray:
        """Return the samples of a file in the columns and scale of the run's input."""
        if "columns" not in self.record:
            return read_samples(path)
        return read_like(path, self._columns)

    @property
    def table(self) -> StoredTable:
        """The table that was fitted, whose rows are read in parts."""
        columns = self._columns
        table = replace(stored_table(self.input, columns.choice), columns=columns)
        if table.n_samples != self.record["n_samples"]:
            raise ValueError(
                f"{self.input} has {table.n_samples} rows now and had "
                f"{self.record['n_samples']} when fitted. Fit again."
            )
        return table

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that were fitted; empty if they have no names."""
        if "columns" not in self.record:
            return column_names(self.record["input"])
        return list(self._columns.names or ())

    @property
    def _columns(self) -> Columns:
        return Columns.from_record(self.record["columns"])

    def place(self, factor: int) -> Place:
        """Return the places on a factor, counted from 1."""
        if not 1 <= factor <= len(self.places):
            raise ValueError(
                f"`factor` must be one of the run's 1 to {len(self.places)}; got {factor}."
            )
        return self.places[factor - 1]


def require_as_many(run: Run, count: int, what: str) -> None:
    """Refuse an input that has another number of samples than when it was fitted."""
    if count != len(run.rows):
        raise ValueError(
            f"the input has {count} {what} now and had {len(run.rows)} when fitted. Fit again."
        )


def places_along(run: Run, factors: Sequence[int]) -> tuple[Place, ...]:
    """Return the coordinates on the factors to average along."""
    if len(set(factors)) < len(factors) or len(factors) not in (1, 2):
        raise ValueError(
            f"averages go along one factor or two different ones; got {list(factors)}."
        )
    places = tuple(map(run.place, factors))
    for factor, place in zip(factors, places, strict=True):
        if place.topology == "other":
            raise ValueError(
                f"averages go along intervals and circles; factor {factor} has more dimensions."
            )
    return places


def members(run: Run, number: int) -> np.ndarray:
    """Return which samples of a run are in a cluster, counted from 1, (n,)."""
    clusters = run.clusters
    if clusters is None:
        raise ValueError(
            f"{run.folder} has no clusters: its samples hang together, or they were not "
            "looked for, as they are in runs of --all-views."
        )
    if number not in clusters:
        raise ValueError(f"the cluster must be one of 1 to {clusters.max()}; got {number}.")
    return clusters == number


def open_run(folder, *, some: bool = False) -> Run:
    """Return the record and the places of a run folder.

    Parameters
    ----------
    folder : path
    some : bool
        Whether some of the samples will do, where all are too many: a run whose
        coordinates are in parts is refused otherwise.

    Returns
    -------
    Run
        Its `record` is what run.json says, and its `rows` are the numbers of the
        samples in the input. `read(path)` returns the samples of another file in the
        columns and scale of the run, and `samples()` those that were fitted.

    Examples
    --------
    >>> from manifactor import load
    >>> new = open_run("run").read("new.csv")  # doctest: +SKIP
    >>> places = load("run").locate(new)  # doctest: +SKIP
    """
    folder = Path(folder)
    record = read_record(folder)
    kind: type[Run] = next(filter(None, (source.run(record) for source in sources())), Run)
    if not has_parts(folder):
        return kind(folder, record, *read_places(folder))
    if not some:
        raise ValueError(
            f"this command reads the coordinates of all samples, and {folder} has "
            f"{record['n_samples']:,} in parts. Use report, explore or select, "
            f"or read {folder / PARTS_FOLDER} with pandas, polars or Dask."
        )
    rows, places = drawn_places(folder, record)
    return kind(folder, record, rows, places, drawn=len(rows) < record["n_samples"])


# Columns of numbers that are known of a run's samples, by name.


def known_column(run: Run, name: str) -> np.ndarray:
    """Return the values of a column for every sample of a run, (n,)."""
    known = table_columns(run.places, run.rows, run.clusters)
    if name not in known:
        known |= run.known_columns
    # RELION's labels start with an underscore in the file, and nowhere else.
    for each in (name, name.removeprefix("_")):
        if each in known:
            return known[each]
    names = []
    if "columns" in run.record and run.input.exists():
        names = column_names(run.input)
    if name not in names:
        names = [*known, *names]
        near = ", ".join(get_close_matches(name, names, n=5, cutoff=0.5) or names[:8])
        raise ValueError(f"there is no column {name!r} of numbers; the nearest are {near}.")
    choice = ColumnChoice(labels=(name,))
    if run.drawn:
        return stored_table(run.input, choice).take(run.rows)[:, 0]
    values = np.concatenate([read_table(path, choice).samples[:, 0] for path in run.inputs])
    require_as_many(run, len(values), "rows")
    return values


# Samples in ranges of factors, as a file of any supported format.


def selected(run: Run, ranges: Sequence[tuple[int, float, float]], **how) -> np.ndarray:
    """Return the samples in all ranges, ascending; options of `inside`."""
    chosen = np.flatnonzero(inside(run, ranges, **how))
    _require_some(len(chosen), how)
    return chosen


def inside(
    run: Run,
    ranges: Sequence[tuple[int, float, float]],
    *,
    columns: Sequence[tuple[str, float, float]] = (),
    cluster: int | None = None,
    least_confidence: float = 0.0,
    inverted: bool = False,
) -> np.ndarray:
    """Return which samples lie in all ranges, ends included, (n,), or do not if inverted."""
    found = np.ones(len(run.rows), dtype=bool) if cluster is None else members(run, cluster)
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


def _require_some(count: int, how: dict) -> None:
    if not count:
        change = "Narrow" if how.get("inverted") else "Widen"
        raise ValueError(f"the ranges must hold some samples; got none. {change} them.")


SELECTIONS = (".star", ".cs", ".csv", ".pkl", ".npy", ".parquet")


def endings(run: Run) -> list[str]:
    """Return the suffixes of the files that a selection of a run can be written to."""
    # A table of particles can be written in its own format only.
    other = {".star", ".cs"} - {Path(run.record.get("particles", "")).suffix.lower()}
    return [suffix for suffix in SELECTIONS if suffix not in other]


def selection(run: Run, chosen: np.ndarray, suffix: str) -> bytes:
    """Return the chosen samples as the bytes of a file of that suffix."""
    if suffix not in SELECTIONS:
        raise ValueError(
            f"--out must end in one of {', '.join(SELECTIONS)}; got {suffix or 'no ending'}."
        )
    some, buffer = run[chosen], io.BytesIO()
    if suffix == ".csv":
        buffer.write(table_as_csv(some.places, some.rows, some.names, some.clusters))
    elif suffix in WRITERS:
        WRITERS[suffix](buffer, iter([(some.rows, some.places)]))
    elif suffix == ".pkl":
        # cryoDRGN's ind.pkl, in the order of the particles' file.
        pickle.dump(np.sort(some.rows), buffer)
    elif suffix == ".npy":
        np.save(buffer, np.sort(some.rows))
    else:
        return run.selected_file(chosen, suffix)
    return buffer.getvalue()


# Selections of runs whose coordinates are in parts, written part by part.


def select_from_parts(
    folder: Path, out: Path, ranges: Sequence[tuple[int, float, float]], **how
) -> tuple[int, int]:
    """Write the samples in all ranges of `inside`; return their number and that of all samples."""
    write = WRITERS.get(out.suffix.lower())
    if write is None:
        raise ValueError(
            f"--out must end in one of {', '.join(WRITERS)} for a run whose "
            f"coordinates are in parts; got {out.suffix or 'no ending'}."
        )
    record = read_record(folder)
    counts: list[int] = []

    def chosen() -> Iterator[PlacedRows]:
        for path in part_files(folder, record):
            part = Run(folder, record, *read_part(path, record), drawn=True)
            some = part[inside(part, ranges, **how)]
            counts.append(len(some.rows))
            yield some.rows, some.places
        _require_some(sum(counts), how)

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
