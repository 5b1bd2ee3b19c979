"""Memory and rough time, on a core of 2.4 GHz, of a whole command and of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.threads import cores
from manifactor.operators.forecast import Forecast, as_duration, as_size
from manifactor.runs.folder import most_rows
from manifactor.runs.sources import Input, Opened
from manifactor.tables.text import DELIMITERS

# Seconds and bytes of Python and the libraries.
START_SECONDS, PROCESS_BYTES = 2.0, 2e8
# Bytes a second from a disk: of text, and of all else.
TEXT_RATE, DISK_RATE = 3e7, 4e8


@dataclass(frozen=True)
class PartCost:
    """Time of one part of a command, and memory at its peak."""

    name: str
    seconds: float  # of all workers together
    memory: float  # bytes of the process, or of each worker
    on_workers: bool = False


@dataclass(frozen=True)
class Cost(Forecast):
    """Memory and time of a command; ``str()`` reads as prose."""

    parts: tuple[PartCost, ...] = ()  # in this order
    n_workers: int = 1  # with one, this process does all the work
    worker_memory: float = 0.0  # bytes of each worker; 0 without any

    def __str__(self) -> str:
        if not self.worker_memory:
            return super().__str__()
        which = "the worker" if self.n_workers == 1 else f"each of {self.n_workers} workers"
        here, there = as_size(self.memory), as_size(self.worker_memory)
        return f"about {here}, {there} on {which}, and {as_duration(self.seconds)}"

    def as_rows(self, what: str = "part") -> list[list[str]]:
        """Return the rows of a table of the parts, the names of its columns first."""
        rows = [[what, "time", "memory"]]
        for part in self.parts:
            duration = as_duration(part.seconds) if part.seconds >= 1 else "< 1 s"
            where = " a worker" if part.on_workers and self.worker_memory else ""
            rows.append([part.name, duration, f"{as_size(part.memory)}{where}"])
        return rows


def cores_of_worker(n_workers: int) -> int:
    """Return how many cores each worker of this machine has."""
    return max(1, cores() // n_workers)


def cost_of_parts(
    parts: Sequence[PartCost], *, n_workers: int = 1, device_memory: float = 0.0
) -> Cost:
    """Return the cost of parts that follow each other; those without time are left out."""
    kept = tuple(part for part in parts if part.seconds > 0)
    there = [part.memory for part in kept if n_workers > 1 and part.on_workers]
    here = [part.memory for part in kept if n_workers == 1 or not part.on_workers]
    most, seconds = max(here, default=0.0), sum(part.seconds for part in kept)
    return Cost(most, seconds, device_memory, kept, n_workers, max(there, default=0.0))


def cost_of_pieces(pieces: Sequence[PartCost], *, n_workers: int) -> Cost:
    """Return the cost of independent pieces of work, each done by one of some workers."""
    seconds = [piece.seconds for piece in pieces]
    used = min(n_workers, len(pieces))
    # At best the workers end together, and no piece is divided.
    longest = max(sum(seconds) / used, *seconds)
    there = max(piece.memory for piece in pieces)
    return Cost(PROCESS_BYTES, longest, 0.0, tuple(pieces), used, there)


def forecast_input(
    opened: Opened,
    fitting: Forecast,
    n_fitted: int,
    *,
    n_workers: int = 1,
    n_cores: int | None = None,
) -> Cost:
    """Estimate the cost of a fit from the first file that is read to the last written."""
    each = n_cores or cores_of_worker(n_workers)
    # Samples that are read from a disk when they are needed are not held.
    mapped = isinstance(opened, Input) and type(opened.samples) is not np.ndarray
    held = PROCESS_BYTES + (0 if mapped else 16 * len(opened.rows) * opened.n_columns)
    start = START_SECONDS + 2e-5 * opened.n_named
    one_pass = _pass_seconds(opened.path)
    parts = opened.costs(start, held, each) or [PartCost("reading", start + one_pass, held)]
    # Torch and a GPU start in some seconds. Threads of a fit, and the samples that tests are made
    # with, take memory whatever its size.
    seconds = fitting.seconds + (6 if fitting.device_memory else 0)
    parts = [*parts, PartCost("fitting", seconds, held + 1e8 + fitting.memory)]
    n, width, held = opened.n_samples, opened.n_columns, held + 4000 * n_fitted
    seconds, memory = n * (6e-6 + 1e-5 / each + 1e-8 * width), held + 1.5e8
    n_lines = n
    if opened.table is not None:
        # Samples are read where they are placed, and written there.
        n_lines, seconds = 0, seconds + one_pass
        memory += min(n, most_rows(width)) * (16 * width + 100)
    elif n_fitted == n:
        seconds = 0.0
    elif n_workers == 1:
        memory += 100 * n
    parts += [PartCost("placing", seconds / n_workers, memory, on_workers=True)]
    # Lines of coordinates.csv, and the archive.
    seconds, memory = 5e-6 * n_lines + 8e-6 * n_fitted, held + 350 * n_lines
    if opened.n_named:
        # Lines of their own file, and comparisons with what it says of them.
        seconds, memory = seconds + 0.8 + 1.5e-5 * n_lines, memory + 1500 * n_lines
    parts += [PartCost("writing", seconds, memory)]
    return cost_of_parts(parts, n_workers=n_workers, device_memory=fitting.device_memory)


def _pass_seconds(path: Path | None) -> float:
    """Return the seconds of reading a table once."""
    if path is None:
        return 0.0
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    rate = TEXT_RATE if path.suffix.lower() in DELIMITERS else DISK_RATE
    return sum(each.stat().st_size for each in files) / rate
