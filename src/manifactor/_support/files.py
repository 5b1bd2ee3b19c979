"""Files and folders that are written whole or not at all, one command at a time.

An output is written under a hidden name beside its place, ``.run.new.RANDOM``, synced, and then
renamed. The lock of a file beside an output, ``.run.manifactor.lock``, ends with the process;
whoever holds it clears up what others have left. Where the system cannot exchange folders, the old
one is called ``.run.old.RANDOM`` until the new one is in its place.
"""

import ctypes
import errno
import glob
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def require_regular_file(path: Path, what: str = "the input") -> None:
    """Refuse a path that does not lead to a regular file.

    To open a named pipe waits until somebody writes into it, perhaps for ever; a device may have no
    end.
    """
    if problem := irregularity(path):
        raise ValueError(f"{what} must be a file; {path} {problem}.")


def irregularity(path: Path) -> str:
    """Say why a path does not lead to a regular file; an empty text if it does."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return "does not exist"
        if error.errno == errno.ELOOP:
            return "is a link that leads back to itself"
        return f"cannot be used: {os.strerror(error.errno or 0)}"
    except ValueError:  # a name with a zero byte
        return "has a name that no file can have"
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISDIR(mode):
        return "is a folder"
    kind = "a named pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
    return f"is {kind}, which is not read from"


def real_path(path: Path) -> Path:
    """Return an absolute path without links; `Path.resolve` raises for a link to itself."""
    return Path(os.path.realpath(path))


def newest_change(path: Path) -> int:
    """Return when a file, or anything in a folder, was changed last, in nanoseconds."""
    files = (path, *(path.rglob("*") if path.is_dir() else ()))
    return max(file.stat().st_mtime_ns for file in files)


def numeric_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key by which part.10 comes after part.2."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


# Claims: one lock for each output.

# The outputs that the command of this process has claimed, until it closes this.
claims = ExitStack()


def claim(place: Path) -> None:
    """Hold the lock of an output until `claims` is closed."""
    # Some time: another command may just be removing its lock.
    claims.enter_context(hold(place, patience=0.25))


@contextmanager
def hold(place: Path, *, patience: float = 60.0) -> Iterator[None]:
    """Hold the lock of an output inside this context, and remove what killed commands left of it.

    A lock that somebody else may not write, or a file system without locks, stops nobody: where
    nothing can be written at all, writing says so.
    """
    from filelock import FileLock, Timeout  # not needed by commands that write nothing

    path = Path(os.path.abspath(place))
    path = path.with_name(f".{path.name}.manifactor.lock")
    # A single lock for each path counts how often its thread has taken it.
    lock = FileLock(path, is_singleton=True)
    try:
        lock.acquire(timeout=patience)
    except Timeout as error:
        owner = ""
        with suppress(OSError):
            owner = path.read_text(encoding="utf-8", errors="replace")
        raise ValueError(
            f"another command ({owner or 'just started'}) is writing {place}. Wait until it has "
            "ended, or choose another --out."
        ) from error
    except (OSError, NotImplementedError):
        pass
    first = lock.lock_counter == 1  # no context around this one in this thread
    try:
        if first:
            with suppress(OSError):
                who = f"process {os.getpid()} on {socket.gethostname()}"
                path.write_text(who, encoding="utf-8")
            clear_leftovers(place)
        yield
    finally:
        # The file is removed before its lock ends: filelock takes no lock of a removed file.
        if first:
            remove(path)
        lock.release()


def clear_leftovers(place: Path) -> None:
    """Remove what a killed command has left; put an output back that it had moved away."""
    for left in place.parent.glob(glob.escape(f".{place.name}.") + "???.????????"):
        state = left.name.split(".")[-2]
        if state == "old" and not os.path.lexists(place):
            left.rename(place)
        elif state in ("old", "new"):
            remove(left)


def put_back(place: Path) -> None:
    """Put an output back that a killed command had moved away, if nothing is in its place."""
    left = place.parent.glob(glob.escape(f".{place.name}.old") + ".????????")
    if not os.path.lexists(place) and any(left):
        with hold(place):
            pass


def name_beside(place: Path, state: str) -> Path:
    """Return a free name beside an output: a rename is atomic within one file system only."""
    return place.with_name(f".{place.name}.{state}.{os.urandom(4).hex()}")


# Outputs that are whole or absent.


@contextmanager
def temporary(path: Path, *, folder: bool = False, remedy: str = "") -> Iterator[Path]:
    """Yield a new file or folder beside `path`, which is removed unless it was renamed.

    Refuse where nothing can be written.
    """
    beside = name_beside(path, "new")
    try:
        beside.mkdir() if folder else beside.touch(exist_ok=False)
    except (OSError, ValueError) as error:  # a null character is a ValueError
        problem = getattr(error, "strerror", None) or str(error)
        message = f"the output goes into {path.parent}, which must be a writable folder: {problem}"
        if getattr(error, "errno", None) in (None, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
            message = f"the output cannot have the name {path.name!r}: {problem}"
        raise ValueError(f"{message}. {remedy}".rstrip()) from error
    try:
        yield beside
    finally:
        remove(beside)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write(file)`` on a temporary file, then rename it; on failure, leave `path` alone."""
    with temporary(path) as beside:
        with beside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file of this content as `write_whole` does."""
    write_whole(path, lambda file: file.write(content))


def write_new(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file as `write_whole` does; raise FileExistsError if a file or link has its name."""
    with hold(path):
        if os.path.lexists(path):
            raise FileExistsError(path)
        write_whole(path, write)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` on success; a failure leaves it as it was."""
    with temporary(folder, folder=True) as beside:
        yield beside
        replace_folder(beside, folder)


def replace_folder(new: Path, folder: Path) -> None:
    """Rename `new` to `folder`; an old `folder` is removed only after that."""
    for path in (new, *new.rglob("*")):
        _sync(path)
    if not os.path.lexists(folder):
        new.rename(folder)
    elif not exchange(new, folder):
        # A folder that holds files cannot be renamed over. If this is killed between the renames,
        # `clear_leftovers` puts the old one back.
        old = name_beside(folder, "old")
        folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            old.rename(folder)
            raise
        # Only a whole folder is ever put back: this name says that it is not wanted.
        old.rename(new)
    _sync(folder.parent)
    remove(new)


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders at once; return whether the system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux
        return False
    sys.audit("os.rename", one, other, -1, -1)  # as Python does for its own renames
    here, at_once = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    return rename(here, os.fsencode(one), here, os.fsencode(other), at_once) == 0


def _sync(path: Path) -> None:
    """Wait until a file, or the names of a folder, are on the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def require_place(path: Path, *, remedy: str = "") -> None:
    """Refuse a path at which no file or folder can be written."""
    if path.name in ("", ".."):
        raise ValueError(f"the output must have a name; got {path}. {remedy}".rstrip())
    # Permissions alone do not tell: root has all of them, and disks are read-only.
    with temporary(path, folder=True, remedy=remedy):
        pass
