"""Memory and time of a whole command, with those of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from manifactor._support.threads import cores
from manifactor.spectral.forecast import Forecast, as_duration, as_size


@dataclass(frozen=True)
class PartCost:
    """Time of one part of a command, and memory at its peak."""

    name: str
    seconds: float
    memory: float  # bytes of the process, or of each worker
    # Whether the part is divided over workers. Its time is that of all together.
    on_workers: bool = False


@dataclass(frozen=True)
class Cost(Forecast):
    """Memory and time of a command; ``str()`` reads as prose."""

    parts: tuple[PartCost, ...] = ()  # what the command does, in this order
    n_workers: int = 1  # how many workers share the work; with one, this process does it all
    worker_memory: float = 0.0  # bytes of each worker; 0 without any

    @property
    def longest(self) -> PartCost:
        """The part that takes most of the time."""
        return max(self.parts, key=lambda part: part.seconds)

    def __str__(self) -> str:
        if not self.worker_memory:
            return super().__str__()
        several = f"each of {self.n_workers} workers"
        which = "the worker" if self.n_workers == 1 else several
        workers = f"{as_size(self.worker_memory)} on {which}"
        own = f"about {as_size(self.memory)}, {workers},"
        return f"{own} and {as_duration(self.seconds)}"

    def as_rows(self, what: str = "part") -> list[list[str]]:
        """Return the rows of a table of the parts, the names of its columns first."""
        rows = [[what, "time", "memory"]]
        for part in self.parts:
            duration = as_duration(part.seconds) if part.seconds >= 1 else "< 1 s"
            where = " a worker" if part.on_workers and self.worker_memory else ""
            rows.append([part.name, duration, f"{as_size(part.memory)}{where}"])
        return rows


def cores_of_worker(n_workers: int, n_cores: int | None) -> int:
    """Return the cores of a worker; None where all share those of this machine."""
    return n_cores or max(1, cores() // n_workers)


def cost_of_parts(
    parts: Sequence[PartCost], *, n_workers: int = 1, device_memory: float = 0.0
) -> Cost:
    """Return the cost of parts that follow each other; those without time are left out.

    >>> fitting, placing = PartCost("fitting", 5, 1e9), PartCost("placing", 9, 5e8)
    >>> print(cost_of_parts([fitting, placing]))
    about 1.0 GB and 14 s
    """
    kept = tuple(part for part in parts if part.seconds > 0)
    alone = n_workers == 1
    here = [part.memory for part in kept if alone or not part.on_workers]
    there = [part.memory for part in kept if not alone and part.on_workers]
    return Cost(
        memory=max(here, default=0.0),
        seconds=sum(part.seconds for part in kept),
        device_memory=device_memory,
        parts=kept,
        n_workers=n_workers,
        worker_memory=max(there, default=0.0),
    )


def cost_of_pieces(pieces: Sequence[PartCost], *, n_workers: int, client: float) -> Cost:
    """Return the cost of independent pieces of work, each done by one of some workers."""
    seconds = [piece.seconds for piece in pieces]
    used = min(n_workers, len(pieces))
    # At best the workers end together, and no piece is divided.
    elapsed = max(sum(seconds) / used, *seconds)
    largest = max(piece.memory for piece in pieces)
    return Cost(
        memory=client, seconds=elapsed, parts=tuple(pieces), n_workers=used, worker_memory=largest
    )
