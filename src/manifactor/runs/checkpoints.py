"""Stages of a long fit on disk, so that a fit that was stopped can be resumed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from manifactor._support.stages import Stages
from manifactor._support.warning import warn_caller
from manifactor.runs.archive import read_tree, write_tree
from manifactor.spectral.pipeline import settled_stage

Result = TypeVar("Result")


class CheckpointWarning(UserWarning):
    """A stage could not be written; the fit continues without."""


class Checkpoints(Stages):
    """Stages that are also written to a folder, each whole or not at all.

    Parameters
    ----------
    folder : Path
    resume : bool
        Whether to read the stages that the folder holds.
    worth_writing : float
        Seconds from which on a stage is written: computing a shorter one again costs
        no more than reading it.
    """

    def __init__(
        self, folder: Path, *, resume: bool = False, worth_writing: float = 5.0
    ) -> None:
        """Remember the folder; raise ValueError if there is nothing to resume."""
        super().__init__()
        if resume and not folder.is_dir():
            raise ValueError(
                f"no checkpoint to resume in {folder}. Leave --resume out."
            )
        self.folder, self.resume = folder, resume
        self.worth_writing = worth_writing

    def recall(self, name: str, key: str, make: Callable[[], Result]) -> Result:
        """Return what memory or folder holds, else make it, and write it if slow."""
        path = self.folder / f"{name}.npz"
        if self.resume and name not in self.kept and path.is_file():
            self.kept[name] = self._read(path, key)
        begin = time.monotonic()
        result = super().recall(name, key, make)
        if time.monotonic() - begin > self.worth_writing:
            self._write(path, (key, settled_stage(result)))
        return result

    def _read(self, path: Path, key: str) -> tuple:
        stage = read_tree(path)
        if stage[0] != key:
            raise other_fit(self.folder)
        return stage

    def _write(self, path: Path, stage: tuple) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
            write_tree(path, stage)
        except (OSError, ValueError) as error:  # a full disk, or a folder that is gone
            warn_caller(
                f"the stage {path.stem!r} could not be written for --resume: {error}. "
                "The fit continues without.",
                CheckpointWarning,
            )


def other_fit(folder: Path) -> ValueError:
    """Return the error of checkpoints that are not of this fit."""
    return ValueError(
        f"the checkpoints in {folder} must belong to this fit; they are of other "
        "samples or settings. Repeat the command that was stopped with all its "
        "options, or leave --resume out and start afresh."
    )
