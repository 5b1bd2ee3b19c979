"""Signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

Each is raised as a KeyboardInterrupt, so that whoever has begun something removes it. A computation
in C cannot be interrupted; a thread ends the process if it does not end by itself.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from manifactor._support.errors import printable
from manifactor._support.files import remove_unfinished
from manifactor._support.workers import kill_children

# A closed terminal sends SIGHUP, which Windows does not have.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
ENDING = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
NOTHING_LEFT = "no partial output was left"


@dataclass(frozen=True)
class SignalSettings:
    """Settings of `ended_by_signals`."""

    # Seconds. A command must end in two; to kill its processes and to remove what they have begun
    # takes a part of them.
    patience: float = 1.25


class Stopped(KeyboardInterrupt):
    """A signal that ends the command."""

    def __init__(self, number: int, text: str = "") -> None:
        """Remember the signal."""
        super().__init__(text)
        self.number = number


def signal_of(stop: KeyboardInterrupt) -> int:
    """Return the number of the signal behind an interrupt."""
    return stop.number if isinstance(stop, Stopped) else signal.SIGINT


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that a signal ended.

    >>> exit_code(KeyboardInterrupt())
    130
    """
    return 128 + signal_of(stop)


def how(stop: KeyboardInterrupt) -> str:
    """Say which signal ended the command.

    >>> how(Stopped(15))
    'ended by SIGTERM'
    """
    number = signal_of(stop)
    if number == signal.SIGINT:
        return "interrupted"
    return f"ended by {signal.Signals(number).name}"


def left(stop: KeyboardInterrupt) -> str:
    """Say what is left of the work.

    >>> left(KeyboardInterrupt())
    'no partial output was left.'
    """
    return f"{str(stop) or NOTHING_LEFT}."


# What the contexts that were entered leave, the innermost last, for the thread that ends the
# process. Signals, too, belong to the whole process.
_left: list[Callable[[], str]] = []
# Set by the first signal: those that follow must not interrupt the removal of files.
_stopping = threading.Event()
# Set when the command itself has said that it was interrupted.
_said = threading.Event()


@contextmanager
def leaving(text: Callable[[], str]) -> Iterator[None]:
    """Say, if a signal ends this context, what is left of its work."""
    _left.append(text)
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Stopped(signal_of(stop), text()) from None
    finally:
        _left.remove(text)


def said() -> None:
    """Note that the command has said that it was interrupted."""
    _said.set()


@contextmanager
def ended_by_signals(settings: SignalSettings = SignalSettings()) -> Iterator[None]:
    """Let signals end the command inside this context, within two seconds.

    Signals that are ignored stay so, as SIGHUP under nohup. Outside of the main thread nothing is
    changed. After the context, handlers are as before, unless a signal has come: the process is
    about to end then, and further signals are ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    taken = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    watch = threading.Thread(target=_watch, args=(reader, settings), daemon=True)
    try:
        watch.start()
    except RuntimeError:  # no more threads
        reader.close()
        writer.close()
        raise
    # Python calls handlers between two of its own instructions only; this socket hears of a signal
    # at once.
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in taken:
        signal.signal(number, _raise_first)
    try:
        yield
    finally:
        stopping = _stopping.is_set()
        for number in taken:
            # Python takes its own handlers away before it ends: a second signal would change the
            # exit code.
            signal.signal(number, signal.SIG_IGN if stopping else before[number])
        if not stopping:
            signal.set_wakeup_fd(wakeup)
            writer.close()


@contextmanager
def answered_inside() -> Iterator[None]:
    """Leave it to the work of this context how long it takes to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wakeup = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)


def _raise_first(number: int, frame: object) -> None:
    """Raise the first signal; ignore those that come while the command ends."""
    if not _stopping.is_set():
        _stopping.set()
        raise Stopped(number)


def _watch(reader: socket.socket, settings: SignalSettings) -> None:
    """Wait for a signal; end the process if it does not end by itself."""
    # Other threads answer the signals: this one would wake up in their place.
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    with reader:
        while received := reader.recv(1):
            if received[0] in ENDING:
                time.sleep(settings.patience)
                _end(received[0])


def _end(number: int) -> None:
    """End the process with its children, and remove what is not finished."""
    _stopping.set()
    # Whatever fails here, as lists do that another thread changes: the process ends.
    with suppress(Exception):
        kill_children()
    with suppress(Exception):
        remove_unfinished()
    if not _said.is_set():
        with suppress(Exception):
            _write_last_line(number)
    os._exit(128 + number)


def _write_last_line(number: int) -> None:
    texts = [text() for text in reversed(_left)]
    stop = Stopped(number, next(filter(None, texts), ""))
    # A progress bar may be open. Not through `sys.stderr`, whose lock the main thread may hold.
    start = "\n" if sys.stderr.isatty() else ""
    line = printable(f"manifactor: {how(stop)}; {left(stop)}")
    os.write(2, f"{start}{line}\n".encode())
