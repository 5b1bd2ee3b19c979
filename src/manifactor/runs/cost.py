"""Memory of a whole command, before it starts."""

from dataclasses import dataclass

import numpy as np

from manifactor.operators.forecast import Forecast, as_size
from manifactor.runs.folder import most_rows
from manifactor.runs.sources import Input, Opened

# Bytes of Python and the libraries.
PROCESS_BYTES = 2e8


@dataclass(frozen=True)
class Cost(Forecast):
    """Memory of a command; ``str()`` reads as prose."""

    n_workers: int = 1  # with one, this process does all the work
    worker_memory: float = 0.0  # bytes of each worker; 0 without any

    def __str__(self) -> str:
        if not self.worker_memory:
            return super().__str__()
        which = "the worker" if self.n_workers == 1 else f"each of {self.n_workers} workers"
        return f"{super().__str__()}, {as_size(self.worker_memory)} on {which}"


def cost_of_input(opened: Opened, fitting: Forecast, n_fitted: int, *, n_workers: int = 1) -> Cost:
    """Estimate the memory of a fit from the first file that is read to the last written."""
    # Samples that are read from a disk when they are needed are not held.
    mapped = isinstance(opened, Input) and type(opened.samples) is not np.ndarray
    n, width = opened.n_samples, opened.n_columns
    held = PROCESS_BYTES + (0 if mapped else 16 * len(opened.rows) * width)
    # Threads of a fit, and the samples that tests are made with, take memory whatever its size.
    here = [held + opened.reading_memory, held + 1e8 + fitting.memory]
    held += 4000 * n_fitted
    n_lines, placing = n, held + 1.5e8
    if opened.table is not None:
        # Samples are read where they are placed, and written there.
        n_lines, placing = 0, placing + min(n, most_rows(width)) * (16 * width + 100)
    elif n_fitted == n:
        placing = 0.0
    elif n_workers == 1:
        placing += 100 * n
    # Lines of coordinates.csv, and those of the file of the particles.
    here.append(held + (1850 if opened.n_named else 350) * n_lines)
    if n_workers > 1:
        return Cost(max(here), fitting.device_memory, n_workers, placing)
    return Cost(max(*here, placing), fitting.device_memory)
