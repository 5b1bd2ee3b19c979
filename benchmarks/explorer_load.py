"""Does the explorer answer everyone while others hold connections half open?

    python benchmarks/explorer_load.py [--seconds 120] [--clients 100] [--pause 0]

Clients move sliders, draw ranges and load columns, each on a connection of its own,
without a pause between two requests unless one is given. Beside them are connections
that send half of a request; whenever the server closes one, it is opened again. Time
is from the first byte of a request to the last of its answer, of answers with status
200; others are problems. Memory is what the server's process has resident. On a busy
machine, the time depends on what others leave, and on the CPU that the clients
themselves take: compare the CPU seconds of an answer.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import numpy as np

from manifactor.command.main import main as manifactor

from explorer import written
from record import record

# Of a hundred requests. Sliders are what moves most.
SHARES = {"near": 60, "select": 20, "column": 10, "about": 5, "main": 5}


@dataclass
class Load:
    """What the clients and the half-open connections have seen so far."""

    port: int
    token: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    problems: Counter = field(default_factory=Counter)
    # Half-open connections: how many there are, were at each look, and were closed.
    half_open: int = 0
    half_open_seen: list[int] = field(default_factory=list)
    half_open_closed: int = 0
    over: bool = False


def request(name: str, load: Load, rng: np.random.Generator) -> bytes:
    """Return the bytes of a random request."""
    place = [[float(rng.uniform(0, 1))], [float(rng.uniform(0, 360))]]
    low = float(rng.uniform(0, 0.6))
    near = {"at": place, "factor": int(rng.integers(2))}
    chosen = [{"column": "factor1_confidence", "low": low, "high": low + 0.3}]
    path, body = {
        "near": ("/api/near", near),
        "select": ("/api/select", {"conditions": chosen}),
        "column": ("/api/column/factor1_confidence", None),
        "about": ("/api/about", None),
        "main": ("/main.js", None),
    }[name]
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{load.port}\r\n"
        f"Cookie: manifactor-{load.port}={load.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def answer(reader: asyncio.StreamReader) -> int:
    """Read a whole answer; return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None, head
    await reader.readexactly(int(length.group(1)))
    return int(head.split(b" ", 2)[1])


async def client(load: Load, number: int, pause: float) -> None:
    """Ask one thing after the other; note how long each answer takes."""
    rng = np.random.default_rng(number)
    names, shares = list(SHARES), np.array(list(SHARES.values())) / 100
    stream = None
    while not load.over:
        if pause:
            await asyncio.sleep(rng.uniform(0, 2 * pause))
        name = rng.choice(names, p=shares)
        begun = time.perf_counter()
        try:
            if stream is None or stream[0].at_eof():
                stream = await asyncio.open_connection("127.0.0.1", load.port)
            stream[1].write(request(name, load, rng))
            status = await asyncio.wait_for(answer(stream[0]), 60)
        except (OSError, EOFError, TimeoutError) as error:
            load.problems[type(error).__name__] += 1
            stream = None
            continue
        if status == 200:
            load.seconds.setdefault(name, []).append(time.perf_counter() - begun)
        else:
            load.problems[status] += 1


async def half_open(load: Load, number: int) -> None:
    """Send a part of a request, or nothing, again and again."""
    whole = request("near", load, np.random.default_rng(number))
    parts = [b"", whole[:40], whole[:-20]]
    while not load.over:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
        except OSError as error:
            load.problems[f"half open: {type(error).__name__}"] += 1
            await asyncio.sleep(0.1)
            continue
        load.half_open += 1
        writer.write(parts[number % len(parts)])
        with suppress(OSError):
            await reader.read()
        writer.close()
        load.half_open -= 1
        load.half_open_closed += 1


async def look(load: Load, every: float = 0.2) -> None:
    """Note at intervals how many half-open connections there are."""
    while not load.over:
        load.half_open_seen.append(load.half_open)
        await asyncio.sleep(every)


def resident(pid: int) -> float:
    """Return the megabytes that a process has resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024, 1)


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def loaded(load: Load, pid: int, arguments: argparse.Namespace) -> list[float]:
    """Return the server's memory at the start, in the middle and at the end."""
    half = [half_open(load, number) for number in range(arguments.half_open)]
    clients = [client(load, number, arguments.pause) for number in range(arguments.clients)]
    waiting = [asyncio.create_task(each) for each in half]
    asking = [asyncio.create_task(each) for each in clients]
    memory = []
    # The first part of the time is that of caches and threads which are made once, and
    # of connections that are opened.
    for share in (0.1, 0.4, 0.5):
        await asyncio.sleep(share * arguments.seconds)
        memory.append(resident(pid))
        if len(memory) == 1:
            asking.append(asyncio.create_task(look(load)))
    load.over = True
    await asyncio.gather(*asking)
    for task in waiting:
        task.cancel()
    for ended in await asyncio.gather(*waiting, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
    return memory


def measured(run: Path, arguments: argparse.Namespace, **known) -> None:
    """Serve a run, load the server, and record what was seen."""
    command = [sys.executable, "-m", "manifactor.__main__", "explore", str(run)]
    server = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        found = re.search(r":(\d+)/\?token=(\S+)", server.stdout.readline())
        load = Load(int(found.group(1)), found.group(2))
        # Its other lines must not fill the pipe.
        Thread(target=server.stdout.read, daemon=True).start()
        before, own = cpu_seconds(server.pid), time.process_time()
        memory = asyncio.run(loaded(load, server.pid, arguments))
        known["server_cpu_seconds"] = round(cpu_seconds(server.pid) - before, 2)
        known["client_cpu_seconds"] = round(time.process_time() - own, 2)
    finally:
        server.terminate()
        server.wait()
    record("explorer under load", **known, **described(load, memory))


def described(load: Load, memory: list[float]) -> dict:
    """Return what was seen as entries of a record."""
    every = np.concatenate(list(load.seconds.values()))
    ranks = {"median": 50, "p99": 99, "most": 100}
    return {
        "answers": len(every),
        "problems": dict(load.problems),
        # Few are left for a moment when the server closes all of one age.
        "half_open_least": min(load.half_open_seen),
        "half_open_median": int(np.median(load.half_open_seen)),
        "half_open_closed": load.half_open_closed,
        "seconds_to_answer": {
            name: round(float(np.percentile(every, rank)), 3) for name, rank in ranks.items()
        },
        "p99_by_request": {
            name: round(float(np.percentile(each, 99)), 3)
            for name, each in sorted(load.seconds.items())
        },
        "megabytes_at_start_middle_end": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--half-open", type=int, default=400)
    parser.add_argument("--pause", type=float, default=0, help="mean seconds")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=108, help="pixels")
    parser.add_argument("--run", type=Path, help="serve this run of two factors")
    arguments = parser.parse_args()
    known = {
        name: getattr(arguments, name) for name in ("seconds", "clients", "half_open", "pause")
    }
    if arguments.run is not None:
        measured(arguments.run, arguments, name=arguments.run.name, **known)
        return
    with tempfile.TemporaryDirectory() as folder:
        fit = written(Path(folder), arguments.samples, arguments.size, False)
        assert manifactor([*fit, "--out", f"{folder}/run"]) == 0
        sizes = {"samples": arguments.samples, "pixels": arguments.size}
        measured(Path(folder) / "run", arguments, **sizes, **known)


if __name__ == "__main__":
    main()
