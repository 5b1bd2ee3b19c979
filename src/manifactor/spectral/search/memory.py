"""Steps of work that adapt to the memory of a torch device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manifactor._support.extras import extra

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class StepMemory:
    """Bytes that a step may allocate, halved whenever the device runs out of memory."""

    size: int
    least: int  # with less, the device counts as full

    def fit(self, step: Callable[[int], Any]) -> Any:
        """Return ``step(size)`` for the first size that fits, halving from `size`."""
        while True:
            try:
                return step(self.size)
            # Smaller steps from now on: what did not fit once is not tried again.
            except extra("torch").OutOfMemoryError:
                if self.size // 2 < self.least:
                    raise
                self.size //= 2

    def in_blocks(self, part: Callable[[slice], "Tensor"], n_rows: int, row_bytes: int) -> "Tensor":
        """Concatenate ``part(rows)`` over blocks of rows that fit."""

        def joined(size: int) -> "Tensor":
            step = max(1, size // row_bytes)
            starts = range(0, n_rows, step)
            parts = [part(slice(start, start + step)) for start in starts]
            return extra("torch").cat(parts)

        return self.fit(joined)
