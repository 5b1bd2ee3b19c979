"""Too little memory, too few threads or files: what is missing, in words.

Cheap to import: it is asked before numpy is loaded, whose libraries end the process, or hang, where
they find too little.
"""

import errno
import os
import threading
from contextlib import suppress

from manifactor._support.errors import one_line

MEMORY = (
    "the memory that this process may use is full. Raise its limit (ulimit -v), or "
    "give fewer samples."
)
THREADS = (
    "no more threads can be started. Raise the limits of processes and memory (ulimit "
    "-u, ulimit -v), or set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1."
)
FILES = "too many files are open. Raise their limit (ulimit -n)."
DISK = "no space is left on the disk, or in its quota. Free some, or write elsewhere."
BY_NUMBER = {
    errno.EMFILE: FILES,
    errno.ENFILE: FILES,
    errno.ENOSPC: DISK,
    errno.EDQUOT: DISK,
    errno.ENOMEM: MEMORY,
}
# What Python says of threads, and the system's loader of a library that it could not load.
BY_TEXT = {
    "can't start new thread": THREADS,
    "too many open": FILES,
    "failed to map segment": MEMORY,
    "cannot allocate memory": MEMORY,
}


def missing_room() -> str:
    """Say what is missing to load the program; an empty text for nothing."""
    # More threads take long to start.
    n_threads = min(blas_threads(), 64)
    # Bytes of address space: to load numpy, SciPy and scikit-learn took 600 MB, and a fit of 500
    # samples 1.8 GB. With less, their libraries end the process with lines of their own, with a
    # segmentation fault, or wait for a thread that never starts. Two BLAS libraries take 40 MB each
    # for each further thread.
    needed = 2 * 10**9 + 10**8 * (n_threads - 1)
    limit = address_space()
    if limit is not None and limit < needed:
        return (
            f"the memory of this process is limited to {limit / 1e6:.0f} MB of "
            f"addresses (ulimit -v), and {needed / 1e6:.0f} MB are needed with "
            f"{n_threads} threads. Raise the limit, or set OMP_NUM_THREADS=1."
        )
    return "" if _can_start(n_threads) else THREADS


def shortage(error: BaseException) -> str:
    """Say which shortage an error comes from; an empty text for any other error."""
    text = one_line(error)
    if isinstance(error, OSError) and error.errno in BY_NUMBER:
        words = BY_NUMBER[error.errno]
        named = words is DISK and error.filename
        return f"{error.filename} cannot be written: {words}" if named else words
    if isinstance(error, ImportError | RuntimeError):
        return next((words for said, words in BY_TEXT.items() if said in text.lower()), "")
    if not isinstance(error, MemoryError):
        return ""
    # Ours say what to do; those of numpy say how much was asked for.
    return text if text.endswith(".") else f"{text or 'MemoryError'}: {MEMORY}"


def address_space() -> int | None:
    """Return the limit of this process's address space in bytes; None without one."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def blas_threads() -> int:
    """Return how many threads the BLAS libraries will start."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        with suppress(ValueError):
            return max(1, int(os.environ.get(name, "")))
    if hasattr(os, "sched_getaffinity"):  # not on Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _can_start(count: int) -> bool:
    """Return whether so many threads can run at the same time."""
    # OpenBLAS sends this process a SIGINT if it cannot start its threads.
    done, started = threading.Event(), []
    try:
        for _ in range(count):
            thread = threading.Thread(target=done.wait, daemon=True)
            thread.start()
            started.append(thread)
    except (RuntimeError, MemoryError):
        return False
    finally:
        done.set()
        for thread in started:
            thread.join()
    return True
