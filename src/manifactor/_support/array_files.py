"""Arrays in .npy files and .npz archives: sizes are checked before they are read."""

import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from manifactor._support.files import BoundedFile, irregularity

# Headers of .npy files, which are also those of .cs files, checked before reading.

# Version 3 is version 2 in another encoding, in which names of fields may differ; shape
# and sizes are the same.
READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,
}
# Bytes of the number that says how long the header is.
LENGTHS = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
# Bytes of a header that numpy parses.
LONGEST = 10_000


@dataclass(frozen=True)
class NpyHeader:
    """What an .npy file holds."""

    shape: tuple[int, ...]
    dtype: np.dtype  # without objects. Names of its fields may be garbled in a file of version 3.
    fortran_order: bool
    start: int  # where the values start, in bytes


def npy_header(file: BinaryIO, size: int) -> NpyHeader:
    """Read the header of an .npy file and check it against the size of the file.

    Nothing is allocated for the values, and nothing is unpickled.

    >>> from io import BytesIO
    >>> content = BytesIO()
    >>> np.save(content, np.zeros((3, 2)))
    >>> _ = content.seek(0)
    >>> npy_header(content, len(content.getvalue())).shape
    (3, 2)
    """
    shape, fortran_order, dtype = _parsed(file)
    if dtype.hasobject:
        raise ValueError("it holds objects, which would have to be unpickled")
    # True and False count as numbers in the header, and not in a shape.
    sides = all(type(side) is int and 0 <= side <= size for side in shape)
    if dtype.itemsize == 0 or not sides:
        raise ValueError(f"its header describes {_described(shape, dtype)}")
    start = file.tell()
    needed = prod(shape) * dtype.itemsize
    if needed > size - start:
        raise ValueError(
            f"its header describes {_described(shape, dtype)}, which are {needed} "
            f"bytes, and {max(size - start, 0)} follow"
        )
    return NpyHeader(shape, dtype, fortran_order, start)


