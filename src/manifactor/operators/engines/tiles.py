"""A symmetric matrix as an operator on blocks of vectors, on all cores.

Samples near each other get rows near each other, with most columns in common: some rows, with the
columns that any of them has, are a dense tile. It has several times as many entries as the rows,
and BLAS multiplies each of them about eight times as fast.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.utils import gen_batches

from manifactor._support.threads import cores, one_blas_thread, row_slices
from manifactor._support.values import ceil_div, quotient
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


# (n, width), an array of the operator's own kind, in its own order of the samples. Small matrices,
# such as all inner products of a block's vectors, are numpy arrays of double precision.
Block = Any


class HostOperator:
    """A matrix on the cores of this machine, its rows in strips that stay in a cache."""

    # Width up to which a product with a block takes hardly more time than with half of it; 0 where
    # the time grows with every vector.
    wide = 0

    def __init__(self, matrix: sp.csr_array | np.ndarray) -> None:
        self.n = matrix.shape[0]
        self.order = np.arange(self.n)
        self.entries: float = matrix.shape[1]  # mean number of entries in a row
        tiled = False
        if sp.issparse(matrix):
            matrix, self.order = locally_ordered(matrix)
            self.entries = matrix.nnz / self.n
            tiled = columns_of_tiles(matrix) <= MOST_TILE_COLUMNS
        self._strips = row_slices(self.n, 1024, at_least=512)
        self._pool = ThreadPoolExecutor(cores())
        self._double = [strip_of(matrix, rows) for rows in self._strips]
        single = partial(in_single_precision, tiled=tiled)
        self._single = list(self._pool.map(single, self._double))

    def __enter__(self) -> "HostOperator":
        self._limit = one_blas_thread()  # every core has a thread of the pool already
        self._limit.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._limit.__exit__(*error)
        self._pool.shutdown(cancel_futures=True)

    def random(self, width: int, rng: Generator) -> Block:
        """Return random vectors of about unit length, in single precision."""
        # Uniform numbers are faster to draw than normal ones, and as good a start.
        block = rng.random((self.n, width), dtype=np.float32)
        block -= np.float32(0.5)
        # The variance of a uniform number is 1/12.
        block *= np.float32(np.sqrt(12 / self.n))
        return block

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> Block:
        """Return a block of vectors on some rows, in single precision."""
        block = np.zeros((self.n, vectors.shape[1]), dtype=np.float32)
        place = np.empty(self.n, dtype=int)
        place[self.order] = np.arange(self.n)
        block[place[rows]] = vectors
        return block

    def vectors(self, block: Block, which: np.ndarray) -> Block:
        """Return vectors of a block in the caller's order, in double precision on its device."""
        out = np.empty((self.n, len(which)))

        def work(rows: slice) -> None:
            out[self.order[rows]] = block[rows][:, which]

        self._run(work)
        return out

    def cast(self, block: Block, *, single: bool) -> Block:
        """Return the block in single or double precision."""
        dtype = np.float32 if single else np.float64
        # No copy where there is nothing to convert: blocks are large.
        return block.astype(dtype, copy=False)

    def product(self, block: Block) -> Block:
        """Return the matrix times a block, in the block's precision."""
        out = np.empty_like(block)

        def work(rows: slice, strip) -> None:
            out[rows] = strip @ block

        self._run(work, self._matrix(block.dtype))
        return out

    def recur(self, now: Block, before: Block, centre: float, forward: float, back: float) -> None:
        """Overwrite `before` with forward * (matrix - centre) @ now - back * before."""
        # Numbers of the block's precision: others would make the strips double.
        shift, ahead, behind = np.array([centre, forward, back], now.dtype)

        def work(rows: slice, strip) -> None:
            after = strip @ now
            after -= shift * now[rows]
            after *= ahead
            before[rows] *= -behind
            before[rows] += after

        self._run(work, self._matrix(now.dtype))

    def inner(self, one: Block, other: Block) -> np.ndarray:
        """Return the inner products of the vectors of two blocks, (width, width).

        They are symmetric: the blocks are the same, or one is the matrix times the other.
        """
        width = one.shape[1]
        columns = list(gen_batches(width, ceil_div(width, 4)))

        def work(rows: slice) -> np.ndarray:
            left = one[rows].astype(np.float64, copy=False)
            if other is one:
                # numpy notices, and computes half of the products only.
                return left.T @ left
            right = other[rows].astype(np.float64, copy=False)
            out = np.zeros((width, width))
            # The lower triangle is the mirror image of the upper one.
            for some in columns:
                upper = slice(some.stop)
                out[upper, some] = left[:, upper].T @ right[:, some]
            return out

        total = self._sum(work, np.zeros((width, width)))
        upper = np.triu(total)
        return upper + np.triu(upper, 1).T

    def dots(self, one: Block, other: Block) -> Any:
        """Return the inner product of each vector with its partner, (width,), on its device."""
        return np.einsum("xa,xa->a", one, other, dtype=np.float64)

    def stacked(self, numbers: Sequence[Any]) -> np.ndarray:
        """Return several results of `dots` as the rows of an array."""
        return np.array(numbers)

    def add(self, block: Block, other: Block, factors: Any) -> None:
        """Add to each vector its partner in another block times a factor, in place."""
        block += other * factors.astype(block.dtype)

    def scale(self, block: Block, factors: Any) -> None:
        """Multiply each vector of a block by a factor, in place."""
        block *= factors.astype(block.dtype)

    def scale_rows(self, block: Block, factors: np.ndarray) -> None:
        """Multiply vectors of a block by factors in the caller's order of samples, in place."""
        block *= factors[self.order, None].astype(block.dtype)

    def clear(self, block: Block, known: Block) -> None:
        """Project a block onto the complement of orthonormal vectors of its precision, in place."""

        def project(rows: slice) -> np.ndarray:
            return known[rows].T @ block[rows]

        along = self._sum(project, 0)

        def work(rows: slice) -> None:
            block[rows] -= known[rows] @ along

        self._run(work)

    def rotate(self, block: Block, rotation: np.ndarray) -> None:
        """Overwrite a block with combinations of its vectors."""
        rotation = rotation.astype(block.dtype, copy=False)

        def work(rows: slice) -> None:
            block[rows] = block[rows] @ rotation

        self._run(work)

    def residual_norms(
        self, image: Block, block: Block, rotation: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Return the norms of image @ rotation - the first columns of block * values."""
        count = len(values)

        def work(rows: slice) -> np.ndarray:
            off = image[rows] @ rotation
            off -= block[rows, :count] * values
            return np.einsum("xa,xa->a", off, off)

        return np.sqrt(self._sum(work, np.zeros(count)))

    def columns(self, block: Block, which: np.ndarray) -> Block:
        """Return a block of some of the vectors."""
        # Rows stay contiguous, as they would not with an index.
        return np.take(block, which, axis=1)

    def beside(self, one: Block, other: Block) -> Block:
        """Return one block of the vectors of two, in the precision of the second."""
        if not one.shape[1]:
            return other
        return np.concatenate([one, other], axis=1, dtype=other.dtype)

    def _matrix(self, dtype) -> list:
        return self._single if dtype == np.float32 else self._double

    def _sum(self, work: Callable[[slice], np.ndarray], zero) -> Any:
        """Return the sum over all strips, always in the same order."""
        return sum(self._pool.map(work, self._strips), zero)

    def _run(self, work: Callable[..., None], *parts) -> None:
        list(self._pool.map(work, self._strips, *parts))
