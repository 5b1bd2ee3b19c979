"""Arrays in .npy files and .npz archives: sizes are checked first, and nothing is unpickled."""

import errno
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from manifactor._support.errors import one_line
from manifactor._support.files import irregularity
from manifactor._support.memory import require_memory, require_plausible


def npy_header(file: BinaryIO, size: int) -> tuple[tuple[int, ...], int, int]:
    """Return shape, item size and bytes after the values in an .npy file of so many bytes.

    The header is checked against the size of the file; nothing is allocated for the values.
    """
    try:
        # Version 3 is version 2 in another encoding, in which names of fields may differ; shape and
        # sizes are the same.
        first = np.lib.format.read_magic(file) == (1, 0)
        parse = (
            np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        )
        length = file.read(2 if first else 4)
        count = int.from_bytes(length, "little")
        # numpy reads all of a header before it refuses a long one, and a member of an archive may
        # unpack to a thousand times its size.
        content = BytesIO(length + file.read(min(count, 10_000)))
        # A header of Python 2, and one with stray backslashes, would issue a warning.
        with warnings.catch_warnings(action="ignore"):
            shape, _, dtype = parse(content)
    # Nothing but numpy is inside, which hands the header to Python's own parser.
    except Exception as error:
        raise ValueError("its header cannot be read") from error
    if dtype.hasobject:
        raise ValueError("it holds objects, which would have to be unpickled")
    left = size - file.tell()
    # True and False count as numbers in the header, and not in a shape.
    sides = all(type(side) is int and 0 <= side <= size for side in shape)
    needed = prod(shape) * dtype.itemsize
    if dtype.itemsize == 0 or not sides or needed > left:
        raise ValueError(
            f"its header describes an array of shape {shape} with values of {dtype.itemsize} "
            f"bytes, and {max(left, 0)} bytes follow"
        )
    return shape, dtype.itemsize, left - needed


class ArrayFileError(ValueError):
    """A file that holds no arrays, or more than there is memory for."""


# What zipfile, zlib, numpy and pyarrow raise for damaged files. Other errors are our own mistakes.
DAMAGE = (
    *(BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError),
    *(OverflowError, OSError, ValueError, LookupError),
)


@contextmanager
def name_damage(
    path: Path, name: str = "", kinds: tuple[type[Exception], ...] = DAMAGE
) -> Iterator[None]:
    """Name a file, and a part of it, in what libraries raise for damaged ones."""
    try:
        yield
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    except kinds as error:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            raise  # too many open files
        where = f" (in {name!r})" if name else ""
        reason = one_line(error)[:300].rstrip(".") or type(error).__name__
        raise ArrayFileError(
            f"{path} is damaged, or not a file of plain numbers: "
            f"{reason}{where}. Write it again with the program that made it."
        ) from error


@dataclass(frozen=True)
class ArrayArchive:
    """An open .npz archive."""

    path: Path
    members: Mapping[str, ZipInfo]  # the arrays by name
    file: ZipFile

    def read(self, *names: str, itemsize: int = 1) -> dict[str, np.ndarray]:
        """Return some arrays, or all, by name; their numbers will take `itemsize` bytes or more."""
        chosen = names or tuple(self.members)
        headers = [self._header(name) for name in chosen]
        stored = self.path.stat().st_size
        try:
            for shape, size in headers:
                require_plausible(self.path, shape, stored, itemsize=size)
            sizes = (prod(shape) * max(itemsize, size) for shape, size in headers)
            require_memory(self.path, sum(sizes))
        except ValueError as error:
            raise ArrayFileError(str(error)) from error
        arrays = {}
        for name in chosen:
            with name_damage(self.path, name), self.file.open(self.members[name]) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
        return arrays

    def _header(self, name: str) -> tuple[tuple[int, ...], int]:
        """Return the shape and the item size of an array."""
        info = self.members[name]
        with name_damage(self.path, name), self.file.open(info) as member:
            shape, itemsize, more = npy_header(cast(BinaryIO, member), info.file_size)
            if more:
                raise ValueError("it has more bytes than its shape")
        return shape, itemsize


@contextmanager
def open_archive(path: Path) -> Iterator[ArrayArchive]:
    """Open an .npz archive; no array is read yet."""
    problem = irregularity(path)
    # What is not there at all is the system's to report.
    if problem and path.exists():
        raise ArrayFileError(f"{path} {problem}.")
    with ExitStack() as stack:
        with name_damage(path):
            file = stack.enter_context(ZipFile(path))
            infos = file.infolist()
            for info in infos:
                if info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise ValueError("it is encrypted, or compressed as no .npz file is")
        arrays = [info for info in infos if info.filename.endswith(".npy")]
        members = {info.filename.removesuffix(".npy"): info for info in arrays}
        yield ArrayArchive(path, members, file)
