"""MRC files: open stacks and volumes, write them."""

import warnings
from collections.abc import Iterable
from math import isfinite, prod
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra
from manifactor._support.parameters import require_number


def open_map(path: Path):
    """Open an .mrc or .mrcs file as a memory map.

    A file without the stamp "MAP ", or with an unknown machine stamp, is opened if its
    size is the one that its header describes. Old versions of EMAN and cryoDRGN write
    such files.
    """
    mrcfile = extra("mrcfile")
    try:
        return mrcfile.mmap(path, mode="r", permissive=False)
    except OSError:
        # A file that cannot be opened is no damaged file.
        raise
    except ValueError as error:
        reason = " ".join(str(error).split())
    problem = _size_problem(path)
    if problem:
        why = "; ".join(dict.fromkeys([reason, problem]))
        raise ValueError(
            f"{path} is not a whole MRC file: {why}. It may be truncated; copy it "
            "again."
        )
    with warnings.catch_warnings(action="ignore"):
        # What it warns of was checked: the size says that the header is right.
        return mrcfile.mmap(path, mode="r", permissive=True)


def _size_problem(path: Path) -> str:
    """Return how a file's size differs from what its header describes, else ""."""
    mrcfile = extra("mrcfile")
    size = path.stat().st_size
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            mrcfile.open(path, mode="r", permissive=True, header_only=True) as file,
        ):
            header = file.header
        dtype = mrcfile.utils.data_dtype_from_header(header)
    except ValueError as error:
        return " ".join(str(error).split())
    sides = [int(header[name]) for name in ("nx", "ny", "nz")]
    numbers = f"{' x '.join(map(str, sides))} numbers of {dtype.itemsize} bytes"
    if min(sides) <= 0:
        return f"the header describes {numbers}"
    expected = header.nbytes + int(header.nsymbt) + prod(sides) * dtype.itemsize
    if size == expected:
        return ""
    return f"the header describes {numbers}, {expected} in all, and the file has {size}"


def stated_voxel_size(path: Path) -> float | None:
    """Return the voxel size that a file states, in Angstrom; None if it states none."""
    with open_map(path) as file:
        length, intervals = float(file.header.cella.x), int(file.header.mx)
    # Programs that do not know it write 0, and some old ones write no intervals.
    size = length / intervals if intervals > 0 else 0.0
    return size if isfinite(size) and size > 0 else None


def voxel_size(path: Path) -> float:
    """Return the voxel size that a file states, in Angstrom; 1 if it states none."""
    return stated_voxel_size(path) or 1.0


def write_stack(
    path: Path | str,
    images: np.ndarray,
    *,
    pixel_size: float,
) -> None:
    """Write images as a stack that RELION and cryoSPARC read.

    Parameters
    ----------
    path : Path or str
    images : ndarray of shape (n, height, width)
    pixel_size : float
        In Angstrom.
    """
    _require_three_axes("images", images)
    _write(path, images, pixel_size, stack=True)


def write_stack_in_parts(
    path: Path,
    parts: Iterable[np.ndarray],
    *,
    shape: tuple[int, int, int],
    pixel_size: float,
) -> None:
    """Write a stack that does not fit into memory, part by part.

    Parameters
    ----------
    path : Path
    parts : iterable of ndarray of shape (any, height, width)
        Consecutive images of the stack, read once.
    shape : tuple of int
        Number, height and width of all images.
    pixel_size : float
        In Angstrom.
    """
    require_number("pixel_size", pixel_size, above=0)
    mrcfile = extra("mrcfile")
    with mrcfile.new_mmap(path, shape=shape, mrc_mode=2, overwrite=True) as file:
        file.set_image_stack()
        file.voxel_size = pixel_size
        # Minimum, maximum and mean are not known yet; programs do not need them.
        file.reset_header_stats()
        start = file.data.offset
    # Written as a plain file: pages of a memory map would count as memory in use.
    with path.open("r+b") as stack:
        stack.seek(start)
        for part in parts:
            stack.write(np.ascontiguousarray(part, dtype=np.float32).data)


def write_volume(
    path: Path | str,
    volume: np.ndarray,
    *,
    pixel_size: float,
) -> None:
    """Write a volume as a map.

    Parameters
    ----------
    path : Path or str
    volume : ndarray of shape (depth, height, width)
        Axes z, y, x.
    pixel_size : float
        In Angstrom.
    """
    _require_three_axes("volume", volume)
    _write(path, volume, pixel_size, stack=False)


def _require_three_axes(name: str, data: np.ndarray) -> None:
    if np.ndim(data) != 3:
        raise ValueError(f"`{name}` must have three axes; got shape {np.shape(data)}.")


def _write(
    path: Path | str,
    data: np.ndarray,
    pixel_size: float,
    *,
    stack: bool,
) -> None:
    require_number("pixel_size", pixel_size, above=0)
    with extra("mrcfile").new(path, overwrite=True) as file:
        # Single precision, which all programs read.
        file.set_data(np.ascontiguousarray(data, dtype=np.float32))
        if stack:
            # Readers tell a stack from a volume by the space group in the header.
            file.set_image_stack()
        file.voxel_size = pixel_size
