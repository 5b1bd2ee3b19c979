"""Outputs that this command is about to write, and no other may write meanwhile.

A lock file beside the output, ``.run.manifactor.lock``, is locked until the command ends. One that
a killed command has left is locked by nobody, and removed by the next command of this machine that
writes into the folder. Whoever removes a lock file holds its lock: who has opened it meanwhile sees
that it is gone, and makes another.
"""

import os
import re
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manifactor._support.locks import NO_DETOUR, lock, locked
from manifactor._support.temporaries import unfinished

# What may have the name of a lock file.
KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe"}

SUFFIX = ".manifactor.lock"

# What ends the claims of this process; claims belong to the whole process.
_claims: dict[Path, ExitStack] = {}


@dataclass(frozen=True)
class ClaimSettings:
    """Settings of `claim`."""

    # Seconds for which a lock of another process is waited for: it may hold the lock only to remove
    # the file, as `clear_locks` does, which takes a millisecond.
    patience: float = 0.25
    # Seconds between two attempts.
    pause: float = 0.01


def claim(place: Path, *, settings: ClaimSettings = ClaimSettings()) -> None:
    """Claim an output for this process, until the context `claims_released` ends.

    Where the file system has no locks, nothing is claimed and nothing refused.
    """
    path = Path(os.path.abspath(place))
    path = path.with_name(f".{path.name}{SUFFIX}")
    if path in _claims:
        return
    try:
        descriptor = _locked(path, settings)
    except BlockingIOError as error:
        raise ValueError(
            f"another command ({_owner(path)}) is writing {place}. Wait until it has "
            "ended, or choose another --out."
        ) from error
    except PermissionError:
        # Somebody else's, who may have been killed: that must not stop this command.
        return
    with ExitStack() as stack:
        # The file is removed before its lock ends: nobody locks one that is removed.
        if descriptor is not None:
            stack.callback(os.close, descriptor)
        stack.enter_context(unfinished(path))
        if descriptor is not None:
            os.truncate(descriptor, 0)
            os.write(descriptor, _this_process().encode())
            _claims[path] = stack.pop_all()


def _locked(path: Path, settings: ClaimSettings) -> int | None:
    end = time.monotonic() + settings.patience
    while True:
        _require_file(path)
        flags = os.O_CREAT | os.O_WRONLY | NO_DETOUR
        os.close(os.open(path, flags, 0o666))
        try:
            return lock(path)
        except FileNotFoundError:  # its owner has ended in this instant
            continue
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(settings.pause)


def _require_file(path: Path) -> None:
    """Refuse a lock that is there and is no file: it is written to, and removed."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "a device or a socket")
        raise ValueError(f"{path} must be a lock file of manifactor; it is {kind}. Remove it.")


def _this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _owner(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") or "just started"
    except OSError:
        return "just ended"


def clear_locks(folder: Path) -> None:
    """Remove the lock files that killed commands of this machine have left in a folder.

    Those of other machines stay: not every network file system shows their locks.
    """
    for path in folder.glob(f".*{SUFFIX}"):
        # A lock that is held, what is no lock file, or somebody else's.
        with suppress(OSError, ValueError):
            _require_file(path)
            with locked(path) as has_locks:
                if has_locks and _is_of_this_machine(path.read_text(encoding="utf-8")):
                    path.unlink()


def _is_of_this_machine(text: str) -> bool:
    """Return whether a lock file was made here; one without text was just made."""
    host = re.escape(socket.gethostname())
    return not text or re.fullmatch(rf"process \d+ on {host}", text) is not None


@contextmanager
def claims_released() -> Iterator[None]:
    """Release, at the end of this context, all that is claimed inside it."""
    before = set(_claims)
    try:
        yield
    finally:
        for path in set(_claims) - before:
            _claims.pop(path).close()
