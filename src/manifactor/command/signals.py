"""Signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

The first is raised as a KeyboardInterrupt, so that whatever was begun is removed. A second one ends
the process at once, even inside a computation in C. Cheap to import.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children

from manifactor._support.processes import end_at_once

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
    """Let signals end the command inside this context.

    Signals that are ignored stay so, as SIGHUP under nohup. Outside of the main thread nothing is
    changed. After the context, handlers are as before, unless a signal has come: the process is
    about to end then.
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
            if received[0] not in ENDING:
                continue
            first = first or time.monotonic()
            if time.monotonic() - first > ONE_SIGNAL:
                end_at_once(child.pid for child in active_children())
                os._exit(128 + received[0])
