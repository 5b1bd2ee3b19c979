"""Samples of tables that are too large to be read as a whole."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manifactor._support.values import bad_values
from manifactor._support.warning import warn_caller
from manifactor.estimators.columns import ColumnWarning
from manifactor.estimators.drawing import take_by_chunks
from manifactor.inputs.columns import COLUMN_REMEDIES, ColumnChoice, Columns, listed
from manifactor.inputs.stores import Store, is_stored, open_store


@dataclass(frozen=True)
class LargeSettings:
    """Which tables are too large to be read as a whole."""

    # Rows: the coordinates of more would be a .csv file of more than 50 MB.
    rows: int = 1_000_000

    # Numbers, 1 GB in double precision; a memory-mapped .npy file may have any number.
    numbers: int = 2**27

    # Bytes of a file that is never too large, so that it need not be opened.
    small_file: int = 2**20


@dataclass(frozen=True)
class StoredTable:
    """Samples of a table on disk, read a block of rows at a time.

    It is small, whatever the table's size: other processes get it and read the rows themselves.
    """

    path: Path
    columns: Columns  # which columns are used, and their scale
    n_samples: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns used."""
        return self.n_samples, len(self.columns.numbers)

    @property
    def edges(self) -> np.ndarray:
        """First row of each chunk, and the number of rows."""
        return open_store(self.path).edges

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return samples in sequence, scaled; refuse NaN, inf and huge values."""
        store = open_store(self.path)
        if store.edges[-1] != self.n_samples:
            raise ValueError(
                f"{self.path} has {store.edges[-1]:,} samples, and had "
                f"{self.n_samples:,} when it was opened. Repeat the command when no "
                "other program writes it."
            )
        block = store.read(start, stop, self.columns.numbers)
        self._require_values(block, start)
        return self.columns.scaled(block)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return samples of ascending numbers, read chunk by chunk."""
        return take_by_chunks(rows, self.edges, self.read)

    def scaled(self, mean: np.ndarray, scale: np.ndarray) -> "StoredTable":
        """Return the same, with columns that are shifted and divided by these."""
        return replace(self, columns=replace(self.columns, mean=mean, scale=scale))

    def _require_values(self, block: np.ndarray, start: int) -> None:
        # In double precision: the estimator knows which samples it leaves in single.
        found = bad_values(block, precision=np.float64)
        if found is None:
            return
        row, column = found.place
        label = self.columns.labels[column]
        place = (
            f"row {start + row}, column {label!r} of {self.path}; only the rows "
            f"{start:,} to {start + len(block) - 1:,} were read"
        )
        raise ValueError(found.words("samples", place, *COLUMN_REMEDIES))


def stored_table(path: Path, choice: ColumnChoice = ColumnChoice()) -> StoredTable:
    """Return the chosen columns of a table on disk; nothing is read yet.

    Columns of text are left out with a warning, and refused where they were chosen.
    """
    store = open_store(path)
    used = choice.numbers(store.names, store.total)
    text = [number for number in used if number in store.text]
    if text:
        names = listed([_label(store, number) for number in text])
        if len(text) == len(used) and not choice.named:
            raise ValueError(
                f"{path} must be a table of numbers: all columns hold text. "
                "Give a file with columns of numbers."
            )
        if choice.named:
            raise ValueError(
                f"{path} must be a table of numbers: columns that hold none are "
                f"{names}. Leave them out with --drop, or choose others with --columns."
            )
        warn_caller(f"columns that hold text were left out: {names}.", ColumnWarning)
        used = tuple(number for number in used if number not in store.text)
    names_used = None
    if store.names is not None:
        names_used = tuple(store.names[number] for number in used)
    columns = Columns(used, store.total, names_used)
    return StoredTable(path, columns, int(store.edges[-1]))


def _label(store: Store, number: int) -> str:
    return str(number) if store.names is None else store.names[number]


def in_parts(
    path: Path, coordinates: str = "auto", *, settings: LargeSettings = LargeSettings()
) -> bool:
    """Return whether the rows of a table are read in parts."""
    is_file = path.suffix.lower() in (".npy", ".parquet") and path.is_file()
    if coordinates == "csv" or not (is_file or is_stored(path)):
        return False
    if coordinates == "parquet":
        return True
    if is_file and path.stat().st_size < settings.small_file:
        return False
    store = open_store(path)
    n_rows = int(store.edges[-1])
    mapped = path.suffix.lower() == ".npy"
    many = not mapped and n_rows * store.total > settings.numbers
    return many or n_rows > settings.rows
