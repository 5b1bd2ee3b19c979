"""A symmetric matrix as something that maps blocks of vectors: on all cores, or on a device that torch knows.

Blocks are arrays of the operator's own kind, (n, width), in the operator's own order of the samples. Small matrices,
such as all inner products of a block's vectors, are numpy arrays of double precision whatever the kind.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.utils import gen_batches

from manifactor._support.extras import extra
from manifactor._support.threads import one_blas_thread, row_slices
from manifactor.spectral.resident import ResidentMatrix

if TYPE_CHECKING:
    from torch import Tensor

STRIP = 2048  # rows that one core works on at a time: they stay in its cache
TENSOR_PANEL = 2**20  # the same on a device
COLUMN_STRIPS = 4  # in which half a symmetric matrix is made
FEWEST_COLUMNS = 8  # to which a product on a device that is nearly full is cut


class Operator(Protocol):
    """What the solvers need of a matrix."""

    n: int
    entries: float  # of the matrix, in a row

    def random(self, width: int, rng: np.random.Generator) -> Any:
        """A block of random vectors of about unit length, in single precision."""

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> Any:
        """Vectors that are known for some samples, (n_rows, width), as a block that is 0 elsewhere."""

    def vectors(self, block: Any, which: np.ndarray) -> Any:
        """Some of a block's vectors with the samples in the caller's order, in double precision, where they are."""

    def cast(self, block: Any, *, single: bool) -> Any:
        """The same block in single or double precision."""

    def product(self, block: Any) -> Any:
        """The matrix times a block, in the block's precision."""

    def recur(
        self, now: Any, before: Any, centre: float, forward: float, back: float
    ) -> None:
        """Overwrite `before` with forward * (matrix - centre) @ now - back * before."""

    def inner(self, one: Any, other: Any) -> np.ndarray:
        """Inner products of the vectors of two blocks, (width, width), summed in double precision.

        They are symmetric: the blocks are the same, or one is the matrix times the other.
        """

    def dots(self, one: Any, other: Any) -> Any:
        """Inner products of each vector of a block with its partner in another, (width,), where the vectors are."""

    def stacked(self, numbers: Sequence[Any]) -> np.ndarray:
        """What `dots` gave several times as the rows of an array."""

    def clear(self, block: Any, known: Any) -> None:
        """Take out of a block what lies along known orthonormal vectors, another block of its precision."""

    def rotate(self, block: Any, rotation: np.ndarray) -> None:
        """Overwrite a block with combinations of its vectors."""

    def columns(self, block: Any, which: np.ndarray) -> Any:
        """A block of some of the vectors."""

    def beside(self, one: Any, other: Any) -> Any:
        """One block of the vectors of two, in the precision of the second."""

    def add(self, block: Any, other: Any, factors: Any) -> None:
        """Add to each vector of a block its partner in another, times a factor."""

    def scale(self, block: Any, factors: Any) -> None:
        """Multiply each vector of a block by a factor."""

    def off(
        self, image: Any, block: Any, rotation: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Norms of image @ rotation - block * values, column by column; the first columns of `block` count."""


class HostOperator:
    """A matrix on the cores of this machine, its rows in strips that stay in a cache.

    The samples of a sparse matrix are put in reverse Cuthill-McKee order, so that a strip's products read few rows.
    """

    def __init__(self, matrix: sp.csr_array | np.ndarray) -> None:
        self.n = matrix.shape[0]
        self.order = np.arange(self.n)
        if sp.issparse(matrix):
            self.order = reverse_cuthill_mckee(
                sp.csr_matrix(matrix), symmetric_mode=True
            )
            matrix = sp.csr_array(sp.csr_array(matrix)[self.order][:, self.order])
            matrix.sort_indices()
        self.entries = (
            matrix.shape[1] if isinstance(matrix, np.ndarray) else matrix.nnz / self.n
        )
        self._strips = row_slices(self.n, STRIP)
        self._double = [matrix[rows] for rows in self._strips]
        self._single = [_narrow(strip) for strip in self._double]
        self._pool = ThreadPoolExecutor(os.cpu_count())

    def __enter__(self) -> "HostOperator":
        self._limit = one_blas_thread()  # every core has a thread of the pool already
        self._limit.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._limit.__exit__(*error)
        self._pool.shutdown(cancel_futures=True)

    def random(self, width: int, rng: np.random.Generator) -> np.ndarray:
        block = rng.random(
            (self.n, width), dtype=np.float32
        )  # sooner had than normal ones, and as good
        block -= np.float32(0.5)
        block *= np.float32(np.sqrt(12 / self.n))
        return block

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        block = np.zeros((self.n, vectors.shape[1]), dtype=np.float32)
        place = np.empty(self.n, dtype=int)
        place[self.order] = np.arange(self.n)
        block[place[rows]] = vectors
        return block

    def vectors(self, block: np.ndarray, which: np.ndarray) -> np.ndarray:
        out = np.empty((self.n, len(which)))

        def work(rows: slice) -> None:
            out[self.order[rows]] = block[rows][:, which]

        self._run(work, self._strips)
        return out

    def cast(self, block: np.ndarray, *, single: bool) -> np.ndarray:
        return block.astype(np.float32 if single else np.float64, copy=False)

    def product(self, block: np.ndarray) -> np.ndarray:
        out = np.empty_like(block)

        def work(rows: slice, strip) -> None:
            out[rows] = strip @ block

        self._run(work, self._strips, self._matrix(block.dtype))
        return out

    def recur(
        self,
        now: np.ndarray,
        before: np.ndarray,
        centre: float,
        forward: float,
        back: float,
    ) -> None:
        shift, ahead, behind = np.array([centre, forward, back], now.dtype)

        def work(rows: slice, strip) -> None:
            after = strip @ now
            after -= shift * now[rows]
            after *= ahead
            before[rows] *= -behind
            before[rows] += after

        self._run(work, self._strips, self._matrix(now.dtype))

    def inner(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        width = one.shape[1]

        def work(rows: slice) -> np.ndarray:
            left = one[rows].astype(np.float64, copy=False)
            if other is one:
                return left.T @ left  # of which numpy makes a half only
            right, out = (
                other[rows].astype(np.float64, copy=False),
                np.zeros((width, width)),
            )
            for some in gen_batches(width, -(-width // COLUMN_STRIPS)):
                out[: some.stop, some] = left[:, : some.stop].T @ right[:, some]
            return out

        upper = np.triu(
            sum(self._pool.map(work, self._strips), np.zeros((width, width)))
        )
        return upper + np.triu(upper, 1).T

    def dots(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.einsum("xa,xa->a", one, other, dtype=np.float64)

    def stacked(self, numbers: Sequence[np.ndarray]) -> np.ndarray:
        return np.array(numbers)

    def add(self, block: np.ndarray, other: np.ndarray, factors: np.ndarray) -> None:
        block += other * factors.astype(block.dtype)

    def scale(self, block: np.ndarray, factors: np.ndarray) -> None:
        block *= factors.astype(block.dtype)

    def clear(self, block: np.ndarray, known: np.ndarray) -> None:
        along = sum(
            self._pool.map(lambda rows: known[rows].T @ block[rows], self._strips)
        )

        def work(rows: slice) -> None:
            block[rows] -= known[rows] @ along

        self._run(work, self._strips)

    def rotate(self, block: np.ndarray, rotation: np.ndarray) -> None:
        rotation = rotation.astype(block.dtype, copy=False)

        def work(rows: slice) -> None:
            block[rows] = block[rows] @ rotation

        self._run(work, self._strips)

    def off(
        self,
        image: np.ndarray,
        block: np.ndarray,
        rotation: np.ndarray,
        values: np.ndarray,
    ) -> np.ndarray:
        def work(rows: slice) -> np.ndarray:
            off = image[rows] @ rotation
            off -= block[rows, : len(values)] * values
            return np.einsum("xa,xa->a", off, off)

        return np.sqrt(sum(self._pool.map(work, self._strips), np.zeros(len(values))))

    def columns(self, block: np.ndarray, which: np.ndarray) -> np.ndarray:
        return np.take(
            block, which, axis=1
        )  # rows stay contiguous, as they would not with an index

    def beside(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (
            np.concatenate([one, other], axis=1, dtype=other.dtype)
            if one.shape[1]
            else other
        )

    def _matrix(self, dtype) -> list:
        return self._single if dtype == np.float32 else self._double

    def _run(self, work, *parts) -> None:
        for _ in self._pool.map(work, *parts):
            pass


def _narrow(strip):
    """A strip in single precision; a sparse one shares its pattern."""
    if isinstance(strip, np.ndarray):
        return strip.astype(np.float32)
    return sp.csr_array(
        (strip.data.astype(np.float32), strip.indices, strip.indptr), shape=strip.shape
    )


class DeviceOperator:
    """A matrix where torch has put it; blocks are tensors there."""

    def __init__(self, matrix: ResidentMatrix) -> None:
        self.n, self.entries = matrix.shape[0], len(matrix.entries) / matrix.shape[0]
        self._matrix = {
            dtype: matrix.compressed(double=dtype == "double")
            for dtype in ("single", "double")
        }
        self._diagonal = matrix.diagonal
        self._device = matrix.starts.device

    def random(self, width: int, rng: np.random.Generator) -> "Tensor":
        torch = extra("torch")
        generator = torch.Generator(device=self._device).manual_seed(
            int(rng.integers(2**62))
        )
        return torch.randn(
            (self.n, width), generator=generator, device=self._device
        ).div_(self.n**0.5)

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> "Tensor":
        torch = extra("torch")
        block = torch.zeros(
            (self.n, vectors.shape[1]), dtype=torch.float32, device=self._device
        )
        block[torch.as_tensor(rows, device=self._device)] = self._there(vectors).float()
        return block

    def vectors(self, block: "Tensor", which: np.ndarray) -> "Tensor":
        return self.columns(block, which).double()

    def cast(self, block: "Tensor", *, single: bool) -> "Tensor":
        return block.float() if single else block.double()

    def product(self, block: "Tensor") -> "Tensor":
        torch = extra("torch")
        with suppress(
            torch.OutOfMemoryError
        ):  # whose traceback would hold on to the memory
            out = (
                self._matrix["single" if block.dtype == torch.float32 else "double"]
                @ block
            )
            return (
                out
                if self._diagonal is None
                else out.addcmul_(self._diagonal.to(block.dtype)[:, None], block)
            )
        if block.shape[1] < FEWEST_COLUMNS:
            raise torch.OutOfMemoryError("no room for a product with a few vectors.")
        return torch.cat(
            [self.product(half.contiguous()) for half in block.chunk(2, dim=1)], dim=1
        )

    def recur(
        self,
        now: "Tensor",
        before: "Tensor",
        centre: float,
        forward: float,
        back: float,
    ) -> None:
        after = self.product(now).sub_(now, alpha=centre)
        before.mul_(-back).add_(after, alpha=forward)

    def inner(self, one: "Tensor", other: "Tensor") -> np.ndarray:
        out = np.zeros((one.shape[1], other.shape[1]))
        for rows in gen_batches(self.n, TENSOR_PANEL):
            out += (one[rows].double().T @ other[rows].double()).cpu().numpy()
        return out

    def dots(self, one: "Tensor", other: "Tensor") -> "Tensor":
        return (one.double() * other.double()).sum(0)

    def stacked(self, numbers: "Sequence[Tensor]") -> np.ndarray:
        return extra("torch").stack(list(numbers)).cpu().numpy()

    def add(self, block: "Tensor", other: "Tensor", factors: "Tensor") -> None:
        block.addcmul_(other, factors.to(block.dtype))

    def scale(self, block: "Tensor", factors: "Tensor") -> None:
        block.mul_(factors.to(block.dtype))

    def clear(self, block: "Tensor", known: "Tensor") -> None:
        block.addmm_(known, known.T @ block, alpha=-1)

    def rotate(self, block: "Tensor", rotation: np.ndarray) -> None:
        there = self._there(rotation).to(block.dtype)
        for rows in gen_batches(self.n, TENSOR_PANEL):
            block[rows] = block[rows] @ there

    def off(
        self, image: "Tensor", block: "Tensor", rotation: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        there, scale = self._there(rotation), self._there(values)
        square = np.zeros(len(values))
        for rows in gen_batches(self.n, TENSOR_PANEL):
            off = image[rows] @ there - block[rows, : len(values)] * scale
            square += (off**2).sum(0).cpu().numpy()
        return np.sqrt(square)

    def columns(self, block: "Tensor", which: np.ndarray) -> "Tensor":
        return block[:, extra("torch").as_tensor(which, device=self._device)]

    def beside(self, one: "Tensor", other: "Tensor") -> "Tensor":
        return (
            extra("torch").cat([one.to(other.dtype), other], dim=1)
            if one.shape[1]
            else other
        )

    def _there(self, array: np.ndarray) -> "Tensor":
        return (
            extra("torch")
            .as_tensor(np.ascontiguousarray(array, dtype=np.float64))
            .to(self._device)
        )
