"""The command `fit` for several inputs or views: a run folder for each."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from manifactor._support.files import replace_folder
from manifactor._support.workers import Processes, WorkersLost
from manifactor.command import terminal
from manifactor.command.clusters import chosen_workers
from manifactor.command.outputs import require_new_folder
from manifactor.command.resuming import checkpoint_folder, delete_checkpoints
from manifactor.command.signals import leaving
from manifactor.command.terminal import note, show
from manifactor.runs.checkpoints import require_checkpoints
from manifactor.runs.several import (
    FAILED,
    TABLE,
    clear_away,
    finished_rows,
    finished_runs,
    fit_side_by_side,
    named_tasks,
)
from manifactor.runs.task import Task


def fit_views(tasks: Sequence[Task], out: Path, arguments: Namespace) -> None:
    """Fit views at the same time and print one row for each."""
    require_new_folder(out, mark=TABLE, overwrite=arguments.overwrite)
    named = named_tasks(tasks)
    folder = checkpoint_folder(out)
    # Workers first: without them, nothing that was kept is deleted. They are gone when it is said
    # what is left.
    with _kept(folder, len(named)), chosen_workers(arguments, Processes()) as workers:
        n_done = _start(named, folder, resume=arguments.resume)
        with terminal.counted_pieces(len(named), "views", n_done=n_done) as report:
            rows = fit_side_by_side(named, folder, workers=workers, report=report)
    replace_folder(folder, out)
    show(terminal.aligned([list(rows[0]), *(list(row.values()) for row in rows)]))
    failed = sum(row["verdict"] == FAILED for row in rows)
    failures = f"; {failed} failed" if failed else ""
    show(f"A run folder for each view, and this table as {TABLE}: {out}{failures}")


def _start(tasks: dict[str, Task], folder: Path, *, resume: bool) -> int:
    """Make the folder of the runs; return how many it already holds."""
    if not resume:
        delete_checkpoints(folder)
        folder.mkdir()
        return 0
    require_checkpoints(folder)
    n_done = len(finished_rows(tasks, folder))
    note(f"{n_done} of {len(tasks)} views are finished; continuing with the others.")
    return n_done


@contextmanager
def _kept(folder: Path, total: int) -> Iterator[None]:
    """Keep the finished runs if anything stops the others; remove an empty folder."""
    try:
        with leaving(lambda: _left(folder, total)):
            yield
    except WorkersLost:
        # Its message says how to go on, which must be possible even now.
        raise
    except Exception:  # it is raised again
        _left(folder, total)
        raise


def _left(folder: Path, total: int) -> str:
    """Say which runs are left, and remove a folder in which there are none."""
    clear_away(folder)
    n_done = len(finished_runs(folder))
    if not n_done:
        with suppress(OSError):
            folder.rmdir()
        return ""
    return (
        f"{n_done} of {total} views are finished and kept; repeat the command with "
        "--resume to continue"
    )
