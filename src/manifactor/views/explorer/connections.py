"""Limits of connections: how many there are, and how long each may keep us waiting.

uvicorn closes connections between two requests, but waits for ever for the rest of a request, and
until an answer is read.
"""

import asyncio
import errno
import logging
import math
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from manifactor._support.errors import extra

# What `accept` fails with while no descriptor or memory is left.
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Waiting(Enum):
    """What a connection waits for."""

    ANSWER = "our answer"
    READING = "the client reading our answer"
    REQUEST = "the client's next request"


@dataclass(frozen=True)
class ConnectionSettings:
    """Limits of connections."""

    # Seconds in which a request must have come whole: one of the largest size takes ten through a
    # tunnel of 100 kB/s.
    request_seconds: float = 20.0

    # Seconds in which a browser must have read something of an answer. A tunnel hands on megabytes
    # at a time.
    reading_seconds: float = 60.0

    # Seconds between two looks at the connections, and the age from which one without a request is
    # closed before others.
    interval: float = 1.0

    # Browsers have six for each page: these are of 85 pages.
    most: int = 512

    # Descriptors for the files of a run and of Python.
    files: int = 64

    # Connections that are accepted before the first of them is counted or closed: in four rounds of
    # the event loop.
    ahead: int = 64

    # Connections that wait until they are accepted. One that does not find room there tries again
    # after a second.
    queue: int = 1024

    @property
    def batch(self) -> int:
        """Connections that are accepted in one round of the event loop."""
        return self.ahead // 4

    @property
    def patience(self) -> dict[Waiting, float]:
        """Seconds that a client may take without progress, by what we wait for."""
        return {
            Waiting.ANSWER: math.inf,
            Waiting.READING: self.reading_seconds,
            Waiting.REQUEST: self.request_seconds,
        }

    def affordable(self, descriptors: float) -> int:
        """Return the number of connections with a limit of open descriptors.

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

    def __init__(self, *, queue: int) -> None:
        """Make a socket for TCP that is bound to no address yet."""
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self.queue = queue

    def listen(self, *_: int) -> None:
        """Listen; the length of the queue is ours, not that of the event loop."""
        super().listen(self.queue)


@dataclass(frozen=True)
class Wait:
    """What a connection waits for, and since when."""

    waiting: Waiting
    # Changes when the client makes progress: the number of unread bytes, or the last request whose
    # headers came
    progress: object
    # When the last progress was seen, in seconds of the event loop's clock
    since: float = field(compare=False)


class Connections:
    """The open connections of a server."""

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
        """Count a new connection; close another one that waits if it is one too many."""
        if len(self) >= self.most:
            self._close_waiting(len(self) + 1 - self.most, connection.loop.time())
        self._waits[connection] = _wait(connection, connection.loop.time())
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
            if loop.time() - wait.since > self.settings.patience[wait.waiting]:
                self._close(connection)
        self._watched = bool(self._waits)
        if self._watched:
            loop.call_later(self.settings.interval, self._look, loop)

    def _update(self, now: float) -> None:
        for connection, wait in self._waits.items():
            found = _wait(connection, now)
            if found != wait:
                self._waits[connection] = found

    def _close_waiting(self, count: int, now: float) -> None:
        """Close connections that wait for a request, in the order of `_rank`."""
        self._update(now)
        waiting = [
            connection
            for connection, wait in self._waits.items()
            if wait.waiting is Waiting.REQUEST
        ]
        for connection in sorted(waiting, key=self._rank(now))[:count]:
            self._close(connection)

    def _rank(self, now: float) -> Callable[[Any], tuple[int, float]]:
        """Return who is closed first: the oldest of the first group.

        Whoever asked for nothing; then those between two requests, whose browsers connect again
        when needed; then those who have only just come.
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


def _wait(connection: Any, now: float) -> Wait:
    """Return what a connection waits for now."""
    unread = connection.transport.get_write_buffer_size()
    if unread:
        return Wait(Waiting.READING, unread, now)
    cycle = connection.cycle
    whole = cycle is not None and not cycle.more_body
    if whole and not cycle.response_complete:
        return Wait(Waiting.ANSWER, cycle, now)
    return Wait(Waiting.REQUEST, cycle, now)


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
