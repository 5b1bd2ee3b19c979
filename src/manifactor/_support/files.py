"""Files and folders that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(path: Path, write) -> None:
    """Call ``write(file)`` on a file beside `path`, then rename: `path` is whole or untouched."""
    require_writable(path.parent)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes the place of `folder` when all went well, and is removed otherwise."""
    require_writable(folder.parent)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield beside
        beside.chmod(0o777 & ~_umask())
        _exchange(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _exchange(new: Path, folder: Path) -> None:
    """Put a folder in the place of another, which is removed only when the new one stands."""
    if not folder.exists():
        new.rename(folder)
        return
    old = (
        Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
        / folder.name
    )
    try:
        folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        with suppress(OSError):
            old.parent.rmdir()
        raise
    shutil.rmtree(old.parent, ignore_errors=True)


def require_writable(folder: Path) -> None:
    """Refuse a folder in which nothing can be written."""
    try:
        os.rmdir(
            tempfile.mkdtemp(dir=folder)
        )  # asking for permission is not enough: root has it everywhere
    except OSError as error:
        raise ValueError(
            f"the output goes into {folder}, which must be a writable folder: {error.strerror}."
        ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
