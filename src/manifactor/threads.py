"""Linear algebra on one thread, which small matrices need; workers that leave interrupts to those who started them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from threadpoolctl import threadpool_limits

_limit = RLock()  # the limit belongs to the process: two fits must not undo each other's


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit linear algebra to one thread inside this context; contexts of other threads wait."""
    with _limit, threadpool_limits(1, user_api="blas"):
        yield


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
