"""Checks of Zarr stores and Parquet files before they are read, and of what they raise.

A store of a few bytes may claim any size: chunks that are missing count as zeros, and a column of
one value is stored once.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path

from manifactor._support.array_files import ArrayFileSettings
from manifactor._support.errors import one_line
from manifactor._support.regular_files import irregularity


def require_plausible_size(
    path: Path,
    shape: tuple[int, ...],
    stored: int,
    *,
    settings: ArrayFileSettings = ArrayFileSettings(),
) -> None:
    """Refuse a table, or a chunk of it, far larger than what is stored of it."""
    if any(side < 0 for side in shape):
        raise ValueError(f"{path} is damaged: it claims the shape {shape}.")
    # Rows without columns have numbers, too. Python's integers do not overflow.
    claimed = settings.bytes_per_number * prod(max(1, side) for side in shape)
    if claimed > settings.free + settings.most_expansion * stored:
        raise ValueError(
            f"{path} holds {stored:,} bytes and claims {claimed:,}, as numbers of "
            f"shape {shape}; it is incomplete or damaged. Write it again."
        )


def stored_bytes(folder: Path) -> int:
    """Return the size of all files in a folder; refuse what is no regular file."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            problem = irregularity(path)
            if problem:
                raise ValueError(f"{folder} must hold files; {path} {problem}.")
            total += path.stat().st_size
    return total


@contextmanager
def damage_named(path: Path, kinds: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Turn whatever zarr or pyarrow raise into an error that names the file."""
    try:
        yield
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    except kinds as error:
        reason = one_line(error) or type(error).__name__
        raise ValueError(
            f"{path} cannot be read and is probably damaged: {reason[:300]}"
        ) from error
