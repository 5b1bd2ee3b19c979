"""A run on disk: a folder with the fit, the coordinates of all samples, and a record."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from manifactor._support import __version__
from manifactor._support.errors import extra, warn_caller
from manifactor._support.files import (
    hold,
    put_back,
    require_place,
    whole_folder,
    write_bytes,
    write_whole,
)
from manifactor._support.workers import Here, Workers, ignored
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.factorizer import Locator
from manifactor.judging.evidence import Evidence, Warp
from manifactor.models.separable.symmetry import Symmetries
from manifactor.runs.archive import (
    ARCHIVE_VERSION,
    FORMAT,
    is_run,
    load,
    require_version,
    save,
    write_tree,
)
from manifactor.runs.places import (
    FILE,
    Place,
    PlacedRows,
    as_places,
    damaged,
    fitted_places,
    from_table,
    table_as_csv,
    table_columns,
)
from manifactor.runs.record_form import RUN_RECORD, misfit
from manifactor.runs.sources import sources
from manifactor.tables.stores import StoredTable, open_store


def run_evidence(fit: ManifoldFactorizer, record: Mapping) -> Evidence:
    """Return the evidence of a fit, with what the record of a run adds."""
    return reduce(lambda known, kind: kind.evidence(known, record), sources(), fit.evidence_)


class InputWarning(UserWarning):
    """The input was changed or deleted while it was fitted."""


def last_changed(path: Path) -> str:
    """Return when a file or folder was last changed, to the second."""
    return _as_date(path.stat().st_mtime_ns)


def _as_date(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat(timespec="seconds")


class InputState:
    """The files of an input as they were at a time."""

    def __init__(self, files: Sequence[Path | str | None]) -> None:
        """Look at the files that are given, the input first."""
        self.files = {Path(path): _state_of(Path(path)) for path in files if path is not None}

    @property
    def record(self) -> dict[str, str]:
        """The entry of run.json."""
        state = next(iter(self.files.values()))
        return {"input_changed": _as_date(state[0])} if state else {}

    @property
    def changed(self) -> list[Path]:
        """Files that are others by now, or gone."""
        return [path for path, state in self.files.items() if _state_of(path) != state]


def _state_of(path: Path) -> tuple[int, int] | None:
    """Return the time of the last change and the bytes of a file; None for what does not exist."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return None


def warn_of_changes(state: InputState) -> None:
    """Warn of files that are others now: a fit that is finished is worth more than an error."""
    for path in state.changed:
        changed = (
            f"{path} was changed while it was fitted; the run may be of both versions. "
            "Fit again if its content is another."
        )
        removed = f"{path} was removed while it was fitted."
        warn_caller(changed if path.exists() else removed, InputWarning)


# Writing and reading a run folder.


