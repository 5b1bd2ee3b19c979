"""Stages of a long fit on disk, so that a fit that was stopped can be resumed.

They are written to a folder beside the future run, and read by `--resume`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from manifactor._support.errors import warn_caller
from manifactor._support.parameters import Choice
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.all_views.principal import PrincipalVolumes
from manifactor.runs.archive import read_tree, write_tree
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.pipeline import Walk, settled_stage

Result = TypeVar("Result")

# What stages of a fit yield; others are arrays, and tuples of arrays and numbers.
STAGES: dict[str, Any] = {
    "preparation": Choice,
    "neighbours": NeighborGraph,
    "spectrum": Walk,
    "principal volumes": PrincipalVolumes,
    "noise": np.ndarray,
    "images": np.ndarray,
    "volumes": tuple,
    "motions": tuple,
}


class CheckpointWarning(UserWarning):
    """A stage could not be written; the fit continues without."""


class Checkpoints(Stages):
    """Stages that are also written to a folder.

    A stage is written whole when it is done, a stage of many pieces also while it lasts: what a
    stopped fit has computed is not computed again.
    """

    def __init__(self, folder: Path, *, resume: bool = False, worth_writing: float = 5.0) -> None:
        """Remember the folder; raise ValueError if there is nothing to resume."""
        super().__init__()
        if resume:
            require_checkpoints(folder)
        self.folder, self.resume = folder, resume
        self.worth_writing = worth_writing

    def recall(self, name: str, key: str, make: Callable[[], Result]) -> Result:
        """Return what memory or folder holds, else make it, and write it if slow."""
        path = self.folder / f"{name}.npz"
        if self.resume and name not in self.kept and path.is_file():
            self.kept[name] = self._read(path, key, STAGES.get(name, Any))
        begin = time.monotonic()
        result = super().recall(name, key, make)
        slow = time.monotonic() - begin > self.worth_writing
        if slow and self._write(path, (key, settled_stage(result))):
            for piece in self.folder.glob(f"{name}.[0-9]*.npz"):
                piece.unlink(missing_ok=True)
        return result

    def pieces(
        self,
        name: str,
        key: str,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        workers: Workers = Here(),
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Any]:
        """Yield the results that the folder holds, then compute the others.

        They are written in groups, one for each `worth_writing` seconds of work. When the work is
        stopped, so is the last group of a stage that took longer.
        """
        first = 0
        if self.resume:
            for result in self._kept_pieces(name, key):
                first += 1
                yield result
        if first >= len(jobs):
            return
        done = first / len(jobs)
        report(done)
        group: list[Any] = []
        lost = False  # what comes after a gap cannot be resumed
        begin = last = time.monotonic()
        rest = jobs[first:]
        try:
            for result in workers.map(
                work, rest, report=lambda part: report(done + (1 - done) * part)
            ):
                if not lost:
                    group.append(result)
                if group and time.monotonic() - last > self.worth_writing:
                    lost = not self._write(self._piece_path(name, first), (key, tuple(group)))
                    first, last, group = first + len(group), time.monotonic(), []
                yield result
        finally:
            if group and time.monotonic() - begin > self.worth_writing:
                self._write(self._piece_path(name, first), (key, tuple(group)))

    def _kept_pieces(self, name: str, key: str) -> Iterator[Any]:
        """Yield the first results of a stage, as far as the folder holds them."""
        count = 0
        while (path := self._piece_path(name, count)).is_file():
            _, results = self._read(path, key, tuple)
            # Without any, the next group would be looked for in the same file for ever.
            if not results:
                raise ValueError(f"{path} is damaged: it holds no pieces. Remove it.")
            yield from results
            count += len(results)

    def _piece_path(self, name: str, first: int) -> Path:
        """Return the file of a group of pieces, given the number of its first."""
        return self.folder / f"{name}.{first:06d}.npz"

    def _read(self, path: Path, key: str, kind: Any) -> tuple:
        """Return the key and the result of a stage, checked."""
        stage = read_tree(path, tuple[str, kind])
        if stage[0] != key:
            raise other_fit(self.folder)
        return stage

    def _write(self, path: Path, stage: tuple) -> bool:
        """Write a stage, and return whether that was possible."""
        try:
            self.folder.mkdir(exist_ok=True)
            write_tree(path, stage)
        except (OSError, ValueError) as error:  # a full disk, or a folder that is gone
            warn_caller(
                f"the stage {path.stem!r} could not be written for --resume: {error}. "
                "The fit continues without.",
                CheckpointWarning,
            )
            with suppress(OSError):  # it holds earlier stages, or is gone
                self.folder.rmdir()
            return False
        return True


def require_checkpoints(folder: Path) -> None:
    """Refuse to resume a fit that has left nothing."""
    if not folder.is_dir():
        raise ValueError(f"no checkpoint to resume in {folder}. Leave --resume out.")


def other_fit(folder: Path, what: str = "they are of other samples or settings") -> ValueError:
    """Return the error of checkpoints that are not of this fit."""
    return ValueError(
        f"the checkpoints in {folder} must belong to this fit; {what}. Repeat the "
        "command that was stopped with all its options, or leave --resume out and "
        "start afresh."
    )
