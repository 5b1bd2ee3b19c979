"""A symmetric matrix in strips of rows, for products with blocks of vectors.

Samples are put in an order in which those that lie near each other have rows near each other. Such
rows have most of their columns in common: some rows, with the columns that any of them has, are a
dense tile. It has several times as many entries as the rows, and BLAS multiplies each of them about
eight times as fast.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from manifactor._support.arithmetic import quotient
from manifactor._support.threads import row_slices


@dataclass(frozen=True)
class TileSettings:
    """Settings of tiles, and of the choice whether to use them."""

    # Rows of a tile: more of them have more columns in all, fewer take more calls.
    rows: int = 24

    # Columns of a tile, over the mean entries of a row, up to which tiles are faster than
    # compressed rows: twice as fast at 3, and as fast at 6. 60,000 samples of a surface have 3.0 in
    # the order of a tree's leaves, 5.1 in reverse Cuthill-McKee order and 23 in random order; those
    # of a 4-dimensional manifold 6.5, 10 and 23.
    most_columns: float = 4.0

    # The same, up to which the given order of the samples is as good as any.
    most_in_order: float = 8.0

    # Tiles that are looked at to choose.
    looked_at: int = 100


class TiledRows:
    """Some rows of a sparse matrix in single precision, as dense tiles.

    Shapes: rows (n_rows, n).
    """

    def __init__(self, rows: sp.csr_array, *, tile_rows: int) -> None:
        """Lay the rows out in tiles."""
        self.n_rows = rows.shape[0]
        self._where = row_slices(self.n_rows, tile_rows, suits=1)
        self._tiles = [_tile(rows, where) for where in self._where]
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


def _tile(rows: sp.csr_array, where: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that some rows have, and the rows at those columns."""
    starts = rows.indptr[where.start : where.stop + 1]
    inside = slice(starts[0], starts[-1])
    columns, place = np.unique(rows.indices[inside], return_inverse=True)
    lengths = np.diff(starts)
    tile = np.zeros((len(lengths), len(columns)), np.float32)
    tile[np.repeat(np.arange(len(lengths)), lengths), place] = rows.data[inside]
    # Indices of this size are taken as they are; others would be converted every time.
    return columns.astype(np.intp), tile


def locally_ordered(
    matrix: sp.csr_array, *, settings: TileSettings = TileSettings()
) -> tuple[sp.csr_array, np.ndarray]:
    """Return a matrix with samples near each other in rows near each other.

    Also return the order, (n,). It is the given one where that is good, and else the reverse
    Cuthill-McKee order.
    """
    if columns_of_tiles(matrix, settings=settings) <= settings.most_in_order:
        return matrix, np.arange(matrix.shape[0])
    order = reverse_cuthill_mckee(sp.csr_matrix(matrix), symmetric_mode=True)
    rows = sp.csr_array(matrix)[order]
    band = sp.csr_array(rows[:, order])
    # Sorted, so that a product reads the block from its beginning to its end.
    band.sort_indices()
    return band, order


def columns_of_tiles(matrix: sp.csr_array, *, settings: TileSettings = TileSettings()) -> float:
    """Return the number of columns of a tile, over the entries of a row, on average."""
    tiles = row_slices(matrix.shape[0], settings.rows, suits=1)
    step = max(1, len(tiles) // settings.looked_at)
    columns, entries = 0.0, 0.0
    for tile in tiles[::step]:
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


def in_single_precision(strip, *, tile_rows: int = 0):
    """Return a strip in single precision.

    A sparse one becomes tiles of so many rows; with 0 it shares its pattern.
    """
    if isinstance(strip, np.ndarray):
        return strip.astype(np.float32)
    if tile_rows:
        return TiledRows(strip, tile_rows=tile_rows)
    data = strip.data.astype(np.float32)
    return sp.csr_array((data, strip.indices, strip.indptr), shape=strip.shape)
