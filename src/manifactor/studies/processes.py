"""Work that is spread over processes."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from threadpoolctl import threadpool_limits


def map_processes(
    work: Callable[..., Any], jobs: Sequence[tuple], *, n_jobs: int | None = None
) -> Iterator[Any]:
    """Yield ``work(*job)`` of each job, in input order.

    Parameters
    ----------
    work : callable
        A function of a module, which other processes can import.
    jobs : sequence of tuple
    n_jobs : int or None
        Number of processes; None for one on each core.
    """
    if not jobs:
        return
    workers = min(n_jobs or os.cpu_count() or 1, len(jobs))
    # A forked process inherits locks that threads of the parent hold, and can hang.
    context = get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker
    ) as pool:
        yield from pool.map(work, *zip(*jobs, strict=True))


def _start_worker() -> None:
    # Several processes with several BLAS threads each would compete for the cores.
    threadpool_limits(1)
    # Ctrl-C reaches all processes: only the parent reports it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