def write_run(
    fit: ManifoldFactorizer,
    folder,
    *,
    record: dict,
    places: Sequence[Place] | None = None,
    rows: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    clusters: np.ndarray | None = None,
    files: Mapping[str, bytes] | None = None,
    trees: Mapping[str, object] | None = None,
    parts: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Write a run folder: factorization.npz, coordinates.csv and run.json."""
    folder = Path(folder)
    require_new_run(folder, overwrite=overwrite)
    # JSON knows neither nan nor inf.
    text = json.dumps(_summary(fit, record), default=str)
    text = json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2) + "\n"
    with whole_folder(folder) as beside:
        save(fit, beside / "factorization.npz")
        if parts is None:
            places = fitted_places(fit) if places is None else places
            rows = np.arange(len(places[0])) if rows is None else rows
            table = table_as_csv(places, rows, names, clusters)
            (beside / "coordinates.csv").write_bytes(table)
        for name, content in (files or {}).items():
            (beside / name).write_bytes(content)
        for name, tree in (trees or {}).items():
            write_tree(beside / name, tree)
        (beside / "run.json").write_text(text, encoding="utf-8")
        # Last: an error before leaves them where --resume finds them.
        if parts is not None:
            parts.rename(beside / parts.name)


# What run.json has of the evidence as it is.
SAID = (
    "verdict",
    "probability",
    "probabilities",
    "unfinished",
    "sense",
    "reason",
    "answer",
    "advice",
)


def _summary(fit: ManifoldFactorizer, record: dict) -> dict:
    """Return what run.json holds."""
    evidence = run_evidence(fit, record)
    return {
        "format": f"{FORMAT} run",
        "version": ARCHIVE_VERSION,
        "n_samples": len(fit.spectrum_.weights),
        **record,
        **{name: getattr(evidence, name) for name in SAID},
        "evidence": " ".join([*evidence.sentences, evidence.explanation]),
        "tests": [asdict(test) for test in evidence.tests],
        "costs": dict(evidence.costs),
        "candidates": [asdict(each) for each in fit.candidates_],
        "factors": [{"topology": f.topology, "dimension": f.dimension} for f in fit.factors_],
        "agreement": evidence.agreement,
        "reliability": evidence.reliability,
        "leakage": evidence.leakage.tolist(),
        "warp": _plain(evidence.warp),
        # Angles are in coordinates.csv; a turn is one of the smoothed samples.
        "symmetries": _plain(evidence.symmetries, but=("angles", "turn")),
        "seconds": fit.timings_,
        "versions": versions(),
    }


def _plain(record: Warp | Symmetries | None, *, but: Sequence[str] = ()) -> dict | None:
    """Return a part of the evidence with lists for arrays, but for some fields."""
    if record is None:
        return None
    shown = {name: each for name, each in vars(record).items() if name not in but}
    return {name: np.asarray(each).tolist() for name, each in shown.items()}


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    packages = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    return {"manifactor": __version__, **packages}


def require_new_run(folder: Path, *, overwrite: bool) -> None:
    """Raise ValueError for a folder that cannot be written, before any work is done."""
    if os.path.lexists(folder) and not (overwrite and is_run(folder)):
        other = "It is not a run folder; choose another --out."
        hint = "Choose another --out, or pass --overwrite." if is_run(folder) else other
        raise ValueError(f"the output folder must not exist yet; {folder} does. {hint}")
    require_place(folder, remedy="Choose another --out.")


def read_run(folder) -> tuple[dict, ManifoldFactorizer]:
    """Return the record in run.json and the fit of a run folder."""
    folder = Path(folder)
    record, fit = read_record(folder), load(folder / "factorization.npz")
    if not isinstance(fit, ManifoldFactorizer):
        raise ValueError(
            f"{folder / 'factorization.npz'} must hold factors; got a "
            f"{type(fit).__name__}. Fit again."
        )
    if [f.topology for f in fit.factors_] != [f["topology"] for f in record["factors"]]:
        raise ValueError(
            f"{folder / 'run.json'} and factorization.npz do not have the same factors. Fit again."
        )
    return record, fit


def read_record(folder: Path) -> dict:
    """Return what run.json of a run folder says."""
    put_back(folder)
    if not is_run(folder):
        missing = " It does not exist: check its name, or run `manifactor fit` first."
        hint = "" if folder.exists() else missing
        raise ValueError(
            f"{folder} is not a run folder: it must hold run.json and factorization.npz.{hint}"
        )
    path = folder / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    if problem := misfit(record, {"format": str, "version": int, "versions": dict[str, Any]}):
        raise damaged(path, problem)
    if record["format"] != f"{FORMAT} run":
        raise damaged(path, "it is not a record of a run")
    require_version(path, record["version"], record["versions"].get(FORMAT, "of that time"))
    if problem := misfit(record, RUN_RECORD):
        raise damaged(path, problem)
    return record


def write_name(folder: Path, factor: int, name: str) -> None:
    """Give a factor, counted from 0, a name, which run.json keeps."""
    # Another explorer may name another factor at the same time.
    with hold(path := folder / "run.json"):
        record = read_record(folder)
        names = factor_names(record)
        names[factor] = name
        write_bytes(path, (json.dumps({**record, "names": names}, indent=2) + "\n").encode())


def factor_names(record: Mapping) -> list[str]:
    """Return the names that people gave to the factors of a run; "" for those without one."""
    return [*record.get("names", []), *[""] * len(record["factors"])][: len(record["factors"])]


def read_places(folder) -> PlacedRows:
    """Return the numbers of a run's samples in the input, and their places."""
    folder = Path(folder)
    record = read_record(folder)
    path = folder / "coordinates.csv"
    if not path.is_file():
        raise ValueError(f"{path} is missing. Fit again.")
    try:
        with path.open(encoding="utf-8") as file:
            header = file.readline().strip().split(",")
            # Names of files come last.
            header = header[:-1] if header[-1] == FILE else header
            columns = np.loadtxt(file, delimiter=",", ndmin=2, usecols=range(len(header)))
    except ValueError as error:
        # What follows the semicolon is advice for those who call loadtxt.
        raise damaged(path, str(error).partition(";")[0]) from error
    if len(columns) != record["n_samples"]:
        raise damaged(path, f"it has {len(columns)} of {record['n_samples']} samples")
    return from_table(path, header, columns, record["factors"])


# Coordinates of many samples in Parquet parts: placed by workers, read in part.

PARTS_FOLDER = "coordinates"
PART_NAME = "part-{:05d}.parquet"
# Samples of a part, 10 MB of coordinates and some seconds of work, and their numbers, 128 MB.
MOST_ROWS, MOST_NUMBERS = 2**18, 2**24


def most_rows(n_columns: int) -> int:
    """Return the usual maximum number of rows in a part with `n_columns` columns."""
    return min(MOST_ROWS, max(1, MOST_NUMBERS // n_columns))


def part_ranges(edges: np.ndarray, n_columns: int) -> list[tuple[int, int]]:
    """Return the first row of each part and the row after its last: whole chunks, if they fit."""
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
    """Place all samples of a table in parts; return how many there are."""
    folder.mkdir(exist_ok=True)
    jobs = [
        (archive, table, start, stop, folder / PART_NAME.format(number))
        for number, (start, stop) in enumerate(part_ranges(table.edges, table.shape[1]))
    ]
    for _ in workers.map(place_part, jobs, report=report):
        pass
    return len(jobs)


def place_part(archive: Path, table: StoredTable, start: int, stop: int, target: Path) -> None:
    """Read some rows of a table, place them, and write their coordinates, unless it was done."""
    if target.is_file():
        return
    locator = _locator(archive, archive.stat().st_mtime_ns, table.n_samples)
    places = as_places(locator.estimator, locator(table.read(start, stop), start))
    columns = extra("pyarrow").table(table_columns(places, np.arange(start, stop)))
    write_whole(target, partial(extra("pyarrow.parquet").write_table, columns))


@lru_cache(maxsize=1)
def _locator(archive: Path, changed: int, n_new: int) -> Locator:
    """Return what places samples; a worker reads the fit once, not for each part."""
    return load(archive).locator(n_new)


def has_parts(run: Path) -> bool:
    """Return whether the coordinates of a run are in parts."""
    return (run / PARTS_FOLDER).is_dir()


def drawn_places(run: Path, record: dict) -> PlacedRows:
    """Return numbers and places of samples drawn of a run, the same in every call; all if few."""
    files = part_files(run, record)
    # From at most 50 parts, spread evenly.
    few = np.linspace(0, len(files) - 1, min(len(files), 50)).round().astype(int)
    # Of all parts the same share, since the last one is smaller, and 200,000 of all.
    share = min(1.0, 200_000 / max(1.0, record["n_samples"] * (len(few) / len(files))))
    rng = np.random.default_rng(0)
    parts = []
    for rows, places in (read_part(files[k], record) for k in few):
        count = int(share * len(rows))
        some = np.sort(rng.choice(len(rows), count, replace=False))
        parts.append((rows[some], *(place[some] for place in places)))
    numbers, *factors = zip(*parts, strict=True)
    return np.concatenate(numbers), tuple(map(Place.joined, factors))


def part_files(run: Path, record: dict) -> list[Path]:
    """Return the parts; their number in the record is compared, not believed."""
    recorded, parts = record.get("parts", 0), [run / PARTS_FOLDER / PART_NAME.format(0)]
    while parts[-1].is_file():
        parts.append(parts[-1].with_name(PART_NAME.format(len(parts))))
    missing = parts.pop()
    if len(parts) < recorded or not parts:
        raise ValueError(f"{missing} is missing. Fit again.")
    if len(parts) != recorded:
        problem = f"parts is {recorded}, and there are {len(parts)}"
        raise damaged(run / "run.json", problem)
    return parts


def read_part(path: Path, record: dict) -> PlacedRows:
    """Return the samples of a part, which claims no more than it holds."""
    try:
        store = open_store(path)
        if store.text:
            raise ValueError("it has columns that hold no numbers")
        columns = store.read(0, int(store.edges[-1]), range(store.total))
    except (ValueError, LookupError) as error:
        raise damaged(path, str(error).replace(f"{path} ", "it ", 1).rstrip(".")) from error
    header, columns = list(store.names or ()), columns.astype(float, copy=False)
    return from_table(path, header, columns, record["factors"], below=record["n_samples"])
