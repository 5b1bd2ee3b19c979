"""Work that is spread over processes."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel, cpu_count, delayed

from manifactor._support.threads import interrupts_held


def map_processes(
    work: Callable[..., Any], jobs: Sequence[tuple], *, n_jobs: int | None = None
) -> Iterator[Any]:
    """Yield ``work(*job)`` of each job, in input order.

    An interrupt, or the end of the iteration, ends the processes at once.

    Parameters
    ----------
    work : callable
        A function of a module, which other processes can import.
    jobs : sequence of tuple
    n_jobs : int or None
        Number of processes; None for one on each core that this process may use. A
        single one is this process.
    """
    if not jobs:
        return
    workers = min(n_jobs or cpu_count(), len(jobs))
    with Parallel(n_jobs=workers, return_as="generator") as parallel:
        # Both trackers, joblib's and this one, let interrupts through when they start:
        # they must run before interrupts are held.
        resource_tracker.ensure_running()
        # Ctrl-C reaches all processes of a terminal; only this one must answer it.
        with interrupts_held():
            results = parallel(delayed(work)(*job) for job in jobs)
        try:
            for result in results:  # noqa: UP028, `yield from` would close them
                yield result
        finally:
            # joblib warns of results that nobody takes; an interrupt wants none.
            with warnings.catch_warnings(action="ignore"):
                results.close()
