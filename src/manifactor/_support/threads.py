"""Linear algebra on one thread, which small matrices need; workers that leave interrupts to those who started them."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import RLock
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

PANEL, LARGEST_PANEL = (
    20_000,
    50_000,
)  # rows that are worth a thread, and that a thread takes at a time
T = TypeVar("T")

_limit = (
    RLock()
)  # the limit belongs to the process: two fits must not undo each other's


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit linear algebra to one thread inside this context; contexts of other threads wait."""
    with _limit, _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The process's linear algebra, that of numpy and scipy, looked for once: that takes as long as a small solve."""
    return ThreadpoolController()


def at_once(work: Callable[..., T], *items: Sequence) -> list[T]:
    """What `work` makes of the items, one after the other, all worked on at the same time."""
    with ThreadPoolExecutor(max(1, len(items[0]))) as pool:
        return list(pool.map(work, *items))


def in_panels(work: Callable[[slice], T], n_rows: int) -> list[T]:
    """What `work` makes of slices of many rows, all worked on at the same time; few rows are one slice."""
    slices = row_slices(n_rows, LARGEST_PANEL, at_least=PANEL)
    if len(slices) == 1:
        return [work(slices[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, slices))


def row_slices(n_rows: int, at_most: int, *, at_least: int = 1) -> list[slice]:
    """Equal slices of rows within these limits, a multiple of the cores where there are enough."""
    cores = os.cpu_count() or 1
    parts = max(1, min(n_rows // at_least, cores * -(-n_rows // (cores * at_most))))
    return [
        slice(a, b) for a, b in pairwise(np.linspace(0, n_rows, parts + 1).astype(int))
    ]


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold interrupts back inside this context; processes started in it never see any, and leave no traceback."""
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
