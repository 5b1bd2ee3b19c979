"""Inputs of a fit: what was opened, what was read, and tables as inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.parameters import Choice
from manifactor._support.values import bad_values
from manifactor.estimators.arrays import MOST_DRAWN
from manifactor.estimators.moving import MOST_OF_TRAJECTORY
from manifactor.tables.columns import COLUMN_REMEDIES, ColumnChoice, Columns, quoted
from manifactor.tables.files import read_table
from manifactor.tables.frames import frame_names, is_frames, left_out
from manifactor.tables.stores import StoredTable
from manifactor.tables.text import line_of


def why_at_most(count: int) -> str:
    """Return why no more samples are fitted."""
    return f"{count:,} at most, so that a fit stays quick; the others are placed"


class Opened:
    """An input whose files were checked, and not necessarily read."""

    path: Path | None  # the file of a table
    rows: np.ndarray  # (n,): the samples' row numbers in the input
    notes: tuple[str, ...]  # what a user should know of how the input is read
    drawn = False  # whether the rows are samples that were drawn to be fitted
    n_named = 0  # rows of another file that the samples belong to, which is written again

    @property
    def n_samples(self) -> int:
        """Number of samples of the input."""
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """How many columns the samples have; of images, how many are expected."""
        raise NotImplementedError

    @property
    def most(self) -> tuple[int, str]:
        """How many samples are fitted at most, and why."""
        return MOST_DRAWN, why_at_most(MOST_DRAWN)

    def settings(self, n_fitted: int, given: dict) -> tuple[dict, dict[str, Choice]]:
        """Return parameters in place of those given, and what was chosen."""
        return {}, {}

    def costs(self, start: float, held: float, n_cores: int) -> list:
        """Return the cost of each part of reading, where that is more than reading a table."""
        return []

    def read(self, rng: np.random.Generator) -> "Input":
        """Return the samples; `rng` draws images to learn from."""
        raise NotImplementedError


@dataclass(frozen=True)
class Input(Opened):
    """Samples and their origin."""

    samples: np.ndarray  # (n, n_features)
    rows: np.ndarray  # (n,): the samples' row numbers in the input, or in the file of the particles
    columns: Columns | None = None  # which columns of a table these are, and their scale
    path: Path | None = None
    # What is known of the samples' moves, as arguments of `fit`
    moves: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None  # of the files of the samples, if each has its own

    @property
    def n_columns(self) -> int:
        """How many columns the samples have."""
        return self.samples.shape[1]

    @property
    def most(self) -> tuple[int, str]:
        """How many samples are fitted at most, and why."""
        if not self.moves or "bursts" in self.moves:
            return super().most
        return MOST_OF_TRAJECTORY, why_at_most(MOST_OF_TRAJECTORY)

    @property
    def noise(self) -> np.ndarray | None:
        """Standard deviation of the noise in every column, where it is known."""
        return None

    @property
    def record(self) -> dict:
        """The entries of run.json."""
        return {} if self.columns is None else {"columns": self.columns.record}

    def read(self, rng: np.random.Generator) -> "Input":
        """Return the input itself, which is read."""
        return self

    def files_after(
        self, places: Sequence, changed: Sequence[Path], rng: np.random.Generator
    ) -> tuple[dict, dict[str, bytes]]:
        """Return more entries of run.json, and files of the run, given the samples' places.

        Files that were `changed` during the fit must not be read again.
        """
        return {}, {}

    @property
    def labels(self) -> list[str | int] | None:
        """Names or numbers of the columns in their file; None for all columns without names."""
        if self.columns is None:
            return None
        every = len(self.columns.numbers) == self.columns.total
        return None if every and self.columns.names is None else self.columns.labels

    def require_values(self) -> None:
        """Refuse NaN, infinite and huge values, and say where in the file they are."""
        found = bad_values(self.samples)
        if found is None:
            return
        line = None if self.path is None else line_of(self.path, found.place[0])
        where = "" if line is None else f" (line {line} of {self.path})"
        words = found.message("samples", self.labels, where=where, remedies=COLUMN_REMEDIES)
        raise ValueError(words)

    def standardised(self) -> "Input":
        """Return a table with columns of unit variance; constant ones stay constant."""
        self.require_values()
        assert self.columns is not None
        columns = self.columns.standardised(self.samples)
        return replace(self, samples=columns.scaled(self.samples), columns=columns)


def read_input(path: Path, columns: ColumnChoice = ColumnChoice()) -> Input:
    """Read a table."""
    table = read_table(path, columns)
    samples = table.samples
    # Up to 256 MB, a copy that no other program can change: a fit of more takes more memory.
    if isinstance(samples, np.memmap) and samples.nbytes <= 2**28:
        samples = np.array(samples)
    how: dict = {}
    if path.is_dir() and is_frames(path):
        how = {"notes": left_out(path), "names": frame_names(path)}
    return Input(samples, np.arange(len(samples)), table.columns, path, **how)


def joined(parts: Sequence[Input]) -> Input:
    """Return trajectories of several files as one table."""
    first, *others = parts
    if not others:
        return first
    for part in parts:
        if part.columns != first.columns:
            raise ValueError(
                f"the files of --trajectories must have the same columns; {first.path} has "
                f"{_named(first)}, and {part.path} has {_named(part)}."
            )
        part.require_values()
    samples = np.concatenate([part.samples for part in parts])
    # Files of several folders may have the same names.
    names = tuple(f"{part.path}/{name}" for part in parts for name in part.names or ())
    named = names if len(names) == len(samples) else None
    return replace(first, samples=samples, rows=np.arange(len(samples)), names=named)


def _named(part: Input) -> str:
    assert part.columns is not None
    return quoted([str(label) for label in part.columns.labels])


# A table that is not read as a whole: the samples that are drawn of it.


@dataclass(frozen=True)
class LargeInput(Input):
    """Samples drawn of a table on disk, and where all of them are.

    - samples: (n_drawn, n_features)
    - rows: (n_drawn,): their numbers in the table, ascending
    """

    table: StoredTable = field(kw_only=True)  # all samples
    drawn = True

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples


@dataclass(frozen=True)
class UnreadTable(Opened):
    """Samples that are drawn of a table on disk, and not read yet."""

    table: StoredTable  # all samples
    rows: np.ndarray  # those that are drawn, ascending
    standardise: bool = False  # whether to give the columns unit variance
    notes: tuple[str, ...] = ()
    drawn = True

    @property
    def path(self) -> Path:  # type: ignore[override]
        """The file, or folder, of the table."""
        return self.table.path

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples

    @property
    def n_columns(self) -> int:
        """How many columns the samples have."""
        return self.table.shape[1]

    def read(self, rng: np.random.Generator) -> LargeInput:
        """Read the samples that are drawn, chunk by chunk."""
        table = self.table
        samples = table.take(self.rows)
        if self.standardise:
            table = replace(table, columns=table.columns.standardised(samples))
            samples = table.columns.scaled(samples)
        return LargeInput(samples, self.rows, table.columns, table.path, table=table)
