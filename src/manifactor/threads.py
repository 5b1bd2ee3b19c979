"""Linear algebra on one thread: small matrices are slower on several, far slower where other work holds the cores."""

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
