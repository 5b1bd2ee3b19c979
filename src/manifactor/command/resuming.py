"""What an interrupted fit has left, beside the run folder that it was to write."""

import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from manifactor._support.temporaries import clear_leftovers
from manifactor._support.workers import Here, Workers
from manifactor.command.clusters import chosen_workers
from manifactor.command.signals import leaving
from manifactor.command.terminal import ProgressBars, note
from manifactor.runs.archive import load
from manifactor.runs.checkpoints import Checkpoints, other_fit, require_checkpoints
from manifactor.runs.parts import FOLDER as PARTS_FOLDER
from manifactor.runs.several import finished_runs
from manifactor.spectral.pipeline import kept_stages

Found = TypeVar("Found")


def checkpoint_folder(out: Path) -> Path:
    """Return the folder that holds the work on a run until the run is complete."""
    # Hidden, and beside the run folder: that one appears only when it is complete.
    return out.parent / f".{out.name}.stages"


def delete_checkpoints(folder: Path) -> None:
    """Delete what an interrupted fit has left, since this one starts afresh."""
    if folder.is_dir():
        note(
            f"deleting the checkpoints of an interrupted fit in {folder}; "
            "--resume would have continued it."
        )
        shutil.rmtree(folder, ignore_errors=True)


def require_resumable(out: Path, arguments: Namespace) -> None:
    """Refuse to resume what is not there, or is of several runs."""
    if not arguments.resume:
        return
    folder = checkpoint_folder(out)
    require_checkpoints(folder)
    for each in (folder, folder / PARTS_FOLDER):
        clear_leftovers(each)
    if finished_runs(folder):
        raise other_fit(folder, "they are of several inputs or views")


def with_checkpoints(
    out: Path,
    arguments: Namespace,
    work: Callable[..., Found],
    *,
    check: Callable[[Workers], None] = lambda workers: None,
) -> Found:
    """Do the work of a fit, and keep long stages until its run folder is written."""
    folder = checkpoint_folder(out)

    def left() -> str:
        # Stages of a few seconds are not written, so there may be nothing to resume.
        text = "checkpoints are kept; repeat the command with --resume to continue"
        return text if folder.is_dir() else ""

    with leaving(left), chosen_workers(arguments, Here()) as workers, ProgressBars() as bars:
        check(workers)
        found = work(
            overwrite=arguments.overwrite,
            stages=_checkpoints(folder, arguments),
            callback=bars,
            workers=workers,
        )
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _checkpoints(folder: Path, arguments: Namespace) -> Checkpoints:
    """Return what is kept of an interrupted fit or of an earlier run."""
    if not arguments.resume:
        delete_checkpoints(folder)
    stages = Checkpoints(folder, resume=arguments.resume)
    if arguments.reuse is not None:
        stages.kept = kept_stages(load(arguments.reuse).diffusion_).kept
    return stages
