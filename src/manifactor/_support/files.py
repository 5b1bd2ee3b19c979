"""Files and folders that are written whole or not at all."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Files and folders that exist only until what they are for is complete.
_unfinished: set[Path] = set()


@contextmanager
def _removed_unless_renamed(beside: Path) -> Iterator[None]:
    """Remove a file or a folder at the end of this context if it is still there."""
    _unfinished.add(beside)
    try:
        yield
    finally:
        _remove(beside)
        _unfinished.discard(beside)


def remove_unfinished() -> None:
    """Remove what this process writes at the moment, since it is about to end."""
    for path in list(_unfinished):
        _remove(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write(file)`` on a temporary file beside `path`, then rename it.

    If anything fails, `path` is left as it was and the temporary file is removed.
    """
    require_writable(path.parent)
    # Beside `path`, since a rename is atomic only within one file system.
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with _removed_unless_renamed(Path(beside)):
        with os.fdopen(handle, "wb") as file:
            write(file)
        # `mkstemp` lets nobody else read its files; give the mode of any new file.
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` on success.

    If anything fails inside of the context, `folder` is left as it was and the
    temporary folder is removed.
    """
    require_writable(folder.parent)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    with _removed_unless_renamed(beside):
        yield beside
        beside.chmod(0o777 & ~_umask())
        replace_folder(beside, folder)


def replace_folder(new: Path, folder: Path) -> None:
    """Rename `new` to `folder`; an old `folder` is removed only after that."""
    if not folder.exists():
        new.rename(folder)
        return
    # A folder that holds files cannot be renamed over: move it away first.
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
    old = aside / folder.name
    try:
        folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        with suppress(OSError):
            aside.rmdir()
        raise
    with _removed_unless_renamed(aside):
        pass


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
        require_writable(folder.parent, remedy=remedy)
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
    try:
        # Permissions alone do not tell: root has all of them, and disks are read-only.
        os.rmdir(tempfile.mkdtemp(dir=folder))
    except OSError as error:
        raise ValueError(
            f"the output goes into {folder}, which must be a writable folder: "
            f"{error.strerror}. {remedy}".rstrip()
        ) from error


def numeric_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key by which part.10 comes after part.2.

    Examples
    --------
    >>> sorted([Path("v10"), Path("v9")], key=numeric_order)[0].name
    'v9'
    """
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def newest_change(path: Path) -> int:
    """Return when a file, or anything in a folder, was changed last, in nanoseconds."""
    inside = path.rglob("*") if path.is_dir() else ()
    return max(each.stat().st_mtime_ns for each in (path, *inside))


def _umask() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
