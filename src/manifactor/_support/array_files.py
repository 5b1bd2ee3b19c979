"""Arrays in .npy files and .npz archives: sizes are checked before they are read.

No pickled object is ever loaded.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from manifactor._support.bounded_files import BoundedFile
from manifactor._support.npy_header import NpyHeader, npy_header
from manifactor._support.regular_files import irregularity

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
