"""What an interrupted fit has left, beside the run folder that it was to write."""

import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from manifactor._support.workers import Here, Workers
from manifactor.command.clusters import chosen_workers
from manifactor.command.signals import leaving
from manifactor.command.terminal import ProgressBars, note
from manifactor.runs.archive import load
from manifactor.runs.checkpoints import Checkpoints
from manifactor.runs.several import finished_runs
from manifactor.spectral.pipeline import kept_stages

Found = TypeVar("Found")


def checkpoint_folder(out: Path) -> Path:
    """Return the folder that holds the work on a run until the run is complete."""
    # Hidden, and beside the run folder: that one appears only when it is complete.
    return out.parent / f".{out.name}.stages"


def require_checkpoints(folder: Path) -> None:
    """Refuse to resume a fit that has left nothing."""
    if not folder.is_dir():
        raise ValueError(f"no checkpoint to resume in {folder}. Leave --resume out.")


def delete_checkpoints(folder: Path) -> None:
    """Delete what an interrupted fit has left, since this one starts afresh."""
    if folder.is_dir():
        note(
            f"deleting the checkpoints of an interrupted fit in {folder}; "
            "--resume would have continued it."
        )
        shutil.rmtree(folder, ignore_errors=True)


def with_checkpoints(
    out: Path,
    arguments: Namespace,
    work: Callable[[Checkpoints, ProgressBars, Workers], Found],
) -> Found:
    """Do the work of a fit, and keep long stages until its run folder is written."""
    folder = checkpoint_folder(out)
    stages = _checkpoints(folder, arguments)

    def left() -> str:
        # Stages of a few seconds are not written, so there may be nothing to resume.
        text = "checkpoints are kept; repeat the command with --resume to continue"
        return text if folder.is_dir() else ""

    with (
        leaving(left),
        chosen_workers(arguments, Here()) as workers,
        ProgressBars() as bars,
    ):
        found = work(stages, bars, workers)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _checkpoints(folder: Path, arguments: Namespace) -> Checkpoints:
    """Return what is kept of an interrupted fit or of an earlier run."""
    if not arguments.resume:
        delete_checkpoints(folder)
    elif finished_runs(folder):
        raise ValueError(
            f"the checkpoints in {folder} must belong to this fit; they are of several "
            "inputs or views. Repeat the command that was stopped with all its "
            "options, or leave --resume out and start afresh."
        )
    stages = Checkpoints(folder, resume=arguments.resume)
    if arguments.reuse is not None:
        stages.kept = kept_stages(load(arguments.reuse).diffusion_).kept
    return stages