def _parsed(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    try:
        version = np.lib.format.read_magic(file)
        header = _header_bytes(file, LENGTHS[version])
    except (ValueError, KeyError) as error:
        raise ValueError("its header cannot be read") from error
    try:
        # A header of Python 2, and one with stray backslashes, would issue a warning.
        with warnings.catch_warnings(action="ignore"):
            return READERS[version](header)
    # Nothing but numpy is inside, which hands the header to Python's own parser.
    except Exception as error:
        raise ValueError("its header cannot be read") from error


def _header_bytes(file: BinaryIO, width: int) -> BytesIO:
    """Return the header with its length, which is not believed.

    numpy reads all of a header before it refuses a long one, and a member of an archive may unpack
    to a thousand times its size.
    """
    length = file.read(width)
    count = int.from_bytes(length, "little")
    if count > LONGEST:
        raise ValueError(f"a header has {LONGEST} bytes at most; this one has {count}")
    return BytesIO(length + file.read(count))


def _described(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return f"an array of shape {shape} with values of {dtype.itemsize} bytes"


# Arrays in .npy files and .npz archives: sizes are checked before they are read.
#
# No pickled object is ever loaded.

SUFFIX = ".npy"
ENCRYPTED = 1  # the bit of a member's flags
# Those of numpy. Others may ask for gigabytes before anything is read.
COMPRESSIONS = (ZIP_STORED, ZIP_DEFLATED)
ZIP_BEGINS = b"PK\x03\x04"
# What zipfile and zlib raise for archives and members that make no sense.
UNPACKING = (
    BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    OSError,
    ValueError,
)
NO_ARRAYS = "is damaged, or no .npz file of plain arrays."


@dataclass(frozen=True)
class ArrayFileSettings:
    """How much memory a file may take."""

    # An archive may take so many times its own size. Measured numbers are compressed tenfold at
    # most, and only images or tables with few values more than that.
    most_expansion: float = 100.0

    # Bytes that an archive of any size may take.
    free: int = 2**26

    # Bytes of each number, if it is converted to double precision; 1 if it is not.
    bytes_per_number: int = 8

    # Members of one archive.
    most_members: int = 100_000


class ArrayFileError(ValueError):
    """A file that holds no arrays, or more than there is memory for."""


def memory_of(header: NpyHeader, settings: ArrayFileSettings) -> int:
    """Return the bytes that an array takes in memory; rows without columns count, too.

    As a Python number, it does not overflow.
    """
    count = prod(max(1, side) for side in header.shape)
    return count * max(header.dtype.itemsize, settings.bytes_per_number)


@dataclass(frozen=True)
class ArrayArchive:
    """An open .npz archive."""

    path: Path
    members: Mapping[str, ZipInfo]  # the arrays by name
    others: tuple[str, ...]  # members that are no arrays
    file: ZipFile
    most_bytes: float  # memory that all arrays together may take
    settings: ArrayFileSettings

    def read(self, *names: str) -> dict[str, np.ndarray]:
        """Return some arrays, all of them if none is named, by name."""
        chosen = {name: self.members[name] for name in names or self.members}
        self._require_memory(chosen)
        return {name: self._array(name, info) for name, info in chosen.items()}

    def _require_memory(self, chosen: Mapping[str, ZipInfo]) -> None:
        needed = sum(self._memory(*item) for item in chosen.items())
        own = self.path.stat().st_size
        if needed > max(self.settings.free, self.settings.most_expansion * own):
            raise ArrayFileError(
                f"{self.path} would take {needed / 1e9:.1f} GB of memory, "
                f"{needed / own:,.0f} times its own size; at most "
                f"{self.settings.most_expansion:.0f} times are read. If these are your "
                "samples, save them as an .npy file."
            )
        if needed > self.most_bytes:
            raise ArrayFileError(
                f"{self.path} would take {needed / 1e9:.1f} GB of memory, and "
                f"{self.most_bytes / 1e9:.1f} GB are available. Save the array as an "
                ".npy file, which is read in parts."
            )

    def _memory(self, name: str, info: ZipInfo) -> int:
        """Return the memory of a member; refuse it if its size is another."""
        with _named(self.path, name), self.file.open(info) as member:
            header = npy_header(cast(BinaryIO, member), info.file_size)
            needed = prod(header.shape) * header.dtype.itemsize
            if needed < info.file_size - header.start:
                raise ValueError("it has more bytes than its shape")
        return memory_of(header, self.settings)

    def _array(self, name: str, info: ZipInfo) -> np.ndarray:
        with _named(self.path, name), self.file.open(info) as member:
            return np.lib.format.read_array(member, allow_pickle=False)


@contextmanager
def open_archive(
    path: Path, *, most_bytes: float = np.inf, settings: ArrayFileSettings = ArrayFileSettings()
) -> Iterator[ArrayArchive]:
    """Open an .npz archive; no array is read yet."""
    problem = irregularity(path)
    # What is not there at all is the system's to report.
    if problem and path.exists():
        raise ArrayFileError(f"{path} {problem}.")
    with BoundedFile(path) as opened:
        _require_zip(path, opened)
        with _zip_file(path, opened) as file:
            # Folders end in a slash.
            infos = [info for info in file.infolist() if info.filename[-1:] != "/"]
            _require_plain_members(path, infos, settings)
            names = {info.filename: info for info in infos}
            members = {
                name.removesuffix(SUFFIX): info
                for name, info in names.items()
                if name.endswith(SUFFIX)
            }
            others = tuple(name for name in names if not name.endswith(SUFFIX))
            yield ArrayArchive(path, members, others, file, most_bytes, settings)


def _require_plain_members(
    path: Path, infos: Sequence[ZipInfo], settings: ArrayFileSettings
) -> None:
    """Refuse members that numpy does not write."""
    if len(infos) > settings.most_members:
        raise ArrayFileError(f"{path} {NO_ARRAYS}")
    if any(info.compress_type not in COMPRESSIONS for info in infos):
        raise ArrayFileError(
            f"{path} is compressed as no .npz file is. Save its arrays with "
            "numpy.savez or numpy.savez_compressed."
        )
    if any(info.flag_bits & ENCRYPTED for info in infos):
        raise ArrayFileError(
            f"{path} is encrypted. Unpack it, and save its arrays with numpy.savez."
        )


def _zip_file(path: Path, opened: BoundedFile) -> ZipFile:
    try:
        return ZipFile(opened)
    except UNPACKING as error:
        raise ArrayFileError(
            f"{path} is damaged or was not written to its end: it begins as an .npz "
            "file and has no directory of its arrays. Write it again."
        ) from error


def _require_zip(path: Path, opened: BoundedFile) -> None:
    """Refuse what does not begin as a zip archive, and return to the beginning."""
    start = opened.read(len(ZIP_BEGINS))
    opened.seek(0)
    # An archive of no members begins with its end.
    if start != ZIP_BEGINS and start != b"PK\x05\x06":
        raise ArrayFileError(f"{path} {NO_ARRAYS} Write it with numpy.savez.")


@contextmanager
def _named(path: Path, name: str) -> Iterator[None]:
    """Name file and member in errors of damaged members."""
    try:
        yield
    except BadZipFile as error:
        raise ArrayFileError(f"{path} is damaged: {name!r} was changed.") from error
    except ValueError as error:
        raise ArrayFileError(f"{path} {NO_ARRAYS} Of {name!r}: {error}.") from error
    except UNPACKING as error:
        raise ArrayFileError(f"{path} is damaged: {name!r} cannot be read.") from error
