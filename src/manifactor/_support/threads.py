"""Threads: BLAS limited to one, work mapped over panels of rows."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, partial
from itertools import pairwise
from threading import Lock
from typing import TypeVar

import numpy as np
from joblib import cpu_count
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from manifactor._support.values import ceil_div

T = TypeVar("T")

_blas_limit = Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside this context; contexts may nest and overlap.

    The limit belongs to the process: the first context sets and lifts it, and those entered
    meanwhile, in any thread, do nothing. Nobody waits, so that a forked worker cannot deadlock: the
    limit is its own, too.
    """
    if not _blas_limit.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _blas_limit.release()


@cache
def _libraries() -> ThreadpoolController:
    """Find the BLAS libraries of the process, which takes as long as a solve."""
    return ThreadpoolController()


@cache
def cores() -> int:
    """Return how many cores this process may use; loops ask for it in every step."""
    return cpu_count()


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads of this process `n_jobs` asks for, as in scikit-learn.

    -1 is all cores, -2 all but one. None is 1, or what `joblib.parallel_config` says.
    """
    if n_jobs is None:
        _, n_jobs = get_active_backend()
    n_jobs = n_jobs or 1  # in a worker of joblib, nobody says
    return n_jobs if n_jobs > 0 else max(1, cores() + 1 + n_jobs)


def map_threads(work: Callable[..., T], *items: Sequence) -> list[T]:
    """Map `work` over items, in input order, in at most a thread for each core."""
    return list(over_cores(work, *items))


def over_cores(work: Callable[..., T], *items: Sequence) -> Iterator[T]:
    """Yield `work` of each item in input order, computed on all cores, two items a core ahead."""
    # Each in a copy of the caller's context, which says what numpy does about an overflow.
    tasks = [partial(copy_context().run, work, *each) for each in zip(*items, strict=True)]
    # One item, or one core, needs no thread.
    if min(len(tasks), cores()) < 2:
        for task in tasks:
            yield task()
        return
    ahead: deque[Future[T]] = deque()
    with ThreadPoolExecutor(cores()) as pool:
        for task in tasks:
            if len(ahead) == 2 * cores():
                yield ahead.popleft().result()
            ahead.append(pool.submit(task))
        while ahead:
            yield ahead.popleft().result()


def map_panels(
    work: Callable[[slice], T], n_rows: int, *, smallest: int = 20_000, largest: int = 50_000
) -> list[T]:
    """Map `work` over slices of rows on all cores; a single one is done here.

    The slices are those of `row_slices`, the same on any number of cores. Below 20,000 rows a
    thread costs more than it saves; above 50,000 the panels of two threads no longer share the
    cache.
    """
    return map_threads(work, row_slices(n_rows, largest, at_least=smallest))


def row_slices(n_rows: int, at_most: int, *, at_least: int = 1, suits: int = 16) -> list[slice]:
    """Return equal slices of rows within the limits, the same on all machines.

    Sums over slices depend on how many there are, in the last digits. So their number suits most
    numbers of cores: it is a multiple of `suits`, or of a power of two if there are few rows.
    """
    most = max(1, n_rows // at_least)
    fewest = ceil_div(n_rows, at_most)
    power_of_two = 1 << (most.bit_length() - 1)
    multiple = min(suits, power_of_two)
    count = min(most, multiple * max(1, ceil_div(fewest, multiple)))
    edges = np.linspace(0, n_rows, count + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]
