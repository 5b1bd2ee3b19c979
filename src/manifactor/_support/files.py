"""Files and folders that are written whole or not at all."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from manifactor._support.exchange import exchange
from manifactor._support.locks import locked
from manifactor._support.regular_files import real_path
from manifactor._support.temporaries import (
    away,
    remove,
    temporary,
)

# Name under which it is tried whether a folder is writable.
PROBE = "probe"
# Errors of a name that is too long, or that the file system does not take.
BAD_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write(file)`` on a temporary file beside `path`, then rename it.

    If anything fails, `path` is left as it was and the temporary file is removed. The
    file is on the disk before it is renamed.
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

    If anything fails inside of the context, `folder` is left as it was and the
    temporary folder is removed.
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

    At every moment one of them, whole, is in place, where the system can exchange them
    in one step. Elsewhere `clear_leftovers` ends what was interrupted.
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
    # Locked, since nobody else must put it back in the instant between the two. It may
    # be a link to a folder.
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

    Parameters
    ----------
    folder : Path
    remedy : str
        What to do if that cannot be, as in `require_writable`.
    """
    if not folder.exists():
        require_place(folder, remedy=remedy)
        folder.mkdir()
    require_writable(folder, remedy=remedy)


def require_writable(folder: Path, *, remedy: str = "") -> None:
    """Refuse a folder in which nothing can be written.

    Parameters
    ----------
    folder : Path
    remedy : str
        What to do instead, as a sentence at the end of the message.
    """
    require_place(folder / PROBE, remedy=remedy)


def require_place(path: Path, *, remedy: str = "") -> None:
    """Refuse a path at which no file or folder can be written.

    The parent must be a writable folder, and the name one that its file system takes.

    Parameters
    ----------
    path : Path
    remedy : str
        What to do instead, as a sentence at the end of the message.
    """
    if path.name in ("", ".."):
        raise ValueError(f"the output must have a name; got {path}. {remedy}".rstrip())
    # Permissions alone do not tell: root has all of them, and disks are read-only.
    with _beside(path, folder=True, remedy=remedy):
        pass


def numeric_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key by which part.10 comes after part.2.

    Examples
    --------
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
