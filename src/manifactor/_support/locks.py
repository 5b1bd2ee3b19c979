"""Locks that end with the process that holds them, however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
