"""Inputs of a fit, opened and read, and the kinds of inputs, with what their runs know."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.parameters import Choice
from manifactor._support.plugins import loaded
from manifactor._support.values import bad_values
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import MOST_DRAWN, draw_count, draw_rows
from manifactor.estimators.reading import MOST_OF_TRAJECTORY
from manifactor.runs.options import PARTS, TABLE, FitOptions
from manifactor.tables.columns import COLUMN_REMEDIES, ColumnChoice, Columns, quoted
from manifactor.tables.files import (
    frame_names,
    is_frames,
    left_out,
    read_like,
    read_npz,
    read_table,
)
from manifactor.tables.stores import StoredTable, in_parts, read_npy, stored_table
from manifactor.tables.text import DELIMITERS, line_of, read_labels

WHY_AT_MOST = "{:,} at most, so that a fit stays quick; the others are placed"


class Opened:
    """An input whose files were checked, and not necessarily read."""

    path: Path | None  # the file of a table
    rows: np.ndarray  # (n,): the samples' row numbers in the input, ascending if drawn of a table
    notes: tuple[str, ...] = ()  # what a user should know of how the input is read
    # All samples of a table on disk, if only those are read that were drawn to be fitted
    table: StoredTable | None = None
    n_named = 0  # rows of another file that the samples belong to, which is written again

    @property
    def n_samples(self) -> int:
        """Number of samples of the input."""
        return len(self.rows) if self.table is None else self.table.n_samples

    @property
    def n_columns(self) -> int:
        """How many columns the samples have; of images, how many are expected."""
        raise NotImplementedError

    @property
    def most(self) -> tuple[int, str]:
        """How many samples are fitted at most, and why."""
        return MOST_DRAWN, WHY_AT_MOST.format(MOST_DRAWN)

    def settings(self, n_fitted: int, given: dict) -> tuple[dict, dict[str, Choice]]:
        """Return parameters in place of those given, and what was chosen."""
        return {}, {}

    @property
    def reading_memory(self) -> float:
        """Bytes that are needed beside the samples while they are read."""
        return 0.0

    def read(self, rng: np.random.Generator) -> "Input":
        """Return the samples; `rng` draws images to learn from."""
        raise NotImplementedError


@dataclass(frozen=True)
class Input(Opened):
    """Samples and their origin."""

    samples: np.ndarray  # (n, n_features)
    rows: np.ndarray  # of the file of the particles, if they belong to these
    columns: Columns | None = None  # which columns of a table these are, and their scale
    path: Path | None = None
    # What is known of the samples' moves, as arguments of `fit`
    moves: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None  # of the files of the samples, if each has its own
    table: StoredTable | None = None

    @property
    def n_columns(self) -> int:
        """How many columns the samples have."""
        return self.samples.shape[1]

    @property
    def most(self) -> tuple[int, str]:
        """How many samples are fitted at most, and why."""
        if not self.moves or "bursts" in self.moves:
            return super().most
        return MOST_OF_TRAJECTORY, WHY_AT_MOST.format(MOST_OF_TRAJECTORY)

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
        if found := bad_values(self.samples):
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
            labels = (each.columns.labels if each.columns else () for each in (first, part))
            one, other = (quoted(list(map(str, some))) for some in labels)
            raise ValueError(
                f"the files of --trajectories must have the same columns; {first.path} has "
                f"{one}, and {part.path} has {other}."
            )
        part.require_values()
    samples = np.concatenate([part.samples for part in parts])
    # Files of several folders may have the same names.
    names = tuple(f"{part.path}/{name}" for part in parts for name in part.names or ())
    named = names if len(names) == len(samples) else None
    return replace(first, samples=samples, rows=np.arange(len(samples)), names=named)


@dataclass(frozen=True)
class UnreadTable(Opened):
    """Samples that are drawn of a table on disk, and not read yet."""

    path: Path
    table: StoredTable = field()  # which has no default here
    rows: np.ndarray
    standardise: bool  # whether to give the columns unit variance

    @property
    def n_columns(self) -> int:
        """How many columns the samples have."""
        return self.table.shape[1]

    def read(self, rng: np.random.Generator) -> Input:
        """Read the samples that are drawn, chunk by chunk."""
        table, samples = self.table, self.table.take(self.rows)
        if self.standardise:
            table = replace(table, columns=table.columns.standardised(samples))
            samples = table.columns.scaled(samples)
        return Input(samples, self.rows, table.columns, self.path, table=table)


def _open_stored(path: Path, options: FitOptions) -> UnreadTable | None:
    """Open a table on disk of which rows are read, drawn to be fitted; None for other inputs."""
    if not in_parts(path, options.coordinates):
        if options.coordinates == "parquet":
            raise ValueError(
                "--coordinates parquet goes with .npy, .parquet, Zarr, and folders of "
                f".parquet, of which rows are read; got {path}. Leave it out."
            )
        return None
    options.require(path, PARTS)
    table = stored_table(path, ColumnChoice(options.columns, options.drop))
    n_samples, n_columns = table.shape
    count = draw_count(options.fit_samples, n_samples)
    ManifoldFactorizer(**options.parameters).require_room(count, n_columns)
    rows = draw_rows(n_samples, count, np.random.default_rng(options.seed))
    return UnreadTable(path, table, rows, options.standardise)


def _open_table(path: Path, options: FitOptions, further: tuple[Path, ...]) -> Input:
    """Read a table, and what is known of its moves."""
    # What reads the particles that rows belong to goes with a table, too.
    paired = ("datadir", "pixel_size") if options.particles else ()
    options.require(path, TABLE, *paired)
    named = {"--time": options.time, "--trajectory": options.trajectory}
    apart = tuple((name, label) for name, label in named.items() if label is not None)
    columns = ColumnChoice(options.columns, options.drop, apart=apart)
    parts = [read_input(each, columns) for each in (path, *further)]
    for source in sources():
        parts = [source.paired(part, options) for part in parts]
    table = joined(parts)
    table = table.standardised() if options.standardise else table
    assert table.columns is not None
    return replace(table, moves=_moves(parts, options, table.columns))


def _moves(parts: Sequence[Input], options: FitOptions, columns: Columns) -> dict[str, Any]:
    """Return what files tell of the moves of the rows of tables, as arguments of `fit`."""
    moves: dict[str, Any] = {} if options.lag is None else {"lag": options.lag}
    if options.time is not None:
        only = ColumnChoice(labels=(options.time,))
        times = [read_table(part.path, only).samples[:, 0] for part in parts]
        moves["times"] = np.concatenate(times)
    if options.trajectory is not None:
        path, only = Path(parts[0].path or ""), ColumnChoice(labels=(options.trajectory,))
        # Labels may be words in a table in text.
        is_text = path.suffix.lower() in DELIMITERS
        labels = read_labels(path, only) if is_text else read_table(path, only).samples[:, 0]
        moves["trajectories"] = labels
    if options.trajectories:
        counts = [part.n_samples for part in parts]
        moves["trajectories"] = np.repeat(np.arange(len(parts)), counts)
    if options.bursts is not None:
        moves["bursts"] = _bursts(Path(options.bursts), columns)
    if options.pairs is not None:
        moves["pairs"] = _later(Path(options.pairs), columns)
    return moves


def _later(path: Path, columns: Columns) -> np.ndarray:
    """Return what followed each row of a table, in its chosen columns and their scale, (n, p)."""
    require_regular_file(path, "--pairs")
    later = read_table(path).columns
    if columns.names is None:
        right = later.total == columns.total
    else:
        right = set(columns.names) <= set(later.names or ())
    if not right:
        asked, got = (quoted(list(map(str, some.labels))) for some in (columns, later))
        raise ValueError(
            f"--pairs must be a table with the columns of the input, {asked}; got {path.name} with "
            f"{got}."
        )
    return read_like(path, columns)


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


def sources() -> list[Any]:
    """Return the kinds of inputs beside tables, and what is known of their runs.

    A package adds one as an entry point of the group `manifactor.sources`: a class with the static
    methods of `cryoem.source.ParticleSource`.
    """
    return list(loaded("sources").values())


def open_input(
    path: Path | str,
    options: FitOptions = FitOptions(),
    view: tuple[float, float] | None = None,
    further: tuple[Path, ...] = (),
) -> Opened:
    """Open an input: a table is read, others are only checked."""
    path = Path(path)
    if stored := _open_stored(path, options):
        return stored
    for source in sources():
        if opened := source.open(path, options, view, further):
            return opened
    return _open_table(path, options, further)
