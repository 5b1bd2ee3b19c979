"""Too little memory, too few threads or files: what is missing, in words.

Cheap to import: it is asked before numpy is loaded, whose libraries end the process, or hang, where
they find too little.
"""

import errno
import os
import threading
from contextlib import suppress
from dataclasses import dataclass

from manifactor._support.errors import one_line

# What the system's loader says of a library that finds no place in memory.
UNLOADED = ("failed to map segment", "cannot allocate memory")
# What Python says, in words of its own.
NO_THREAD = "can't start new thread"

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


@dataclass(frozen=True)
class RoomSettings:
    """What it takes to load numpy, SciPy and scikit-learn, and to fit few samples."""

    # Bytes of address space: to load them took 600 MB, and a fit of 500 samples 1.8 GB. With less,
    # their libraries end the process with lines of their own, with a segmentation fault, or wait
    # for a thread that never starts.
    base: int = 2 * 10**9

    # Bytes for each further thread: two BLAS libraries take 40 MB each.
    thread: int = 10**8

    # Threads that are tried. More take long to start.
    most_threads: int = 64


def missing_room(settings: RoomSettings = RoomSettings()) -> str:
    """Say what is missing to load the program; an empty text for nothing."""
    n_threads = min(blas_threads(), settings.most_threads)
    needed = settings.base + settings.thread * (n_threads - 1)
    limit = address_space()
    if limit is not None and limit < needed:
        return (
            f"the memory of this process is limited to {limit / 1e6:.0f} MB of "
            f"addresses (ulimit -v), and {needed / 1e6:.0f} MB are needed with "
            f"{n_threads} threads. Raise the limit, or set OMP_NUM_THREADS=1."
        )
    return "" if _can_start(n_threads) else THREADS


def shortage(error: BaseException) -> str:
    """Say which shortage an error comes from; an empty text for any other error.

    >>> shortage(RuntimeError("can't start new thread"))[:34]
    'no more threads can be started. Ra'
    >>> shortage(RuntimeError("another"))
    ''
    """
    text = one_line(error)
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, RuntimeError) and NO_THREAD in text:
        return THREADS
    if number in (errno.EMFILE, errno.ENFILE) or _unloaded(error, "too many open"):
        return FILES
    if number in (errno.ENOSPC, errno.EDQUOT):
        path = getattr(error, "filename", None)
        return f"{path} cannot be written: {DISK}" if path else DISK
    if number == errno.ENOMEM or _unloaded(error, *UNLOADED):
        return MEMORY
    if not isinstance(error, MemoryError):
        return ""
    # Ours say what to do; those of numpy say how much was asked for.
    return text if text.endswith(".") else f"{text or 'MemoryError'}: {MEMORY}"


def _unloaded(error: BaseException, *reasons: str) -> bool:
    """Return whether a library was not loaded for one of these reasons."""
    text = str(error).lower()
    return isinstance(error, ImportError) and any(each in text for each in reasons)


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
    done = threading.Event()
    started = []
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
