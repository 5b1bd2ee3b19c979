"""A symmetric matrix as an operator on blocks of vectors, on all cores or on a device."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.utils import gen_batches

from manifactor._support.errors import extra
from manifactor._support.threads import cores, one_blas_thread, row_slices
from manifactor._support.values import ceil_div, quotient
from manifactor.operators.engines import gpu
from manifactor.operators.engines.gpu import (
    ResidentMatrix,
    cast,
    columns_of,
    from_tensor,
    like,
    namespace,
    on_device,
    with_data,
)

if TYPE_CHECKING:
    from torch import Tensor

# Samples near each other get rows near each other, with most columns in common: some rows, with the
# columns that any of them has, are a dense tile. It has several times as many entries as the rows,
# and BLAS multiplies each of them about eight times as fast.

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


# (n, width), an array or a tensor, in the operator's own order of the samples. Small matrices, such
# as all inner products of a block's vectors, are numpy arrays of double precision.
Block = Any


class PanelledOperator:
    """What a solver needs of blocks of vectors, panel by panel of their rows."""

    # Width up to which a product with a block takes hardly more time than with half of it; 0 where
    # the time grows with every vector.
    wide = 0
    order: Any  # the sample that each row of a block is

    def scale_rows(self, block: Block, factors: np.ndarray) -> None:
        """Multiply vectors of a block by factors in the caller's order of samples, in place."""
        block *= cast(like(block, factors[self.order, None]), block.dtype)

    def inner(self, one: Block, other: Block) -> np.ndarray:
        """Return the inner products of the vectors of two blocks, (width, width).

        They are symmetric: the blocks are the same, or one is the matrix times the other.
        """
        double = namespace(one).float64

        def work(rows: slice) -> Any:
            left = cast(one[rows], double)
            return self._inner(left, left if other is one else cast(other[rows], double))

        return from_tensor(sum(self._run(work)))

    def _inner(self, left: Block, right: Block) -> Block:
        return left.T @ right

    def clear(self, block: Block, known: Block) -> None:
        """Project a block onto the complement of orthonormal vectors of its precision, in place."""
        along = sum(self._run(lambda rows: known[rows].T @ block[rows]))

        def work(rows: slice) -> None:
            block[rows] -= known[rows] @ along

        self._run(work)

    def rotate(self, block: Block, rotation: np.ndarray) -> None:
        """Overwrite a block with combinations of its vectors."""
        turn = cast(like(block, rotation), block.dtype)

        def work(rows: slice) -> None:
            block[rows] = block[rows] @ turn

        self._run(work)

    def residual_norms(
        self, image: Block, block: Block, rotation: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Return the norms of image @ rotation - the first columns of block * values."""
        turn, scale = like(image, rotation), like(image, values)

        def work(rows: slice) -> Any:
            off = image[rows] @ turn
            off -= block[rows, : len(scale)] * scale
            return namespace(off).einsum("xa,xa->a", off, off)

        return np.sqrt(from_tensor(sum(self._run(work))))

    def _run(self, work: Callable[[slice], Any]) -> list:
        """Return `work` of all panels, in order."""
        raise NotImplementedError


class HostOperator(PanelledOperator):
    """A matrix on the cores of this machine, its rows in strips that stay in a cache."""

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

    def product(self, block: Block) -> Block:
        """Return the matrix times a block, in the block's precision."""
        out = np.empty_like(block)

        def work(rows: slice, strip) -> None:
            out[rows] = strip @ block

        self._run(work, self._matrix(block))
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

        self._run(work, self._matrix(now))

    def dots(self, one: Block, other: Block) -> Any:
        """Return the inner product of each vector with its partner, (width,), on its device."""
        return np.einsum("xa,xa->a", one, other, dtype=np.float64)

    def inner(self, one: Block, other: Block) -> np.ndarray:
        upper = np.triu(super().inner(one, other))
        return upper + np.triu(upper, 1).T

    def _inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        if right is left:
            # numpy notices, and computes half of the products only.
            return left.T @ left
        width = left.shape[1]
        out = np.zeros((width, width))
        # The lower triangle is the mirror image of the upper one.
        for some in gen_batches(width, ceil_div(width, 4)):
            upper = slice(some.stop)
            out[upper, some] = left[:, upper].T @ right[:, some]
        return out

    def _matrix(self, block: Block) -> list:
        return self._single if block.dtype == np.float32 else self._double

    def _run(self, work: Callable[..., Any], *parts) -> list:
        return list(self._pool.map(work, self._strips, *parts))


class DeviceOperator(PanelledOperator):
    """A matrix on a device that torch can use, with the methods of `HostOperator`."""

    order = slice(None)

    def __init__(self, matrix: ResidentMatrix) -> None:
        self.n = matrix.shape[0]
        self.entries = len(matrix.data) / self.n
        self._matrix = {double: matrix.compressed(double=double) for double in (False, True)}
        self._diagonal = matrix.diagonal
        self._device = matrix.indptr.device
        self.wide = 256 if self._device.type == "cuda" else 0

    def random(self, width: int, rng: Generator) -> "Tensor":
        torch = extra("torch")
        # Torch draws on the device itself; its generator follows the caller's.
        generator = torch.Generator(device=self._device).manual_seed(int(rng.integers(2**62)))
        block = torch.randn((self.n, width), generator=generator, device=self._device)
        return block.div_(self.n**0.5)

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> "Tensor":
        torch = extra("torch")
        block = torch.zeros((self.n, vectors.shape[1]), dtype=torch.float32, device=self._device)
        block[on_device(self._device, rows)] = on_device(self._device, vectors, np.float32)
        return block

    def vectors(self, block: "Tensor", which: np.ndarray) -> "Tensor":
        return columns_of(block, which).double()

    def product(self, block: "Tensor") -> "Tensor":
        torch = extra("torch")
        # Suppressed, not caught: the traceback would hold on to the memory.
        with suppress(torch.OutOfMemoryError):
            out = self._of_precision(block) @ block
            if self._diagonal is None:
                return out
            return out.addcmul_(self._diagonal.to(block.dtype)[:, None], block)
        if block.shape[1] < 8:
            raise torch.OutOfMemoryError("no room for a product with a few vectors.")
        # The caller's block stays whole; only what a product needs beside it halves.
        return torch.cat([self.product(half.contiguous()) for half in block.chunk(2, dim=1)], dim=1)

    def _of_precision(self, block: "Tensor") -> "Tensor":
        """Return the matrix, without `diagonal`, in the precision of a block."""
        return self._matrix[block.dtype == extra("torch").float64]

    def recur(
        self, now: "Tensor", before: "Tensor", centre: float, forward: float, back: float
    ) -> None:
        torch = extra("torch")
        # In place: neither time nor memory for a block between.
        torch.addmm(before, self._of_precision(now), now, beta=-back, alpha=forward, out=before)
        if self._diagonal is None:
            before.add_(now, alpha=-forward * centre)
        else:
            shifted = (self._diagonal - centre).to(now.dtype)
            before.addcmul_(shifted[:, None], now, value=forward)

    def dots(self, one: "Tensor", other: "Tensor") -> "Tensor":
        return (one.double() * other.double()).sum(0)

    def _run(self, work: Callable[..., Any]) -> list:
        # Panel by panel, so that no whole block is converted to double precision.
        return [work(rows) for rows in gen_batches(self.n, gpu.PANEL_ROWS)]


BlockOperator = HostOperator | DeviceOperator
