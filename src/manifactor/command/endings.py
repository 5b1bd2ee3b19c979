"""What ends a command from outside: signals, and too little memory, threads, files or disk.

Cheap to import: it is asked before numpy is loaded, whose libraries end the process, or hang, where
they find too little.
"""

import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children

from manifactor._support.errors import one_line
from manifactor._support.processes import end_at_once

# Signals: the first is raised as a KeyboardInterrupt, so that whatever was begun is removed. A
# second one ends the process at once, even inside a computation in C.

# A closed terminal sends SIGHUP, which Windows does not have.
ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
# A signal after so many seconds is a second one: `timeout` and closed terminals send theirs twice.
ONE_SIGNAL = 0.5


class Stopped(KeyboardInterrupt):
    """A signal, by its number, that ends the command; its text says what is left."""

    def __init__(self, number: int, text: str = "") -> None:
        """Remember the signal."""
        super().__init__(text)
        self.number = number


def signal_of(stop: KeyboardInterrupt) -> int:
    """Return the number of the signal behind an interrupt."""
    return getattr(stop, "number", signal.SIGINT)


def how(stop: KeyboardInterrupt) -> str:
    """Say which signal ended the command."""
    number = signal_of(stop)
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


@contextmanager
def say_what_is_left(text: Callable[[], str]) -> Iterator[None]:
    """Say, if a signal ends this context, what is left of its work; "" for nothing."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Stopped(signal_of(stop), text()) from None


@contextmanager
def end_by_signals() -> Iterator[None]:
    """Let signals end the command inside this context, in the main thread.

    Signals that are ignored stay so, as SIGHUP under nohup. After the context, handlers are as
    before, unless a signal has come: the process is about to end then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        if not stopping.is_set():
            stopping.set()
            raise Stopped(number)

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    # Python calls handlers between two of its own instructions only; the socket hears of a signal
    # at once.
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(number, stop)
    try:
        yield
    finally:
        if not stopping.is_set():
            for number, handler in before.items():
                if handler is not None:
                    signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            writer.close()


@contextmanager
def leave_signals() -> Iterator[None]:
    """Leave it to the work of this context what a second signal does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wakeup = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)


def _watch(reader: socket.socket) -> None:
    """End the process, with its children, at the second signal."""
    # Signals are for the main thread: it would not wake up if this one took them.
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    first = None
    with reader:
        while received := reader.recv(1):
            if received[0] in ENDING:
                first = first or time.monotonic()
                if time.monotonic() - first > ONE_SIGNAL:
                    end_at_once(child.pid for child in active_children())
                    os._exit(128 + received[0])


# Shortages, in words.

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
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), FILES),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), DISK),
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
    # Bytes of address space: to load numpy, SciPy and scikit-learn took 600 MB, and a fit of 500
    # samples 1.8 GB. With less, their libraries end the process with lines of their own, with a
    # segmentation fault, or wait for a thread that never starts. Two BLAS libraries take 40 MB each
    # for each further thread.
    n_threads = min(_blas_threads(), 64)
    needed = 2 * 10**9 + 10**8 * (n_threads - 1)
    with suppress(ImportError):  # on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY and limit < needed:
            return (
                f"the memory of this process is limited to {limit / 1e6:.0f} MB of "
                f"addresses (ulimit -v), and {needed / 1e6:.0f} MB are needed with "
                f"{n_threads} threads. Raise the limit, or set OMP_NUM_THREADS=1."
            )
    return ""


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


def _blas_threads() -> int:
    """Return how many threads the BLAS libraries will start."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        with suppress(ValueError):
            return max(1, int(os.environ.get(name, "")))
    if hasattr(os, "sched_getaffinity"):  # not on Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
