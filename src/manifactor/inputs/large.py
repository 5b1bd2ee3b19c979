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

    Attributes
    ----------
    samples : ndarray of shape (n_drawn, n_features)
    rows : ndarray of int of shape (n_drawn,)
        Their numbers in the table, ascending.
    table : StoredTable
        All samples.
    """

    table: StoredTable = field(kw_only=True)

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples


@dataclass(frozen=True)
class UnreadTable:
    """Samples that are drawn of a table on disk, and not read yet.

    Attributes
    ----------
    table : StoredTable
        All samples.
    rows : ndarray of int
        Those that are drawn, ascending.
    standardise : bool
        As in `read_large`.
    """

    table: StoredTable
    rows: np.ndarray
    standardise: bool = False
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


def read_large(
    table: StoredTable, rows: np.ndarray, *, standardise: bool = False
) -> LargeInput:
    """Read some samples of a table, chunk by chunk.

    Parameters
    ----------
    table : StoredTable
    rows : ndarray of int
        Ascending.
    standardise : bool
        Whether to scale columns to unit variance: that of the samples drawn.
    """
    samples = table.take(rows)
    if standardise:
        table = table.scaled(*unit_scale(samples, table.columns.labels))
        samples = table.columns.scaled(samples)
    return LargeInput(
        samples, rows, columns=table.columns, path=table.path, table=table
    )
