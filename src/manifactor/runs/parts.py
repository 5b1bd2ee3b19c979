"""Coordinates of many samples in Parquet parts: placed by workers, read in part."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor._support.files import write_whole
from manifactor._support.workers import Here, Workers
from manifactor.estimators.factorizer import Locator
from manifactor.runs.archive import load
from manifactor.runs.places import Place, as_places, from_table, table_columns
from manifactor.tables.parquet_pages import require_plausible_group
from manifactor.tables.stores import StoredTable, holds_numbers, parquet_layout

# Folder of a run that holds the parts, and the names of these.
FOLDER = "coordinates"
NAME = "part-{:05d}.parquet"

# Numbers of samples, and their places on each factor.
PlacedRows = tuple[np.ndarray, tuple[Place, ...]]


@dataclass(frozen=True)
class PartSettings:
    """Settings of parts."""

    # Samples of a part: 10 MB of coordinates, and some seconds of work.
    rows: int = 2**18

    # Numbers of the samples of a part, 128 MB in double precision.
    numbers: int = 2**24

    # Samples that are drawn where not all can be shown, and the parts, spread evenly, that these
    # are drawn of.
    most_drawn: int = 200_000
    parts_read: int = 50

    def most_rows(self, n_columns: int) -> int:
        """Return how many samples of so many columns a part usually has at most."""
        return min(self.rows, max(1, self.numbers // n_columns))


def part_ranges(
    edges: np.ndarray, n_columns: int, *, settings: PartSettings = PartSettings()
) -> list[tuple[int, int]]:
    """Return the first row of each part and the row after its last.

    Parts are whole chunks of the table, so that none is read twice, unless a chunk is too large.

    >>> part_ranges(np.array([0, 100_000, 200_000, 300_000]), 8)
    [(0, 200000), (200000, 300000)]
    """
    largest = max(1, settings.numbers // n_columns)
    usual = settings.most_rows(n_columns)
    ranges, start = [], 0
    while start < edges[-1]:
        chunk = int(edges[np.searchsorted(edges, start, side="right")])
        fitting = int(edges[np.searchsorted(edges, start + usual, side="right") - 1])
        stop = fitting
        if fitting <= start:
            stop = chunk if chunk - start <= largest else start + usual
        ranges.append((start, stop))
        start = stop
    return ranges


def place_in_parts(
    archive: Path,
    table: StoredTable,
    folder: Path,
    *,
    workers: Workers = Here(),
    report: Callable[[float], None] | None = None,
    settings: PartSettings = PartSettings(),
) -> int:
    """Place all samples of a table and write their coordinates in parts.

    Parts that the folder already has are kept. A part is written whole or not at all.
    """
    ranges = part_ranges(table.edges, table.shape[1], settings=settings)
    folder.mkdir(exist_ok=True)
    jobs = []
    for number, (start, stop) in enumerate(ranges):
        target = folder / NAME.format(number)
        if not target.is_file():
            jobs.append((archive, table, start, stop, target))
    before = len(ranges) - len(jobs)

    def reported(fraction: float) -> None:
        if report is not None:
            report((before + fraction * len(jobs)) / len(ranges))

    for _ in workers.map(place_part, jobs, report=reported):
        pass
    return len(ranges)


def place_part(archive: Path, table: StoredTable, start: int, stop: int, target: Path) -> None:
    """Read some rows of a table, place them, and write their coordinates."""
    locator = _locator(archive, archive.stat().st_mtime_ns, table.n_samples)
    placed = locator(table.read(start, stop), start)
    places = as_places(locator.estimator, placed)
    write_whole(target, lambda file: _write(places, np.arange(start, stop), file))


@lru_cache(maxsize=1)
def _locator(archive: Path, changed: int, n_new: int) -> Locator:
    """Return what places samples; a worker reads the fit once, not for each part."""
    return load(archive).locator(n_new)


def _write(places: tuple[Place, ...], rows: np.ndarray, file) -> None:
    table = extra("pyarrow").table(table_columns(places, rows))
    extra("pyarrow.parquet").write_table(table, file)


def has_parts(run: Path) -> bool:
    """Return whether the coordinates of a run are in parts."""
    return (run / FOLDER).is_dir()


def each_part(run: Path, record: dict) -> Iterator[PlacedRows]:
    """Yield the samples of each part of a run: their numbers and their places."""
    for path in _files(run, record):
        yield _read(path, record)


def drawn_places(run: Path, record: dict, *, settings: PartSettings = PartSettings()) -> PlacedRows:
    """Return numbers and places of samples that are drawn of a run at random.

    The same in every call; all of them where there are not too many.
    """
    files = _files(run, record)
    few = np.linspace(0, len(files) - 1, min(len(files), settings.parts_read))
    read = [files[k] for k in few.round().astype(int)]
    # Of all parts the same share: the last one is smaller.
    share = min(1.0, settings.most_drawn / sum(map(_n_rows, read)))
    rng = np.random.default_rng(0)
    parts = []
    for path in read:
        rows, places = _read(path, record)
        count = int(share * len(rows))
        some = np.sort(rng.choice(len(rows), count, replace=False))
        parts.append((rows[some], [place[some] for place in places]))
    rows = np.concatenate([own for own, _ in parts])
    factors = zip(*(places for _, places in parts), strict=True)
    return rows, tuple(map(_joined, factors))


def _joined(parts: tuple[Place, ...]) -> Place:
    """Return places on a factor, one part after the other."""
    return Place(
        np.concatenate([part.coordinate for part in parts]),
        parts[0].topology,
        np.concatenate([part.confidence for part in parts]),
    )


def _files(run: Path, record: dict) -> list[Path]:
    """Return the parts; their number in the record is compared, not believed."""
    folder, recorded = run / FOLDER, record.get("parts", 0)
    found = {path.name for path in folder.glob(NAME.replace("{:05d}", "*"))}
    # No more names than files, and one.
    names = [NAME.format(k) for k in range(min(max(1, recorded), len(found) + 1))]
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{folder / missing[0]} is missing. Fit again.")
    if len(found) != recorded:
        problem = f"parts is {recorded}, and there are {len(found)}"
        raise _damaged(run / "run.json", problem)
    return [folder / name for name in names]


def _n_rows(path: Path) -> int:
    count = _layout(path)[1].num_rows
    if count < 1:
        raise _damaged(path, "it holds no samples")
    return count


def _layout(path: Path) -> tuple[Any, Any]:
    """Return columns and metadata of a part, which claims no more than it holds."""
    try:
        return parquet_layout(path)
    except ValueError as error:
        problem = str(error).replace(f"{path} ", "it ", 1).rstrip(".")
        raise _damaged(path, problem) from error


def _damaged(path: Path, error: Exception | str) -> ValueError:
    problem = one_line(error)
    return ValueError(f"{path} is damaged: {problem}. Fit again.")


def _read(path: Path, record: dict) -> PlacedRows:
    """Return the samples of a part: their numbers and their places."""
    topologies = [factor["topology"] for factor in record["factors"]]
    schema, metadata = _layout(path)
    if not all(map(holds_numbers, schema.types)):
        raise _damaged(path, "it has columns that hold no numbers")
    pyarrow, parquet = extra("pyarrow"), extra("pyarrow.parquet")
    try:
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            require_plausible_group(path, group, schema.names)
        table = parquet.read_table(path, page_checksum_verification=True)
        if len(table) != metadata.num_rows:
            raise ValueError(f"it has {len(table)} of {metadata.num_rows} rows")
        columns = np.column_stack([column.to_numpy() for column in table.columns])
        places = from_table(table.column_names, columns.astype(float), topologies)
        rows = table.column("sample").to_numpy()
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    # Of pyarrow, and of columns that are not those of places.
    except (pyarrow.ArrowException, OSError, ValueError, LookupError) as error:
        raise _damaged(path, error) from error
    if not np.isfinite(columns.astype(float)).all():
        raise _damaged(path, "it has NaN or inf values")
    n_samples = record["n_samples"]
    if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_samples:
        raise _damaged(path, f"samples must have whole numbers below {n_samples}")
    return rows, places
