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
    """Start the processes that remove what other processes leave, before any other is started.

    Python and joblib have one each. They ignore what ends a command, but SIGHUP, which a closed
    terminal sends to all processes: it is held back.
    """
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    # An interrupt kills processes with what they hold, such as semaphores. The trackers clean up,
    # and need not warn of it.
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
    """Hold back SIGINT and SIGHUP inside this context.

    Processes started inside inherit the mask. Ctrl-C reaches all processes of a terminal, and only
    this one must answer it: when they are started, and can be ended.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
