"""The command `fit`: an input, or several views of a molecule, to run folders."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.files import real_path, remove, replace_folder
from manifactor._support.progress import ProgressBars
from manifactor._support.workers import Here, Processes, Workers, WorkersLost
from manifactor.command import terminal
from manifactor.command.endings import say_what_is_left
from manifactor.command.outputs import chosen_workers, own, require_new
from manifactor.command.terminal import aligned, note, show
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.archive import KEY, Checkpoints, is_run, require_checkpoints
from manifactor.runs.cost import Cost
from manifactor.runs.folder import PARTS_FOLDER, require_new_run
from manifactor.runs.options import BESIDE, FitOptions
from manifactor.runs.places import torus_angles
from manifactor.runs.sources import Input, sources
from manifactor.runs.task import (
    FAILED,
    TABLE,
    Row,
    Task,
    clear_away,
    fit_side_by_side,
    forecast_side_by_side,
    named_tasks,
)
from manifactor.tables.files import array_name
from manifactor.tables.stores import in_parts
from manifactor.views.words import found_text

Found = TypeVar("Found")


def fit(options: FitOptions) -> None:
    """Factor an input, or several views side by side, and write a run folder."""
    if any(source.fit(options) for source in sources()):
        return
    tasks = tasks_of(options)
    for name in ("bursts", "pairs"):
        if len(tasks) > 1 and getattr(options, name):
            raise ValueError(
                f"--{name} goes with one input; got {len(tasks)} fits. Fit the inputs one by one."
            )
    divided = len(tasks) > 1 or in_parts(tasks[0].path, options.coordinates)
    if options.cluster is not None and not divided:
        raise ValueError(
            "--cluster divides several inputs or views, particles of --all-views, or "
            "the rows of a large table among workers; this is one fit, which runs in "
            "one process on all cores. Leave it out."
        )
    # Absolute, since "." and ".." have no name; a link keeps its own.
    first = Path(os.path.abspath(tasks[0].path))
    out = Path(options.out or f"{first.stem}-run")
    require_outside([*options.input, *options.values(*BESIDE).values()], out)
    if options.cluster is not None:
        # Workers may work in another folder.
        tasks, out = [task.anywhere for task in tasks], out.absolute()
    if len(tasks) == 1:
        _fit_one(tasks[0], out)
        return
    named = named_tasks(tasks)
    if options.dry_run:
        # Fewer views than cores share all of them.
        count = n_workers_of(options, Processes(min(Processes().count, len(tasks))))
        show_cost(forecast_side_by_side(tasks, n_workers=count))
    else:
        _fit_views(named, out, options)


def tasks_of(options: FitOptions) -> list[Task]:
    """Return one task for each input and view; trajectories are one."""
    views = options.view or (None,)
    if options.trajectories:
        if options.trajectory is not None:
            raise ValueError(
                "trajectories must be told by a column, --trajectory, or by files, --trajectories; "
                "got both. Leave one out."
            )
        first, *further = map(Path, options.input)
        return [Task(first, options, view, tuple(further)) for view in views]
    return [Task(Path(path), options, view) for path in options.input for view in views]


def _fit_one(task: Task, out: Path) -> None:
    """Fit one input, or print what that would cost."""
    options = task.options
    require_usable_out(out, options)
    opened = task.open()
    for text in opened.notes:
        note(text)
    path = opened.path
    # An archive may hold labels only: the name tells whether these are the samples.
    if path is not None and path.suffix.lower() == ".npz" and array_name(path) != "X":
        note(f"the samples are {array_name(path)!r}, the only array of {path}.")
    # Too little memory is said before images are read.
    cost = task.forecast(opened, n_workers=n_workers_of(options) if options.dry_run else 1)
    if options.dry_run:
        on_device = options.device not in (None, "cpu") and not cost.device_memory
        show_cost(cost, " on the CPU, and less on the device" if on_device else "")
        return
    given = task.read(opened)
    _note_constant_columns(given)
    work = partial(task.fit, given, out, overwrite=options.overwrite)
    estimator, record = with_checkpoints([task], out, work)
    show_result(estimator, record, out, "sample")
    show_candidates(estimator)


def require_outside(inputs: Sequence[str | Path | None], out: Path) -> None:
    """Refuse an output folder that holds an input, which would be lost."""
    for given in [each for each in inputs if each is not None]:
        path = real_path(Path(given))
        if real_path(out) in [path, *path.parents]:
            raise ValueError(
                f"the input {given} lies in {out}, which the run would replace. "
                "Choose another --out."
            )


def require_usable_out(out: Path, options: FitOptions) -> None:
    """Refuse an output that would fail after hours of work, or that cannot be resumed."""
    if options.dry_run:
        return
    own(out)
    require_new_run(out, overwrite=options.overwrite)
    if not options.resume:
        return
    folder = checkpoint_folder(out)
    require_checkpoints(folder)
    for each in (folder, folder / PARTS_FOLDER):
        clear_away(each)


def _note_constant_columns(given: Input) -> None:
    # Harmless to the fit, but often a sign of a wrong file or of an empty column. Among many
    # columns, such as pixels, some are usually constant.
    samples = given.samples
    n_columns = samples.shape[1]
    if not len(samples) or n_columns > 64:
        return  # no samples are refused by the fit, with the number that it needs
    constant = np.flatnonzero(samples.min(axis=0) == samples.max(axis=0))
    if 0 < len(constant) < n_columns:
        first = int(constant[0])
        label = first if given.labels is None else given.labels[first]
        note(
            f"{len(constant)} of {n_columns} columns are constant and have no effect; "
            f"the first is column {label!r}."
        )


def show_result(estimator: ManifoldFactorizer, record: dict, out: Path, what: str) -> None:
    """Print what was found, and where the coordinates and the details are."""
    show(f"{found_text(record, estimator)}\n")
    name = "coordinates/part-*.parquet" if "parts" in record else "coordinates.csv"
    torus = " It has both angles on the torus, factor1_angle1 and factor1_angle2, in degrees."
    known = "" if torus_angles(estimator) is None else torus
    show(f"Coordinates of every {what}: {out / name}.{known}")
    show(f"For the details, run: {shell_line('manifactor', 'report', out)}")


def show_candidates(estimator: ManifoldFactorizer) -> None:
    """Print what else was proposed, where the result is not sure."""
    others = any(each.n_factors > 1 for each in estimator.candidates_[1:])
    can_choose = estimator.factorization_.take is not None
    if others and can_choose and estimator.verdict_ not in ("product", "separable"):
        show(f"\nAll that was proposed; --candidate K returns number K:\n{estimator.candidates_}")


# What a fit will cost, printed before it starts.


def n_workers_of(options: FitOptions, otherwise: Workers = Here()) -> int:
    """Return how many workers there are: those of --cluster, or others."""
    with chosen_workers(options.cluster, otherwise, device=options.device) as workers:
        return workers.count


def show_cost(cost: Cost, where: str = "") -> None:
    """Print the memory that a fit takes."""
    show(f"The fit will take {cost}{where}.", alone=True)


# What an interrupted fit has left, beside the run folder that it was to write.


def checkpoint_folder(out: Path) -> Path:
    """Return the folder that holds the work on a run until the run is complete."""
    # Hidden, and beside the run folder: that one appears only when it is complete.
    return out.parent / f".{out.name}.stages"


def _delete_checkpoints(folder: Path) -> None:
    """Delete what an interrupted fit has left, since this one starts afresh."""
    if folder.is_dir():
        note(
            f"deleting the checkpoints of an interrupted fit in {folder}; "
            "--resume would have continued it."
        )
        shutil.rmtree(folder, ignore_errors=True)


def with_checkpoints(
    tasks: Sequence[Task],
    out: Path,
    work: Callable[..., Found],
    *,
    otherwise: Workers = Here(),
    check: Callable[[Workers], None] = lambda workers: None,
) -> Found:
    """Do the work of fits, and keep what is finished until all of it is."""
    folder, options = checkpoint_folder(out), tasks[0].options

    def left() -> str:
        clear_away(folder)
        kept = [path for path in folder.glob("*") if path.name not in (KEY, TABLE)]
        if not kept:
            remove(folder)
            return ""
        several = f"{len(kept)} of {len(tasks)} views are finished and"
        what = several if len(tasks) > 1 else "checkpoints are"
        return f"{what} kept; repeat the command with --resume to continue"

    try:
        # Workers first: without them, nothing that was kept is deleted. They are gone when it is
        # said what is left.
        with (
            say_what_is_left(left),
            chosen_workers(options.cluster, otherwise, device=options.device) as workers,
            ProgressBars() as bars,
        ):
            check(workers)
            if not options.resume:
                _delete_checkpoints(folder)
            key = "\n".join(task.key for task in tasks)
            found = work(stages=Checkpoints(folder, key, bars), workers=workers)
    except WorkersLost:
        # Its message says how to go on, which must be possible even now.
        raise
    except Exception:  # it is raised again
        left()
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return found


# Several inputs or views: a run folder for each.


def _fit_views(tasks: Mapping[str, Task], out: Path, options: FitOptions) -> None:
    """Fit views at the same time and print one row for each."""
    require_new(out, mark=TABLE, overwrite=options.overwrite)
    if options.resume:
        require_checkpoints(checkpoint_folder(out))

    def work(stages: Checkpoints, workers: Workers) -> list[Row]:
        folder = stages.open()
        if options.resume:
            n_done = sum(is_run(folder / name) for name in tasks)
            note(f"{n_done} of {len(tasks)} views are finished; continuing with the others.")
        with terminal.count_pieces(len(tasks), "views") as report:
            rows = fit_side_by_side(tasks, folder, workers=workers, report=report)
        (folder / KEY).unlink()
        replace_folder(folder, out)
        return rows

    rows = with_checkpoints(list(tasks.values()), out, work, otherwise=Processes())
    show(aligned([Row._fields, *rows]))
    failed = sum(row.verdict == FAILED for row in rows)
    failures = f"; {failed} failed" if failed else ""
    show(f"A run folder for each view, and this table as {TABLE}: {out}{failures}")
