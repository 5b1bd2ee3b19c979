"""Pieces of work as tasks of Dask."""

import pickle
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from manifactor._support.extras import extra
from manifactor._support.workers import Outcome, PieceLost, WorkersLost, ignored, in_order, outcome
from manifactor.cluster.versions import not_installed


@dataclass(frozen=True)
class ClusterSettings:
    """How a cluster is used."""

    # Seconds. A scheduler that runs answers within one, on a busy machine within five.
    connect_timeout: float = 10.0
    # Pieces under way for each worker: one that it does and one that waits for it, so that no
    # worker waits for this process. All at once would fill the scheduler's memory, as each brings
    # its arguments.
    pieces_ahead: int = 2
    # Cores of each worker of this machine; None for an equal share of all.
    cores_each: int | None = None


@dataclass(frozen=True)
class ClusterWorkers:
    """The workers of a Dask cluster.

    A piece whose worker dies is done again by another one.

    Attributes
    ----------
    client : distributed.Client
    settings : ClusterSettings
    """

    client: Any
    settings: ClusterSettings = ClusterSettings()

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""
        with lost_named():
            return max(1, sum(self.client.nthreads().values()))

    @property
    def dashboard(self) -> str | None:
        """Address of the page that shows the work; None if the scheduler has none."""
        with lost_named():
            versions = self.client.get_versions(packages=["bokeh"])
        served = versions["scheduler"]["packages"]["bokeh"] is not None
        return self.client.dashboard_link if served else None

    def map(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order."""
        return in_order(self.outcomes(work, jobs, report=report))

    def outcomes(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Generator[Outcome, None, None]:
        """Yield the outcome of each job as soon as it is done."""
        waiting = enumerate(jobs)
        under_way: dict[Any, int] = {}
        completed = extra("distributed").as_completed(loop=self.client.loop)
        try:
            for done in range(1, len(jobs) + 1):
                wanted = self.settings.pieces_ahead * self.count
                for index, job in islice(waiting, max(0, wanted - len(under_way))):
                    future = self._submitted(index, work, job)
                    under_way[future] = index
                    completed.add(future)
                future = next(completed)
                found = _outcome(future, under_way.pop(future), len(jobs))
                report(done / len(jobs))
                yield found
        finally:
            with suppress(Exception):  # a scheduler that is gone cancels nothing
                self.client.cancel(list(under_way))

    def _submitted(self, index: int, work: Callable[..., Any], job: tuple) -> Any:
        """Return the future of one piece."""
        # As bytes: Dask would look into the arguments for tasks of its own, and a worker that
        # cannot load a function hangs up instead of saying why.
        piece = extra("cloudpickle").dumps(_Piece(index, work, job))
        key = f"{getattr(work, '__name__', 'piece')}-{index}-{uuid.uuid4().hex}"
        with lost_named(), warnings.catch_warnings():
            # It advises to scatter the arguments, which dies with their holder.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(pickle.loads, piece, key=key, pure=False)


@dataclass(frozen=True)
class _Piece:
    """A piece of work that is done, and becomes its outcome, when it is unpickled."""

    index: int
    work: Callable[..., Any]
    job: tuple

    def __reduce__(self) -> tuple:
        return outcome, (self.index, self.work, self.job)


def _outcome(future: Any, index: int, total: int) -> Outcome:
    """Return what a finished future holds."""
    with lost_named():
        if future.status != "error":
            return future.result()
        error = future.exception()
    # The errors of a piece are outcomes; this one comes from before it.
    if isinstance(error, extra("distributed").KilledWorker):
        deaths = error.allowed_failures + 1
        problem = PieceLost(
            f"piece {index + 1} of {total} ended its worker {deaths} times, probably "
            "because the memory was full. Give the workers more memory, or the piece "
            "fewer samples."
        )
        return Outcome(index, error=problem)
    if isinstance(error, ImportError) and "manifactor" in str(error):
        raise ValueError(not_installed(error)) from error
    return Outcome(index, error=error)


@contextmanager
def lost_named() -> Iterator[None]:
    """Raise `WorkersLost` for all that a lost scheduler raises."""
    try:
        yield
    except WorkersLost:
        raise
    except (OSError, TimeoutError, CancelledError) as error:
        raise WorkersLost(
            "the connection to the Dask scheduler is lost. Start it again, and repeat "
            "the command, a fit with --resume: what is finished is kept."
        ) from error
