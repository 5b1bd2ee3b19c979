"""Several inputs or views fitted side by side, with a table of the results."""

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from manifactor._support import __version__
from manifactor._support.errors import one_line
from manifactor._support.files import newest_change, real_path, remove
from manifactor._support.workers import Processes, Workers, ignored
from manifactor.runs.archive import FORMAT, is_run
from manifactor.runs.checkpoints import last_changed, other_fit
from manifactor.runs.cost import Cost, PartCost, cores_of_worker, cost_of_pieces
from manifactor.runs.folder import read_record
from manifactor.runs.task import Task
from manifactor.tables.stores import is_stored

COLUMNS = ("view", "particles", "verdict", "factors", "problem")
TABLE = "views.csv"
FAILED = "failed"
# What the library raises for bad input; their messages need no name.
EXPECTED = (ValueError, OSError, MemoryError)

Row = dict[str, str]


def named_tasks(tasks: Sequence[Task]) -> dict[str, Task]:
    """Return tasks by distinct names; in RELION every job's file has the same one.

    No name begins with a dot: hidden runs are unfinished ones, see `clear_away`.
    """
    names = [task.name.lstrip(".") for task in tasks]
    if len(set(names)) < len(names):
        folders = [real_path(task.path).parent.name.lstrip(".") for task in tasks]
        names = [f"{folder}_{name}" for folder, name in zip(folders, names, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError(
            f"the inputs must have different names; got {', '.join(names)}. Rename them."
        )
    return dict(zip(names, tasks, strict=True))


def finished_runs(folder: Path) -> list[Path]:
    """Return the runs that a folder of unfinished work holds."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if is_run(path)]


def finished_rows(tasks: Mapping[str, Task], folder: Path) -> dict[str, Row]:
    """Return the rows of the tasks whose runs a folder already holds."""
    clear_away(folder)
    # A command that was stopped at its very end has left the table, too.
    (folder / TABLE).unlink(missing_ok=True)
    rows = {}
    # Hidden files that could not be removed are none of ours.
    for path in sorted(folder.glob("[!.]*")):
        task = tasks.get(path.name)
        if task is None or not _is_of(task, path):
            raise other_fit(folder, f"{path.name} is of other inputs or settings")
        rows[path.name] = _row(path)
    return rows


def clear_away(folder: Path) -> None:
    """Remove what is hidden: unfinished runs of killed workers, files of a system."""
    for path in folder.glob(".*"):
        remove(path)


def fit_side_by_side(
    tasks: Mapping[str, Task],
    folder: Path,
    *,
    workers: Workers = Processes(),
    report: Callable[[float], None] = ignored,
) -> list[Row]:
    """Fit the tasks that a folder has no runs of, each into a run folder inside it.

    A task that fails does not stop the others. Runs are written by the workers: what is finished is
    kept if this process is stopped.
    """
    rows = finished_rows(tasks, folder)
    further = [name for name in tasks if name not in rows]
    jobs = [(tasks[name].anywhere, folder.absolute() / name) for name in further]
    for found in workers.outcomes(_fit_row, jobs, report=report):
        name = further[found.index]
        rows[name] = found.result if found.error is None else _failed(name, found.error)
    clear_away(folder)
    ordered = [rows[name] for name in tasks]
    if all(row["verdict"] == FAILED for row in ordered):
        name, problem = ordered[0]["view"], ordered[0]["problem"]
        raise ValueError(f"no view could be fitted; the first, {name}: {problem}")
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(ordered)
    return ordered


def _fit_row(task: Task, out: Path) -> Row:
    """Fit a task and return its row of the table."""
    # A worker may have written the run before it was lost, or before the command that it worked for
    # was stopped.
    if not (is_run(out) and _is_of(task, out)):
        with warnings.catch_warnings(action="ignore"):
            task.fit(task.read(), out, overwrite=is_run(out))
    return _row(out)


def _is_of(task: Task, run: Path) -> bool:
    """Return whether a run is that of a task whose inputs have not changed."""
    if not is_run(run):
        return False
    record = read_record(run)
    written = newest_change(run / "run.json")
    # What belongs to the input: other files, and those inside it.
    inside = task.path if is_stored(task.path) else None
    files = (inside, task.options.particles, task.options.ind)
    return (
        record.get("reproduce") == task.reproduce
        and record.get("input_changed") == last_changed(task.path)
        and record["versions"].get(FORMAT) == __version__
        and all(newest_change(Path(path)) <= written for path in files if path is not None)
    )


def _row(run: Path) -> Row:
    """Return the row of a run."""
    record = read_record(run)
    meanings = [found["meaning"] for found in record.get("confounders", [])]
    return _cells(
        run.name,
        str(record["n_samples"]),
        record["verdict"],
        " x ".join(factor["topology"] for factor in record["factors"]),
        "; ".join(meaning for meaning in meanings if meaning),
    )


def _failed(name: str, error: Exception) -> Row:
    """Return the row of a task that failed."""
    problem = one_line(error)
    if not isinstance(error, EXPECTED) or not problem:
        problem = f"{type(error).__name__}: {problem}"
    return _cells(name, "", FAILED, "", problem)


def _cells(*values: str) -> Row:
    return dict(zip(COLUMNS, values, strict=True))


def forecast_side_by_side(tasks: Sequence[Task], *, n_workers: int) -> Cost:
    """Return what it costs to fit tasks side by side, each with one worker."""
    pieces = []
    for name, task in named_tasks(tasks).items():
        cost = task.forecast(task.open(), n_cores=cores_of_worker(n_workers))
        pieces.append(PartCost(name, cost.seconds, cost.memory))
    return cost_of_pieces(pieces, n_workers=n_workers)
