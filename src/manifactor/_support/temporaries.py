"""Temporary files and folders beside an output, and those of killed programs.

An output is written under a hidden name beside it, and then renamed. The name says on
which machine: ``.run.new.MACHINE-RANDOM``. While its program runs, it is locked. Where
a folder cannot be exchanged for another at once, the old one is ``.run.old.`` ... until
the new one is in its place.

A program that is killed leaves such names. They are known to be left if they were made
on this machine and nobody holds their lock, or if nothing in them has changed for a
day: locks of folders are not seen by other machines of a network file system.
"""

import glob
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from manifactor._support.locks import lock, locked
from manifactor._support.regular_files import real_path

NAME = re.compile(r"\.(.+)\.(new|old)\.([0-9a-f]{8})-(\w{8})", re.DOTALL)


@dataclass(frozen=True)
class LeftoverSettings:
    """Settings of `clear_leftovers`."""

    # Seconds after which something is no longer being written, where no lock can tell.
    # The longest pause of a writer is the simulation of some images: minutes.
    idle: float = 86_400.0


@lru_cache(maxsize=1)
def _machine() -> str:
    # A hash: names of machines may be long.
    return sha256(socket.gethostname().encode()).hexdigest()[:8]


def name_beside(path: Path, state: str, tag: str = "") -> str:
    """Return the name of something temporary beside `path`, up to its random tag.

    Parameters
    ----------
    path : Path
    state : "new" or "old"
        Whether it is to become `path`, or was `path` until now.
    tag : str
        Eight characters.
    """
    return f".{path.name}.{state}.{_machine()}-{tag}"


@contextmanager
def temporary(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a new, locked file or folder beside `path`; remove it unless renamed."""
    made, descriptor = _made(path, folder=folder)
    try:
        with unfinished(made):
            yield made
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _made(path: Path, *, folder: bool) -> tuple[Path, int | None]:
    """Make an empty file or folder beside `path`, and lock it."""
    # Beside `path`, since a rename is atomic only within one file system.
    parent, start = path.parent, name_beside(path, "new")
    while True:
        if folder:
            name = tempfile.mkdtemp(dir=parent, prefix=start)
        else:
            handle, name = tempfile.mkstemp(dir=parent, prefix=start)
            os.close(handle)
        made = Path(name)
        # In the instant before it is locked, another program may take it for a
        # leftover.
        with suppress(BlockingIOError, FileNotFoundError):
            return made, lock(made)


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Remove a file or a folder at the end of this context if it is still there."""
    try:
        yield
    finally:
        remove(path)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)


def away(folder: Path, successor: Path) -> Path:
    """Return the name of a folder until its successor is in its place."""
    if _parts(successor):
        return _other_state(successor, "old")
    return folder.with_name(name_beside(folder, "old", token_hex(4)))


def _discard(old: Path) -> None:
    """Remove a folder that was moved away, after another is in its place."""
    # `clear_leftovers` puts any `.old.` folder back that has no successor. Rename it
    # before it is deleted, so that a half-deleted one is never put back.
    half = _other_state(old, "new")
    remove(half)
    with suppress(OSError):
        old.rename(half)
    remove(half)


def _other_state(path: Path, state: str) -> Path:
    name, _, machine, tag = _parts(path)
    return path.with_name(f".{name}.{state}.{machine}-{tag}")


def _parts(path: Path) -> tuple[str, ...]:
    """Return name, state, machine and tag of something temporary, else nothing."""
    found = NAME.fullmatch(path.name)
    return found.groups() if found else ()


def clear_leftovers(
    folder: Path, *, settings: LeftoverSettings = LeftoverSettings()
) -> list[Path]:
    """Remove what killed programs have left in a folder.

    What is being written is left alone. An output that a killed program has moved away,
    and not replaced yet, gets its successor, or is put back if there is none.

    Parameters
    ----------
    folder : Path
    settings : LeftoverSettings

    Returns
    -------
    list of Path
        Outputs that are in their places again.
    """
    here = [folder / each for each in os.listdir(folder)] if folder.is_dir() else []
    ours = [path for path in here if _parts(path)]
    restored = []
    # Old outputs first: their successors, which are whole, are not to be removed.
    for path in sorted(ours, key=lambda path: _parts(path)[1], reverse=True):
        # Somebody writes it, or it belongs to somebody else.
        with suppress(OSError), _abandoned(path, settings):
            restored += _cleared(path)
    return restored


@contextmanager
def _abandoned(path: Path, settings: LeftoverSettings) -> Iterator[None]:
    """Hold something that nobody writes any more; raise OSError if somebody may."""
    with locked(real_path(path)) as has_locks:
        known = has_locks and _parts(path)[2] == _machine()
        if not known and time.time() - newest_change(path) / 1e9 < settings.idle:
            raise BlockingIOError(path)
        yield


def _cleared(path: Path) -> list[Path]:
    """Remove a leftover; return the output that is in its place again, if any."""
    name, state, _, _ = _parts(path)
    place = path.with_name(name)
    if state == "new":
        remove(path)
        return []
    if os.path.lexists(place):
        _discard(path)
        return []
    # An output is moved away only after its successor is whole.
    successor = _other_state(path, "new")
    (successor if successor.exists() else path).rename(place)
    _discard(path)
    return [place]


def is_half_replaced(place: Path) -> bool:
    """Return whether an output was moved away, and nothing is in its place yet."""
    beside = f".{glob.escape(place.name)}.old.*"
    return not place.exists() and any(place.parent.glob(beside))


def newest_change(path: Path) -> int:
    """Return when a file, or anything in a folder, was changed last, in nanoseconds."""
    inside = path.rglob("*") if path.is_dir() else ()
    return max(each.stat().st_mtime_ns for each in (path, *inside))
