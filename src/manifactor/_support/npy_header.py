"""Headers of .npy files, which are also those of .cs files, checked before reading."""

import warnings
from dataclasses import dataclass
from io import BytesIO
from math import prod
from typing import BinaryIO

import numpy as np

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
