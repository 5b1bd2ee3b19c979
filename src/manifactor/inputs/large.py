"""A table that is not read as a whole: the samples that are drawn of it."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from manifactor.inputs.columns import unit_scale
from manifactor.inputs.reading import Input
from manifactor.inputs.stored import StoredTable


@dataclass(frozen=True)
class LargeInput(Input):
    """Samples drawn of a table on disk, and where all of them are.

    - samples: (n_drawn, n_features)
    - rows: (n_drawn,): their numbers in the table, ascending
    """

    table: StoredTable = field(kw_only=True)  # all samples

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples


@dataclass(frozen=True)
class UnreadTable:
    """Samples that are drawn of a table on disk, and not read yet."""

    table: StoredTable  # all samples
    rows: np.ndarray  # those that are drawn, ascending
    standardise: bool = False  # as in `read_large`
    particles: None = None
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file, or folder, of the table."""
        return self.table.path

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples

    def read(self) -> LargeInput:
        """Read the samples that are drawn."""
        return read_large(self.table, self.rows, standardise=self.standardise)


def read_large(table: StoredTable, rows: np.ndarray, *, standardise: bool = False) -> LargeInput:
    """Read some samples of a table, chunk by chunk."""
    samples = table.take(rows)
    if standardise:
        table = table.scaled(*unit_scale(samples, table.columns.labels))
        samples = table.columns.scaled(samples)
    return LargeInput(samples, rows, columns=table.columns, path=table.path, table=table)
