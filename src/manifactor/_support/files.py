"""Files and folders that are written whole or not at all."""

import ctypes
import errno
import glob
import io
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

# Locks that end with the process that holds them, however it ends.

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Flags with which neither a link leads elsewhere nor a FIFO blocks; none on Windows.
NO_DETOUR = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def lock(path: Path) -> int | None:
    """Lock a file or a folder and return the descriptor that holds the lock.

    The lock ends when the descriptor is closed, or when this process ends in any way and no child
    has the descriptor.
    """
    if fcntl is None:
        return None
    # Network file systems lock only what is open for writing; folders cannot be.
    mode = os.O_RDONLY if path.is_dir() else os.O_RDWR
    descriptor = os.open(path, mode | NO_DETOUR)
    try:
        held = _flock(descriptor)
        if not os.path.samestat(os.fstat(descriptor), path.lstat()):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(descriptor)
        raise
    if not held:
        os.close(descriptor)
    return descriptor if held else None


def _flock(descriptor: int) -> bool:
    """Lock an open file; return whether its file system has locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock inside this context; yield whether there are locks here at all.

    Raises what `lock` raises.
    """
    descriptor = lock(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


# Two files or folders exchanged in one step, where the system can.

# <fcntl.h> and <linux/fs.h>, <sys/stdio.h>: relative to the current folder; exchange.
AT_FDCWD = -100
RENAME_EXCHANGE = RENAME_SWAP = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths; return False, and change nothing, where that cannot be.

    Linux and macOS can, on most local file systems. Network file systems cannot.
    """
    names = os.fsencode(one), os.fsencode(other)
    try:
        system = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return system.renamex_np(*names, RENAME_SWAP) == 0
        return system.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0
    # Another system, or a library without the function.
    except (OSError, TypeError, AttributeError):
        return False


# Files that can be read to their end: no pipes, devices, sockets or folders.

# What a path may lead to, other than a regular file.
KINDS = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a named pipe, which is not read from",
    stat.S_IFSOCK: "is a socket, which is not read from",
    stat.S_IFCHR: "is a device, which is not read from",
    stat.S_IFBLK: "is a device, which is not read from",
}


def require_regular_file(path: Path, what: str = "the input") -> None:
    """Refuse a path that does not lead to a regular file.

    To open a named pipe waits until somebody writes into it, perhaps for ever; a device may have no
    end.
    """
    problem = irregularity(path)
    if problem:
        raise ValueError(f"{what} must be a file; {path} {problem}.")


def irregularity(path: Path) -> str:
    """Say why a path does not lead to a regular file; an empty text if it does.

    >>> irregularity(Path("no such file"))
    'does not exist'
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return _problem(error)
    except ValueError:  # a name with a zero byte
        return "has a name that no file can have"
    return KINDS.get(stat.S_IFMT(mode), "")


def _problem(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "does not exist"
    if error.errno == errno.ELOOP:
        return "is a link that leads back to itself"
    return f"cannot be used: {os.strerror(error.errno or 0)}"


def real_path(path: Path) -> Path:
    """Return an absolute path without links; a link to itself stays as it is.

    `Path.resolve` raises a RuntimeError for such a link.
    """
    return Path(os.path.realpath(path))


# Files that make no room for bytes that they do not have.


class BoundedFile(io.BufferedReader):
    """A binary file, open for reading.

    Python makes room for as many bytes as it is asked to read, even if the file is shorter. Formats
    that store lengths could ask for any number.

    - size: bytes of the file when it was opened
    """

    def __init__(self, path: Path) -> None:
        """Open the file."""
        super().__init__(io.FileIO(path))
        self.size = os.fstat(self.fileno()).st_size

    def read(self, count: int | None = -1, /) -> bytes:
        """Return so many bytes, or those that are left."""
        left = max(0, self.size - self.tell())
        asked = left if count is None or count < 0 else count
        return super().read(min(asked, left))


# Temporary files and folders beside an output, and those of killed programs.
#
# An output is written under a hidden name beside it, and then renamed. The name says on which
# machine: ``.run.new.MACHINE-RANDOM``. While its program runs, it is locked. Where a folder cannot
# be exchanged for another at once, the old one is ``.run.old.`` ... until the new one is in its
# place.
#
# A program that is killed leaves such names. They are known to be left if they were made on this
# machine and nobody holds their lock, or if nothing in them has changed for a day: locks of folders
# are not seen by other machines of a network file system.

NAME = re.compile(r"\.(.+)\.(new|old)\.([0-9a-f]{8})-(\w{8})", re.DOTALL)


@dataclass(frozen=True)
class LeftoverSettings:
    """Settings of `clear_leftovers`."""

    # Seconds after which something is no longer being written, where no lock can tell. The longest
    # pause of a writer is the simulation of some images: minutes.
    idle: float = 86_400.0


@lru_cache(maxsize=1)
def _machine() -> str:
    # A hash: names of machines may be long.
    return sha256(socket.gethostname().encode()).hexdigest()[:8]


def name_beside(path: Path, state: str, tag: str = "") -> str:
    """Return the name of something temporary beside `path`, up to its random tag."""
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
        # In the instant before it is locked, another program may take it for a leftover.
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
    # `clear_leftovers` puts any `.old.` folder back that has no successor. Rename it before it is
    # deleted, so that a half-deleted one is never put back.
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


def clear_leftovers(folder: Path, *, settings: LeftoverSettings = LeftoverSettings()) -> list[Path]:
    """Remove what killed programs have left in a folder.

    What is being written is left alone. An output that a killed program has moved away, and not
    replaced yet, gets its successor, or is put back if there is none.
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


# Outputs that this command is about to write, and no other may write meanwhile.
#
# A lock file beside the output, ``.run.manifactor.lock``, is locked until the command ends. One
# that a killed command has left is locked by nobody, and removed by the next command of this
# machine that writes into the folder. Whoever removes a lock file holds its lock: who has opened it
# meanwhile sees that it is gone, and makes another.

# What may have the name of a lock file.
OUTPUT_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe"}

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
        kind = OUTPUT_KINDS.get(stat.S_IFMT(mode), "a device or a socket")
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


# Files and folders that are written whole or not at all.

# Name under which it is tried whether a folder is writable.
PROBE = "probe"
# Errors of a name that is too long, or that the file system does not take.
BAD_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write(file)`` on a temporary file beside `path`, then rename it.

    If anything fails, `path` is left as it was and the temporary file is removed. The file is on
    the disk before it is renamed.
    """
    with _written_beside(path, write) as beside:
        os.replace(beside, path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file of this content as `write_whole` does."""
    write_whole(path, lambda file: file.write(content))


def write_new(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file as `write_whole` does; raise FileExistsError if the name is taken.

    Even by a link that leads nowhere, and by another program that writes now.
    """
    with _written_beside(path, write) as beside:
        try:
            os.link(beside, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                os.replace(beside, path)
            except BaseException:
                path.unlink()
                raise


@contextmanager
def _written_beside(path: Path, write: Callable[[BinaryIO], object]) -> Iterator[Path]:
    """Yield a temporary file beside `path` that is whole and on the disk."""
    with _beside(path) as beside:
        with beside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        # Temporary files are private; give the mode of any new file.
        beside.chmod(0o666 & ~_umask())
        yield beside
        _sync_folder(path.parent)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` on success.

    If anything fails inside of the context, `folder` is left as it was and the temporary folder is
    removed.
    """
    with _beside(folder, folder=True) as beside:
        yield beside
        beside.chmod(0o777 & ~_umask())
        replace_folder(beside, folder)


@contextmanager
def _beside(path: Path, *, folder: bool = False, remedy: str = "") -> Iterator[Path]:
    """Yield something temporary beside `path`; refuse where nothing can be written."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(temporary(path, folder=folder))
        except ValueError as error:  # a null character
            raise _bad_name(path, str(error), remedy) from error
        except OSError as error:
            problem = error.strerror or str(error)
            if error.errno in BAD_NAME:
                raise _bad_name(path, problem, remedy) from error
            raise ValueError(
                f"the output goes into {path.parent}, which must be a writable folder: "
                f"{problem}. {remedy}".rstrip()
            ) from error
        yield made


def _bad_name(path: Path, problem: str, remedy: str) -> ValueError:
    return ValueError(
        f"the output cannot have the name {path.name!r}: {problem}. {remedy}".rstrip()
    )


def replace_folder(new: Path, folder: Path) -> None:
    """Rename `new` to `folder`; an old `folder` is removed only after that.

    At every moment one of them, whole, is in place, where the system can exchange them in one step.
    Elsewhere `clear_leftovers` ends what was interrupted.
    """
    _sync_tree(new)
    if not os.path.lexists(folder):
        new.rename(folder)
    elif not exchange(new, folder):
        _exchange_by_renames(new, folder)
    _sync_folder(folder.parent)
    # After an exchange, this is the old one.
    remove(new)


def _exchange_by_renames(new: Path, folder: Path) -> None:
    # A folder that holds files cannot be renamed over: move it away first.
    old = away(folder, new)
    # Locked, since nobody else must put it back in the instant between the two. It may be a link to
    # a folder.
    with locked(real_path(folder)):
        folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            old.rename(folder)
            raise
        old.rename(new)


def _sync_tree(folder: Path) -> None:
    """Wait until all files of a folder are on the disk."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            _sync_folder(path)
        elif path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until the names of a folder are on the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path, *, remedy: str = "") -> None:
    """Make a folder in which files can be written, unless it exists.

    The parent must exist: a misspelt path makes no tree of folders.
    """
    if not folder.exists():
        require_place(folder, remedy=remedy)
        folder.mkdir()
    require_writable(folder, remedy=remedy)


def require_writable(folder: Path, *, remedy: str = "") -> None:
    """Refuse a folder in which nothing can be written."""
    require_place(folder / PROBE, remedy=remedy)


def require_place(path: Path, *, remedy: str = "") -> None:
    """Refuse a path at which no file or folder can be written.

    The parent must be a writable folder, and the name one that its file system takes.
    """
    if path.name in ("", ".."):
        raise ValueError(f"the output must have a name; got {path}. {remedy}".rstrip())
    # Permissions alone do not tell: root has all of them, and disks are read-only.
    with _beside(path, folder=True, remedy=remedy):
        pass


def numeric_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key by which part.10 comes after part.2.

    >>> sorted([Path("v10"), Path("v9")], key=numeric_order)[0].name
    'v9'
    """
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _umask() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
