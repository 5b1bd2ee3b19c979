"""Processes that this one starts: no Ctrl-C reaches them, and they end with it.

Cheap to import.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

# Windows has the second one only, which ends a process as surely there.
AT_ONCE = getattr(signal, "SIGKILL", signal.SIGTERM)


def end_at_once(pids: Iterable[int | None]) -> None:
    """End processes, whatever they do."""
    for pid in filter(None, pids):
        with suppress(OSError):  # it has ended
            os.kill(pid, AT_ONCE)


def start_trackers() -> None:
    """Start the processes of Python and joblib that remove what others leave, before any other.

    They ignore what ends a command, but SIGHUP, which a closed terminal sends to all processes.
    """
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    # They need not warn of what they remove, such as semaphores of killed processes.
    with hold_interrupts(), environment(PYTHONWARNINGS="ignore"):
        resource_tracker.ensure_running()
        loky_tracker.ensure_running()


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables inside this context; undo all changes at its end."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Hold back SIGINT and SIGHUP inside this context, and in processes that are started inside.

    Ctrl-C reaches all processes of a terminal, and only this one must answer it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
