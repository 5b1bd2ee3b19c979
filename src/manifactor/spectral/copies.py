"""Copies among the samples: found by distances of 0, and merged."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manifactor.spectral.search.device import NeighborTable

FEWEST_DISTINCT = 3  # two samples have one distance, which shows no geometry


@dataclass(frozen=True)
class DistinctSamples:
    """The distinct ones among the given samples."""

    rows: np.ndarray  # (n_distinct,): the given sample that each distinct sample is
    inverse: np.ndarray  # (n_samples,): the distinct sample that each given sample is a copy of

    @classmethod
    def ordered(cls, order: np.ndarray) -> "DistinctSamples":
        """Return all samples as distinct ones in a given order, (n_samples,)."""
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return cls(order, inverse)

    def merge(self, copy_of: np.ndarray) -> "DistinctSamples":
        """Return one distinct sample for each group of copies.

        Shapes: copy_of (n_distinct,).
        """
        first = np.unique(copy_of, return_index=True)[1]
        if len(first) < FEWEST_DISTINCT:
            raise ValueError(
                f"at least {FEWEST_DISTINCT} samples must differ; got "
                f"{len(self.inverse)} samples of which {len(first)} are distinct. "
                "Check that the right columns were read."
            )
        return DistinctSamples(self.rows[first], copy_of[self.inverse])


def copy_groups(distances: sp.csr_array | NeighborTable) -> np.ndarray | None:
    """Return the group of copies of each sample, (n,); None if all samples differ."""
    if isinstance(distances, NeighborTable):
        edges = distances.copies()
    else:
        zero = np.flatnonzero(distances.data == 0)
        row = np.searchsorted(distances.indptr, zero, side="right") - 1
        column = distances.indices[zero]
        # On the diagonal, 0 is the distance of a sample to itself.
        others = row != column
        pairs = (row[others], column[others])
        edges = sp.csr_array((np.ones(others.sum()), pairs), shape=distances.shape)
    return connected_components(edges, directed=False)[1] if edges.nnz else None


def shortest_between(
    distances: sp.csr_array, row_group: np.ndarray, column_group: np.ndarray
) -> sp.csr_array:
    """Return the shortest distances between groups of rows and groups of columns.

    The distance of a group to itself stays 0.

    Shapes: distances (n_rows, n_columns), row_group (n_rows,), column_group (n_columns,).
    """
    row = row_group[row_of(distances)]
    column = column_group[distances.indices]
    order = np.lexsort((distances.data, column, row))
    row = row[order]
    column = column[order]
    data = distances.data[order]
    # Sorted by pair of groups and then by distance: the first of each pair is shortest.
    changes = (np.diff(row) != 0) | (np.diff(column) != 0)
    first = np.r_[True, changes][: len(row)]
    # `initial`: a matrix of no rows has no largest group.
    n_rows = row_group.max(initial=-1) + 1
    n_columns = column_group.max() + 1
    pairs = (row[first], column[first])
    return sp.csr_array((data[first], pairs), shape=(n_rows, n_columns))


def row_of(matrix: sp.csr_array) -> np.ndarray:
    """Return the row of every stored entry, (n_entries,)."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
