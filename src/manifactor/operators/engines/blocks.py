"""A symmetric matrix as an operator on blocks of vectors, on all cores or on a device."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from sklearn.utils import gen_batches

from manifactor._support.errors import extra
from manifactor._support.threads import cores, one_blas_thread, row_slices
from manifactor._support.values import ceil_div
from manifactor.operators.engines import gpu
from manifactor.operators.engines.gpu import (
    ResidentMatrix,
    cast,
    columns_of,
    from_tensor,
    like,
    namespace,
    on_device,
)
from manifactor.operators.engines.tiles import (
    MOST_TILE_COLUMNS,
    columns_of_tiles,
    in_single_precision,
    locally_ordered,
    strip_of,
)

if TYPE_CHECKING:
    from torch import Tensor

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

    def random(self, width: int, rng: Generator) -> np.ndarray:
        """Return random vectors of about unit length, in single precision."""
        # Uniform numbers are faster to draw than normal ones, and as good a start.
        block = rng.random((self.n, width), dtype=np.float32)
        block -= np.float32(0.5)
        # The variance of a uniform number is 1/12.
        block *= np.float32(np.sqrt(12 / self.n))
        return block

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return a block of vectors on some rows, in single precision."""
        block = np.zeros((self.n, vectors.shape[1]), dtype=np.float32)
        place = np.empty(self.n, dtype=int)
        place[self.order] = np.arange(self.n)
        block[place[rows]] = vectors
        return block

    def vectors(self, block: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return vectors of a block in the caller's order, in double precision on its device."""
        out = np.empty((self.n, len(which)))

        def work(rows: slice) -> None:
            out[self.order[rows]] = block[rows][:, which]

        self._run(work)
        return out

    def product(self, block: np.ndarray) -> np.ndarray:
        """Return the matrix times a block, in the block's precision."""
        out = np.empty_like(block)

        def work(rows: slice, strip) -> None:
            out[rows] = strip @ block

        self._run(work, self._matrix(block))
        return out

    def recur(
        self, now: np.ndarray, before: np.ndarray, centre: float, forward: float, back: float
    ) -> None:
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

    def dots(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the inner product of each vector with its partner, (width,), on its device."""
        return np.einsum("xa,xa->a", one, other, dtype=np.float64)

    def inner(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
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

    def _matrix(self, block: np.ndarray) -> list:
        return self._single if block.dtype == np.float32 else self._double

    def _run(self, work: Callable[..., Any], *parts) -> list:
        return list(self._pool.map(work, self._strips, *parts))


class DeviceOperator(PanelledOperator):
    """A matrix on a device that torch can use, with the methods of `HostOperator`."""

    order = slice(None)

    def __init__(self, matrix: ResidentMatrix) -> None:
        self.n = matrix.shape[0]
        self.entries = len(matrix.entries) / self.n
        self._matrix = {double: matrix.compressed(double=double) for double in (False, True)}
        self._diagonal = matrix.diagonal
        self._device = matrix.starts.device
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
