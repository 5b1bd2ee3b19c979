"""Files that become shorter while they are read as memory maps.

The system ends a process that reads a page which is no longer there (SIGBUS). Python
cannot catch that: its handlers run later, and the page is read again first. A handler
of the C library runs at once; this one says what happened, and ends the process.
"""

import ctypes
import mmap
import os
import signal
from contextlib import suppress
from pathlib import Path

from manifactor._support.children import kill_children
from manifactor._support.temporaries import remove_unfinished
from manifactor.command import EXIT_BAD_INPUT

# Kept here: the C library knows only its address.
_handlers: list = []


def explain_bus_errors() -> None:
    """Let a bus error end this process with one line and the exit code 2."""
    number = getattr(signal, "SIGBUS", None)
    if number is None:  # Windows
        return
    with suppress(OSError, AttributeError):
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_end)
        ctypes.CDLL(None).signal(int(number), handler)
        _handlers.append(handler)


def _end(number: int) -> None:
    """Say which file became shorter, remove what is not finished, and end."""
    for step in (kill_children, remove_unfinished, _write_line):
        with suppress(Exception):
            step()
    os._exit(EXIT_BAD_INPUT)


def _write_line() -> None:
    name = next(iter(_shortened()), "a file that is read")
    text = (
        f"manifactor: error: {name} became shorter while it was read. Repeat the "
        "command when no other program writes it.\n"
    )
    os.write(2, text.encode(errors="backslashreplace"))


def _shortened() -> list[str]:
    """Return the files of which parts are mapped that they no longer have."""
    found = []
    for line in Path("/proc/self/maps").read_text(errors="surrogateescape").split("\n"):
        cells = line.split(maxsplit=5)
        # Libraries are mapped, too, but their pages are private.
        shared = len(cells) == 6 and cells[1].endswith("s")
        if not shared or not os.path.isfile(cells[5]):
            continue
        low, high = (int(address, 16) for address in cells[0].split("-"))
        last_page = int(cells[2], 16) + high - low - mmap.PAGESIZE
        if last_page >= os.path.getsize(cells[5]):
            found.append(cells[5])
    return found
