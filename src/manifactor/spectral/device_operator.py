"""A symmetric matrix as an operator on blocks of vectors, on a device of torch's."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from sklearn.utils import gen_batches

from manifactor._support.extras import extra
from manifactor.spectral.resident import ResidentMatrix, from_tensor

if TYPE_CHECKING:
    from torch import Tensor


class DeviceOperator:
    """A matrix on a device that torch can use; blocks are tensors there.

    Shapes: matrix (n, n).
    """

    def __init__(
        self,
        matrix: ResidentMatrix,
        *,
        panel_rows: int = 2**20,
        fewest_columns: int = 8,
        wide: int = 256,
    ) -> None:
        self.n = matrix.shape[0]
        self.entries = len(matrix.entries) / self.n
        self._matrix = {
            "single": matrix.compressed(double=False),
            "double": matrix.compressed(double=True),
        }
        self._diagonal = matrix.diagonal
        self._device = matrix.starts.device
        self.wide = wide if self._device.type == "cuda" else 0
        self._panels = list(gen_batches(self.n, panel_rows))
        self._fewest_columns = fewest_columns

    def random(self, width: int, rng: Generator) -> "Tensor":
        torch = extra("torch")
        # Torch draws on the device itself; its generator follows the caller's.
        seed = int(rng.integers(2**62))
        generator = torch.Generator(device=self._device).manual_seed(seed)
        shape = (self.n, width)
        block = torch.randn(shape, generator=generator, device=self._device)
        return block.div_(self.n**0.5)

    def filled(self, rows: np.ndarray, vectors: np.ndarray) -> "Tensor":
        torch = extra("torch")
        shape = (self.n, vectors.shape[1])
        block = torch.zeros(shape, dtype=torch.float32, device=self._device)
        there = torch.as_tensor(rows, device=self._device)
        block[there] = self._there(vectors).float()
        return block

    def vectors(self, block: "Tensor", which: np.ndarray) -> "Tensor":
        return self.columns(block, which).double()

    def cast(self, block: "Tensor", *, single: bool) -> "Tensor":
        return block.float() if single else block.double()

    def product(self, block: "Tensor") -> "Tensor":
        torch = extra("torch")
        # Suppressed, not caught: the traceback would hold on to the memory.
        with suppress(torch.OutOfMemoryError):
            return self._whole_product(block)
        if block.shape[1] < self._fewest_columns:
            raise torch.OutOfMemoryError("no room for a product with a few vectors.")
        # The caller's block stays whole; only what a product needs beside it halves.
        halves = block.chunk(2, dim=1)
        products = [self.product(half.contiguous()) for half in halves]
        return torch.cat(products, dim=1)

    def _whole_product(self, block: "Tensor") -> "Tensor":
        out = self._of_precision(block) @ block
        if self._diagonal is None:
            return out
        diagonal = self._diagonal.to(block.dtype)
        return out.addcmul_(diagonal[:, None], block)

    def _of_precision(self, block: "Tensor") -> "Tensor":
        """Return the matrix, without `diagonal`, in the precision of a block."""
        single = block.dtype == extra("torch").float32
        return self._matrix["single" if single else "double"]

    def recur(
        self, now: "Tensor", before: "Tensor", centre: float, forward: float, back: float
    ) -> None:
        torch = extra("torch")
        matrix = self._of_precision(now)
        # In place: neither time nor memory for a block between.
        torch.addmm(before, matrix, now, beta=-back, alpha=forward, out=before)
        if self._diagonal is None:
            before.add_(now, alpha=-forward * centre)
        else:
            shifted = (self._diagonal - centre).to(now.dtype)
            before.addcmul_(shifted[:, None], now, value=forward)

    def inner(self, one: "Tensor", other: "Tensor") -> np.ndarray:
        out = np.zeros((one.shape[1], other.shape[1]))
        # Panel by panel, so that no whole block is converted to double precision.
        for rows in self._panels:
            left, right = one[rows].double(), other[rows].double()
            out += from_tensor(left.T @ right)
        return out

    def dots(self, one: "Tensor", other: "Tensor") -> "Tensor":
        return (one.double() * other.double()).sum(0)

    def stacked(self, numbers: "Sequence[Tensor]") -> np.ndarray:
        # One transfer for all of them: each would wait for the device.
        together = extra("torch").stack(list(numbers))
        return from_tensor(together)

    def add(self, block: "Tensor", other: "Tensor", factors: "Tensor") -> None:
        block.addcmul_(other, factors.to(block.dtype))

    def scale(self, block: "Tensor", factors: "Tensor") -> None:
        block.mul_(factors.to(block.dtype))

    def scale_rows(self, block: "Tensor", factors: np.ndarray) -> None:
        block.mul_(self._there(factors)[:, None].to(block.dtype))

    def clear(self, block: "Tensor", known: "Tensor") -> None:
        block.addmm_(known, known.T @ block, alpha=-1)

    def rotate(self, block: "Tensor", rotation: np.ndarray) -> None:
        there = self._there(rotation).to(block.dtype)
        for rows in self._panels:
            block[rows] = block[rows] @ there

    def residual_norms(
        self, image: "Tensor", block: "Tensor", rotation: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        there, scale = self._there(rotation), self._there(values)
        square = np.zeros(len(values))
        for rows in self._panels:
            first = block[rows, : len(values)]
            off = image[rows] @ there - first * scale
            square += from_tensor((off**2).sum(0))
        return np.sqrt(square)

    def columns(self, block: "Tensor", which: np.ndarray) -> "Tensor":
        there = extra("torch").as_tensor(which, device=self._device)
        return block[:, there]

    def beside(self, one: "Tensor", other: "Tensor") -> "Tensor":
        if not one.shape[1]:
            return other
        blocks = [one.to(other.dtype), other]
        return extra("torch").cat(blocks, dim=1)

    def _there(self, array: np.ndarray) -> "Tensor":
        """Return an array in double precision on the device."""
        contiguous = np.ascontiguousarray(array, dtype=np.float64)
        return extra("torch").as_tensor(contiguous).to(self._device)
