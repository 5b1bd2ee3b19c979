"""Limits of connections: how many there are, and how long each may keep us waiting.

uvicorn closes connections between two requests, but waits for ever for the rest of a
request, and until an answer is read.
"""

import asyncio
import errno
import logging
import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from manifactor._support.extras import extra

# What `accept` fails with while no descriptor or memory is left.
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True)
class ConnectionSettings:
    """Limits of connections."""

    # Seconds in which a request must have come whole: one of the largest size takes ten
    # through a tunnel of 100 kB/s.
    request_seconds: float = 20.0

    # Seconds in which a browser must have read something of an answer. A tunnel hands
    # on megabytes at a time.
    reading_seconds: float = 60.0

    # Seconds between two looks at the connections, and the age from which one without a
    # request is closed before others.
    interval: float = 1.0

    # Browsers have six for each page: these are of 85 pages.
    most: int = 512

    # Descriptors for the files of a run and of Python.
    files: int = 64

    # Connections that are accepted before the first of them is counted or closed: in
    # four rounds of the event loop.
    ahead: int = 64

    # Connections that wait until they are accepted. One that does not find room there
    # tries again after a second.
    queue: int = 1024

    @property
    def batch(self) -> int:
        """Connections that are accepted in one round of the event loop."""
        return self.ahead // 4

    def affordable(self, descriptors: float) -> int:
        """Return the number of connections with a limit of open descriptors.

        Examples
        --------
        >>> ConnectionSettings().affordable(256)
        128
        """
        free = max(descriptors - self.files - self.ahead, descriptors // 2)
        return int(min(free, self.most))


def open_descriptors() -> float:
    """Return how many descriptors this process may have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft


class Listener(socket.socket):
    """A listening socket whose queue is longer than what is accepted at a time."""

    def listen(self, *_: int) -> None:
        """Listen; the length of the queue is set here, not by the event loop."""
        super().listen(ConnectionSettings().queue)


@dataclass(frozen=True)
class Wait:
    """What a connection waits for; `since` in seconds of the event loop's clock.

    `stage` changes whenever the client gets on: None while an answer is made, the
    unread bytes of an answer, or the last request, which is not followed by a whole one
    so far.
    """

    stage: object
    since: float


class Connections:
    """The open connections of a server.

    Parameters
    ----------
    settings : ConnectionSettings
    most : int
        Beyond this number, those that wait for a request are closed.
    """

    def __init__(self, settings: ConnectionSettings, most: int) -> None:
        """Start without connections."""
        self.settings, self.most = settings, most
        self._waits: dict[Any, Wait] = {}
        self._watched = False
        self._last_shortage = -math.inf

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._waits)

    def add(self, connection: Any) -> None:
        """Count a new connection; close another one that waits if it is one too many.

        Parameters
        ----------
        connection : uvicorn's protocol for HTTP
        """
        if len(self) >= self.most:
            self._close_waiting(len(self) + 1 - self.most, connection.loop.time())
        self._waits[connection] = Wait(_stage(connection), connection.loop.time())
        if not self._watched:
            self._watched = True
            connection.loop.set_exception_handler(self._on_problem)
            self._look(connection.loop)

    def remove(self, connection: Any) -> None:
        """Count a connection no longer."""
        self._waits.pop(connection, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close whoever is late, now and at intervals, while there are connections."""
        self._update(loop.time())
        for connection, wait in list(self._waits.items()):
            if loop.time() - wait.since > self._patience(wait):
                self._close(connection)
        self._watched = bool(self._waits)
        if self._watched:
            loop.call_later(self.settings.interval, self._look, loop)

    def _patience(self, wait: Wait) -> float:
        if wait.stage is None:
            return math.inf
        if isinstance(wait.stage, int):
            return self.settings.reading_seconds
        return self.settings.request_seconds

    def _update(self, now: float) -> None:
        for connection, wait in self._waits.items():
            stage = _stage(connection)
            if stage != wait.stage:
                self._waits[connection] = Wait(stage, now)

    def _close_waiting(self, count: int, now: float) -> None:
        """Close connections that wait for a request, in the order of `_rank`."""
        self._update(now)
        waiting = [
            connection
            for connection, wait in self._waits.items()
            if isinstance(wait.stage, tuple)
        ]
        for connection in sorted(waiting, key=self._rank(now))[:count]:
            self._close(connection)

    def _rank(self, now: float) -> Callable[[Any], tuple[int, float]]:
        """Return who is closed first: the oldest of the first group.

        Whoever asked for nothing; then those between two requests, whose browsers
        connect again when needed; then those who have only just come.
        """

        def rank(connection: Any) -> tuple[int, float]:
            since = self._waits[connection].since
            if connection.cycle is not None:
                return 1, since
            return (0 if now - since > self.settings.interval else 2), since

        return rank

    def _close(self, connection: Any) -> None:
        self.remove(connection)
        # At once: to close properly is to wait until all is read.
        connection.transport.abort()

    def _on_problem(self, loop: asyncio.AbstractEventLoop, context: dict) -> None:
        """Close half of those who wait if no more connections can be accepted."""
        exhausted = getattr(context.get("exception"), "errno", None) in EXHAUSTED
        if not (exhausted and "socket" in context):
            loop.default_exception_handler(context)
            return
        # Reported many times in one round; accepted again after a second only.
        now = loop.time()
        if now - self._last_shortage < self.settings.interval / 2:
            return
        self._last_shortage = now
        logging.getLogger("manifactor").warning(
            "the explorer has no descriptors left for new connections (%s): it closes "
            "those that wait. A higher limit is set with ulimit -n.",
            context["exception"].strerror,
        )
        self._close_waiting(math.ceil(len(self) / 2), now)


def _stage(connection: Any) -> object:
    """Return the stage of a connection, as `Wait` has it."""
    unread = connection.transport.get_write_buffer_size()
    if unread:
        return unread
    cycle = connection.cycle
    whole = cycle is not None and not cycle.more_body
    if whole and not cycle.response_complete:
        return None
    return ("after", cycle)


def counted_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol for HTTP, with its connections counted.

    A class, since uvicorn makes an object of it for each connection.
    """
    protocol = extra("uvicorn.protocols.http.h11_impl").H11Protocol

    class Counted(protocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections.add(self)

        def connection_lost(self, problem: Exception | None) -> None:
            connections.remove(self)
            super().connection_lost(problem)

    return Counted
