"""Coordinates of many samples in Parquet parts: placed by workers, read in part."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.files import write_whole
from manifactor._support.workers import Here, Workers, ignored
from manifactor.estimators.factorizer import Locator
from manifactor.runs.archive import load
from manifactor.runs.places import Place, PlacedRows, as_places, damaged, from_table, table_columns
from manifactor.tables.stores import StoredTable, open_store

# Folder of a run that holds the parts, and the names of these.
FOLDER = "coordinates"
NAME = "part-{:05d}.parquet"

# Samples of a part: 10 MB of coordinates, and some seconds of work. And numbers of its samples, 128
# MB in double precision.
MOST_ROWS, MOST_NUMBERS = 2**18, 2**24
# Samples that are drawn where not all can be shown.
MOST_DRAWN = 200_000


def most_rows(n_columns: int) -> int:
    """Return the usual maximum number of rows in a part with `n_columns` columns."""
    return min(MOST_ROWS, max(1, MOST_NUMBERS // n_columns))


def part_ranges(edges: np.ndarray, n_columns: int) -> list[tuple[int, int]]:
    """Return the first row of each part and the row after its last.

    Parts are whole chunks of the table, so that none is read twice, unless a chunk is too large.

    >>> part_ranges(np.array([0, 100_000, 200_000, 300_000]), 8)
    [(0, 200000), (200000, 300000)]
    """
    largest, usual = max(1, MOST_NUMBERS // n_columns), most_rows(n_columns)
    ranges, start = [], 0
    while start < edges[-1]:
        chunk = int(edges[np.searchsorted(edges, start, side="right")])
        fitting = int(edges[np.searchsorted(edges, start + usual, side="right") - 1])
        single = chunk if chunk - start <= largest else start + usual
        stop = fitting if fitting > start else single
        ranges.append((start, stop))
        start = stop
    return ranges


def place_in_parts(
    archive: Path,
    table: StoredTable,
    folder: Path,
    *,
    workers: Workers = Here(),
    report: Callable[[float], None] = ignored,
) -> int:
    """Place all samples of a table and write their coordinates in parts.

    Parts that the folder already has are kept. A part is written whole or not at all.
    """
    ranges = part_ranges(table.edges, table.shape[1])
    folder.mkdir(exist_ok=True)
    jobs = []
    for number, (start, stop) in enumerate(ranges):
        target = folder / NAME.format(number)
        if not target.is_file():
            jobs.append((archive, table, start, stop, target))
    before = len(ranges) - len(jobs)

    def reported(fraction: float) -> None:
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


def drawn_places(run: Path, record: dict) -> PlacedRows:
    """Return numbers and places of samples that are drawn of a run at random.

    The same in every call; all of them where there are not too many.
    """
    files = _files(run, record)
    # From at most 50 parts, spread evenly.
    few = np.linspace(0, len(files) - 1, min(len(files), 50))
    # Of all parts the same share: the last one is smaller.
    share = MOST_DRAWN / max(1.0, record["n_samples"] * (len(few) / len(files)))
    rng = np.random.default_rng(0)
    parts = []
    for k in few.round().astype(int):
        rows, places = _read(files[k], record)
        count = int(min(1.0, share) * len(rows))
        some = np.sort(rng.choice(len(rows), count, replace=False))
        parts.append((rows[some], *(place[some] for place in places)))
    rows, *factors = zip(*parts, strict=True)
    joined = (
        Place(
            np.concatenate([place.coordinate for place in factor]),
            factor[0].topology,
            np.concatenate([place.confidence for place in factor]),
        )
        for factor in factors
    )
    return np.concatenate(rows), tuple(joined)


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
        raise damaged(run / "run.json", problem)
    return [folder / name for name in names]


def _read(path: Path, record: dict) -> PlacedRows:
    """Return the samples of a part, which claims no more than it holds."""
    topologies = [factor["topology"] for factor in record["factors"]]
    try:
        store = open_store(path)
        if store.text:
            raise ValueError("it has columns that hold no numbers")
        columns = store.read(0, int(store.edges[-1]), range(store.total))
    except (ValueError, LookupError) as error:
        raise damaged(path, str(error).replace(f"{path} ", "it ", 1).rstrip(".")) from error
    header, below = list(store.names or ()), record["n_samples"]
    return from_table(path, header, columns.astype(float, copy=False), topologies, below=below)
