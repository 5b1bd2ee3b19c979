"""What files tell of the moves of their rows: times, trajectories, bursts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor.tables.columns import ColumnChoice, Columns
from manifactor.tables.files import read_npz, read_table
from manifactor.tables.stores import read_npy
from manifactor.tables.text import DELIMITERS, read_labels


@dataclass(frozen=True)
class MoveChoice:
    """Where the moves of the rows of a table are told, if anywhere."""

    time: str | None = None  # column with the time of each row
    trajectory: str | None = None  # column with the trajectory that each row belongs to
    trajectories: bool = False  # whether each file is one trajectory
    bursts: str | None = None  # file with an array (n, r, p)

    @property
    def options(self) -> list[str]:
        """The options that are given."""
        return [f"--{name}" for name, value in vars(self).items() if value]

    @property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Columns that are not to be fitted, each with its option."""
        named = {"--time": self.time, "--trajectory": self.trajectory}
        return tuple((option, label) for option, label in named.items() if label is not None)

    def read(self, files: Sequence[tuple[Path, int]], columns: Columns) -> dict[str, np.ndarray]:
        """Return what is known of moves, as arguments of `fit`.

        Files are given with their numbers of rows. There is one, unless each is a trajectory.
        """
        found = {}
        if self.time is not None:
            only = ColumnChoice(labels=(self.time,))
            times = [read_table(path, only).samples[:, 0] for path, _ in files]
            found["times"] = np.concatenate(times)
        if self.trajectory is not None:
            found["trajectories"] = _labels(files[0][0], ColumnChoice(labels=(self.trajectory,)))
        if self.trajectories:
            found["trajectories"] = np.repeat(np.arange(len(files)), [count for _, count in files])
        if self.bursts is not None:
            found["bursts"] = _bursts(Path(self.bursts), columns)
        return found


def _labels(path: Path, only: ColumnChoice) -> np.ndarray:
    """Return the labels in a column, which may be words in a table in text."""
    if path.suffix.lower() in DELIMITERS:
        return read_labels(path, only)
    return read_table(path, only).samples[:, 0]


def _bursts(path: Path, columns: Columns) -> np.ndarray:
    """Return samples near those of a table, in its chosen columns and their scale, (n, r, p)."""
    require_regular_file(path, "--bursts")
    readers = {".npy": read_npy, ".npz": read_npz}
    if path.suffix.lower() not in readers:
        raise ValueError(
            "--bursts must be an .npy or .npz file with an array of shape (samples, repeats, "
            f"columns); got {path.name}."
        )
    bursts = readers[path.suffix.lower()](path)
    if bursts.dtype.kind not in "fiub" or bursts.ndim != 3:
        raise ValueError(
            f"{path} must hold real numbers in an array of shape (samples, repeats, columns); got "
            f"{bursts.dtype}, shape {bursts.shape}."
        )
    if bursts.shape[2] == columns.total:
        bursts = bursts[:, :, columns.numbers]
    return columns.scaled(bursts)
