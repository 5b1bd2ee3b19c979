"""Rows of a sparse matrix as dense tiles, which BLAS multiplies.

Samples near each other get rows near each other, with most columns in common: some rows, with the
columns that any of them has, are a dense tile. It has several times as many entries as the rows,
and BLAS multiplies each of them about eight times as fast.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from manifactor._support.threads import row_slices
from manifactor._support.values import quotient
from manifactor.operators.neighbors import with_data

# Rows of a tile: more of them have more columns in all, fewer take more calls.
TILE_ROWS = 24

# Columns of a tile, over the mean entries of a row, up to which tiles are faster than compressed
# rows: twice as fast at 3, and as fast at 6. 60,000 samples of a surface have 3.0 in the order of a
# tree's leaves, 5.1 in reverse Cuthill-McKee order and 23 in random order; those of a 4-dimensional
# manifold 6.5, 10 and 23.
MOST_TILE_COLUMNS = 4.0


class TiledRows:
    """Some rows of a sparse matrix in single precision, as dense tiles."""

    def __init__(self, rows: sp.csr_array) -> None:
        self.n_rows = rows.shape[0]
        self._where = row_slices(self.n_rows, TILE_ROWS, suits=1)
        self._tiles = []  # columns that some rows have, and the rows at those columns
        for where in self._where:
            starts = rows.indptr[where.start : where.stop + 1]
            inside = slice(starts[0], starts[-1])
            columns, place = np.unique(rows.indices[inside], return_inverse=True)
            lengths = np.diff(starts)
            tile = np.zeros((len(lengths), len(columns)), np.float32)
            tile[np.repeat(np.arange(len(lengths)), lengths), place] = rows.data[inside]
            # Indices of this size are taken as they are; others would be converted every time.
            self._tiles.append((columns.astype(np.intp), tile))
        self._most_columns = max(len(columns) for columns, _ in self._tiles)

    def __matmul__(self, block: np.ndarray) -> np.ndarray:
        """Return the product with a block of vectors, (n_rows, width)."""
        width = block.shape[1]
        out = np.empty((self.n_rows, width), block.dtype)
        gathered = np.empty((self._most_columns, width), block.dtype)
        for where, (columns, tile) in zip(self._where, self._tiles, strict=True):
            some = gathered[: len(columns)]
            # Clipping changes no column; checking them would copy what is gathered.
            np.take(block, columns, axis=0, out=some, mode="clip")
            np.matmul(tile, some, out=out[where])
        return out


def locally_ordered(matrix: sp.csr_array) -> tuple[sp.csr_array, np.ndarray]:
    """Return a matrix with near samples in near rows, and their order, (n,)."""
    # Up to twice the columns that tiles may have, the given order is as good as any.
    if columns_of_tiles(matrix) <= 8:
        return matrix, np.arange(matrix.shape[0])
    order = reverse_cuthill_mckee(sp.csr_matrix(matrix), symmetric_mode=True)
    band = sp.csr_array(sp.csr_array(matrix)[order][:, order])
    # Sorted, so that a product reads the block from its beginning to its end.
    band.sort_indices()
    return band, order


def columns_of_tiles(matrix: sp.csr_array) -> float:
    """Return the number of columns of a tile, over the entries of a row, on average."""
    tiles = row_slices(matrix.shape[0], TILE_ROWS, suits=1)
    columns, entries = 0.0, 0.0
    # 100 tiles show it.
    for tile in tiles[:: max(1, len(tiles) // 100)]:
        inside = slice(matrix.indptr[tile.start], matrix.indptr[tile.stop])
        columns += len(np.unique(matrix.indices[inside]))
        entries += (inside.stop - inside.start) / (tile.stop - tile.start)
    return float(quotient(columns, entries))


def strip_of(matrix: sp.csr_array | np.ndarray, rows: slice):
    """Return some rows of a matrix as a view."""
    if isinstance(matrix, np.ndarray):
        return matrix[rows]
    starts = matrix.indptr[rows.start : rows.stop + 1]
    inside = slice(starts[0], starts[-1])
    strip = sp.csr_array((len(starts) - 1, matrix.shape[1]), dtype=matrix.dtype)
    # Set afterwards: the constructor would copy them.
    strip.data = matrix.data[inside]
    strip.indices = matrix.indices[inside]
    strip.indptr = starts - starts[0]
    return strip


def in_single_precision(strip, *, tiled: bool):
    """Return a strip in single precision: in tiles, or with the pattern that it has."""
    if isinstance(strip, np.ndarray):
        return strip.astype(np.float32)
    if tiled:
        return TiledRows(strip)
    return with_data(strip, strip.data.astype(np.float32))
