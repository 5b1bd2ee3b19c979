"""Stages of a long fit on disk, beside the run folder to be, so that a fit that was stopped can go on."""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manifactor._support.stages import Stages
from manifactor.runs.archive import read_tree, write_tree

LONG = 5.0  # seconds from which on a stage is worth writing


def _settled(value):
    """What is on a device, on this machine's side."""
    if isinstance(value, tuple):
        return tuple(_settled(item) for item in value)
    return value.settled() if hasattr(value, "settled") else value


class CheckpointWarning(UserWarning):
    """A stage could not be written; the fit goes on without."""


class Checkpoints(Stages):
    """Stages that are also written to a folder, each whole or not at all."""

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        """Remember the folder; with `resume`, what it holds counts."""
        super().__init__()
        if resume and not folder.is_dir():
            raise ValueError(
                f"there is nothing to go on from: no stage was kept in {folder}. Leave --resume out."
            )
        self.folder, self.resume = folder, resume

    def __call__(self, name: str, key: str, make: Callable[[], Any]) -> Any:
        """What was kept in memory or in the folder, else what is made now, and written if that took long."""
        path = self.folder / f"{name}.npz"
        if self.resume and name not in self.kept and path.is_file():
            self.kept[name] = read_tree(path)
            if self.kept[name][0] != key:
                raise ValueError(
                    f"{self.folder} must hold stages of the same fit; those are of other samples or settings. Repeat "
                    "the command that was stopped, all options included, or leave --resume out and start afresh."
                )
        start = time.monotonic()
        value = super().__call__(name, key, make)
        if time.monotonic() - start > LONG:
            self._write(path, (key, value))
        return value

    def _write(self, path: Path, stage: tuple) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
            write_tree(path, _settled(stage))
        except (OSError, ValueError) as error:  # a full disk, or a folder that is gone
            warnings.warn(
                f"the stage {path.stem!r} could not be kept for --resume: {error}. The fit goes on without.",
                CheckpointWarning,
                stacklevel=4,
            )
