"""Rows of memory-mapped arrays, read from their files.

A page of a memory map that its file no longer has ends the process. What is read from the file
itself is checked, and cannot change later.
"""

import mmap
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MappedSettings:
    """Settings of `in_memory`."""

    # Bytes up to which samples are read at once: a fit of them takes more memory.
    most_read: int = 2**28


def in_memory(samples: np.ndarray, *, settings: MappedSettings = MappedSettings()) -> np.ndarray:
    """Return samples that no other program can change, unless they are very many."""
    if not isinstance(samples, np.memmap) or samples.nbytes > settings.most_read:
        return samples
    return read_rows(samples, 0, len(samples))


def read_rows(array: np.memmap, start: int, stop: int) -> np.ndarray:
    """Read rows of a memory-mapped array, and refuse a file that became shorter."""
    # A slice does not know where in the file it starts, and rows in Fortran's order are not
    # together.
    if not isinstance(array.base, mmap.mmap) or not array.flags.c_contiguous:
        return np.array(array[start:stop])
    shape = (min(stop, len(array)) - start, *array.shape[1:])
    before = start * array.nbytes // max(1, len(array))
    with open(str(array.filename), "rb") as file:
        found = np.fromfile(file, array.dtype, int(np.prod(shape)), offset=array.offset + before)
    if found.size < np.prod(shape):
        raise ValueError(
            f"{array.filename} became shorter while it was read. Repeat the command "
            "when no other program writes it."
        )
    return found.reshape(shape)
