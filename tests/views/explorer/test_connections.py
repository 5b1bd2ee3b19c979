"""Whoever keeps the server waiting does not keep others from being answered."""

import asyncio
import errno
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest
from starlette.responses import StreamingResponse

from manifactor.views.explorer.connections import Connections, ConnectionSettings, Listener
from manifactor.views.explorer.server import ServerSettings, listening

from ..conftest import running

# Guards against a hang only.
HANG = 60
HASTY = ConnectionSettings(request_seconds=0.2, reading_seconds=0.2, interval=0.05)
PATIENT = replace(HASTY, request_seconds=10 * HANG, reading_seconds=10 * HANG)


async def app(scope, receive, send):
    """Answer with a short text after the whole body."""
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        if message["type"] == "http.disconnect":
            return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def server(settings):
    with running(app, settings=ServerSettings(connections=settings)) as port:
        yield port


def connected(port, sent=b""):
    client = socket.create_connection(("127.0.0.1", port), timeout=HANG)
    client.sendall(sent)
    return client


def hello(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
    connection.request("GET", "/")
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def is_closed(client):
    """Whether the server closed a connection, without waiting for it."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        client.settimeout(HANG)


def ended(client):
    """Wait until the server closes a connection."""
    try:
        while client.recv(2**16):
            pass
    except ConnectionError:
        pass


HALF_SENT = {
    "nothing": b"",
    "headers": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    "chunks": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na",
    "second request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET",
}


def test_requests_that_do_not_end_are_closed():
    with server(HASTY) as port, ExitStack() as stack:
        clients = [stack.enter_context(connected(port, sent)) for sent in HALF_SENT.values()]
        for client in clients:
            ended(client)
        assert hello(port) == (200, b"hello")


def test_single_bytes_buy_no_time():
    with server(HASTY) as port, connected(port, b"GET / HTTP/1.1\r\n") as client:
        begun = time.monotonic()
        while not is_closed(client) and time.monotonic() - begun < HANG:
            try:
                client.send(b"a")
            except ConnectionError:
                break
            time.sleep(0.02)
        assert time.monotonic() - begun < HANG


def test_an_answer_that_nobody_reads_is_dropped():
    dropped = threading.Event()

    async def parts():
        try:
            while True:
                yield bytes(2**20)
                await asyncio.sleep(0)
        finally:
            dropped.set()

    async def endless(scope, receive, send):
        await StreamingResponse(parts())(scope, receive, send)

    settings = ServerSettings(connections=HASTY)
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    with running(endless, settings=settings) as port, connected(port, request):
        assert dropped.wait(HANG)


class Clock:
    """The time of an event loop, which passes when it is told to."""

    now = 0.0

    def __init__(self):
        self.calls = []

    def time(self):
        return self.now

    def call_later(self, delay, call, *arguments):
        self.calls.append(lambda: call(*arguments))

    def set_exception_handler(self, handler):
        pass

    def passes(self, seconds):
        self.now += seconds
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Client:
    """A connection with an answer of which some bytes are not read yet."""

    def __init__(self, loop, *, unread=0, answering=False):
        self.loop, self.unread, self.open = loop, unread, True
        self.cycle = SimpleNamespace(more_body=False, response_complete=not answering)
        self.transport = SimpleNamespace(
            get_write_buffer_size=lambda: self.unread, abort=lambda: setattr(self, "open", False)
        )


def test_time_is_counted_from_the_last_byte_that_was_read():
    clock = Clock()
    connections = Connections(replace(HASTY, reading_seconds=5), 8)
    slow, stopped = Client(clock, unread=100), Client(clock, unread=100)
    connections.add(slow)
    connections.add(stopped)
    for _ in range(10):
        slow.unread -= 1
        clock.passes(2)
    assert (slow.open, stopped.open) == (True, False)


def test_an_answer_may_take_long_to_make():
    clock = Clock()
    connections = Connections(HASTY, 2)
    asking = [Client(clock, answering=True) for _ in range(3)]
    for each in asking:
        connections.add(each)
    clock.passes(1000)
    assert all(each.open for each in asking)


def test_browsers_between_two_requests_are_closed_after_those_that_never_asked():
    clock = Clock()
    connections = Connections(PATIENT, 3)
    idle, silent, asking = Client(clock), Client(clock), Client(clock, answering=True)
    silent.cycle = None
    for each in (idle, silent, asking):
        connections.add(each)
    clock.passes(1)
    first, second = Client(clock), Client(clock)
    first.cycle = second.cycle = None
    connections.add(first)
    assert (idle.open, silent.open) == (True, False)
    connections.add(second)
    assert (idle.open, first.open, asking.open) == (False, True, True)


def test_waiting_connections_beyond_the_limit_are_closed_the_oldest_first():
    with server(replace(PATIENT, most=8)) as port, ExitStack() as stack:
        waiting = [stack.enter_context(connected(port, b"G")) for _ in range(6)]
        assert hello(port) == (200, b"hello")
        time.sleep(2 * PATIENT.interval)
        waiting += [stack.enter_context(connected(port, b"G")) for _ in range(30)]
        assert hello(port) == (200, b"hello")
        for client in waiting[:6]:
            ended(client)
        assert sum(not is_closed(client) for client in waiting) <= 9
        assert not is_closed(waiting[-1])


@pytest.mark.slow
def test_descriptors_that_run_out_are_found_again(monkeypatch):
    failures = []

    def accept(self):
        # Tried again after a second.
        if not failures or time.monotonic() < failures[0] + 0.3:
            failures.append(time.monotonic())
            raise OSError(errno.EMFILE, "Too many open files")
        return socket.socket.accept(self)

    with server(PATIENT) as port, ExitStack() as stack:
        waiting = [stack.enter_context(connected(port, b"G")) for _ in range(10)]
        assert hello(port) == (200, b"hello")
        monkeypatch.setattr(Listener, "accept", accept, raising=False)
        assert hello(port) == (200, b"hello")
        for client in waiting[:5]:
            ended(client)
        # Neither in a loop nor given up.
        assert 0 < len(failures) <= PATIENT.batch + 1
        assert not is_closed(waiting[-1])


def test_as_many_connections_wait_to_be_accepted_as_the_settings_say(monkeypatch):
    lengths = []
    monkeypatch.setattr(socket.socket, "listen", lambda _, queue: lengths.append(queue))
    settings = ServerSettings(connections=ConnectionSettings(queue=7))
    with listening(0, settings=settings) as bound:
        bound.listen(3)  # as the event loop does
    assert lengths == [7, 7]


def test_few_descriptors_leave_room_for_files():
    settings = ConnectionSettings()
    for descriptors in (40, 256, 1024):
        assert 1 < settings.affordable(descriptors) < descriptors - 15
    assert settings.affordable(float("inf")) == settings.most
