"""Files that can be read to their end: no pipes, devices, sockets or folders."""

import errno
import os
import stat
from pathlib import Path

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
