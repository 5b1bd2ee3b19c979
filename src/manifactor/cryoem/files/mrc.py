"""MRC files: headers that agree with their files, images of stacks, volumes; written by mrcfile."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, prod
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra, warn_caller
from manifactor._support.files import require_regular_file

# Bytes of the first part of a header, which all files have.
HEADER_BYTES = 1024


@dataclass(frozen=True)
class MapHeader:
    """What the header of a whole MRC file says."""

    # (n, rows, columns) for a stack, (rows, columns) for one image; a volume has three axes, and
    # several volumes have four
    shape: tuple[int, ...]
    dtype: np.dtype  # of the numbers, with their byte order
    offset: int  # bytes before the numbers
    voxel_size: float | None  # angstrom; None if it is not stated


def read_header(path: Path) -> MapHeader:
    """Return what the header of an .mrc or .mrcs file says, if the file has that size.

    A file without the stamp "MAP ", or with an unknown machine stamp, is read if its size is the
    one that its header describes. Old versions of EMAN and cryoDRGN write such files.
    """
    require_regular_file(path, "an MRC file")
    utils = extra("mrcfile.utils")
    size = path.stat().st_size
    with path.open("rb") as file:
        content = file.read(HEADER_BYTES)
    if len(content) < HEADER_BYTES:
        raise _damaged(path, f"it has {size} bytes, and a header has {HEADER_BYTES}")
    header, dtype, stamped = _parsed(path, content)
    sides = int(header.nx), int(header.ny), int(header.nz)
    offset = HEADER_BYTES + int(header.nsymbt)
    n_volumes = int(header.mz) if utils.spacegroup_is_volume_stack(int(header.ispg)) else 1
    possible = min(*sides, n_volumes) > 0 and n_volumes <= sides[2] and offset >= HEADER_BYTES
    described = offset + prod(sides) * dtype.itemsize
    surplus = size - described
    if not possible or surplus < 0 or (surplus and not stamped):
        raise _damaged(
            path,
            f"its header describes {' x '.join(map(str, sides))} numbers of kind {header.mode} "
            f"after {offset} bytes, {described} bytes in all, and the file has {size}",
        )
    if surplus:
        warn_caller(
            f"{path} is {surplus} bytes longer than its header says; they are not read.",
            RuntimeWarning,
        )
    # Programs that do not know it write 0, and some old ones write no intervals.
    length, intervals = float(header.cella.x), int(header.mx)
    voxel_size = length / intervals if intervals > 0 else 0.0
    shape = tuple(int(side) for side in utils.data_shape_from_header(header))
    return MapHeader(shape, dtype, offset, voxel_size if 0 < voxel_size < inf else None)


def _damaged(path: Path, problem: str) -> ValueError:
    return ValueError(
        f"{path} is not a whole MRC file: {problem}. It may be truncated; copy it again."
    )


def _parsed(path: Path, content: bytes):
    """Return the header, the kind of its numbers, and whether the file is stamped as MRC."""
    utils, kind = extra("mrcfile.utils"), extra("mrcfile.dtypes").HEADER_DTYPE
    # Some files have the stamp of the other byte order. The kind of their numbers is possible in
    # one order only, by which mrcfile decides too.
    headers = {
        order: np.frombuffer(content, kind.newbyteorder(order)).reshape(()).view(np.recarray)
        for order in "<>"
    }
    try:
        stated = utils.byte_order_from_machine_stamp(headers["<"].machst)
    except ValueError:
        stated = ""
    for order in sorted(headers, key=lambda order: order != stated):
        header = headers[order]
        try:
            dtype = utils.data_dtype_from_header(header)
        except ValueError:
            continue
        return header, dtype, order == stated and bytes(header.map)[:3] == b"MAP"
    raise _damaged(path, f"its numbers are of kind {headers[stated or '<'].mode}, which is unknown")


def read_images(path: Path, slices: np.ndarray, *, out: np.ndarray) -> None:
    """Read images of a stack, or the volume that a file is, into an array.

    They are not copied from a mapped file: the system maps megabytes around each image that is
    touched, and ends a process that touches what was cut off.

    Shapes: slices (n,), -1 for the volume; out (n, ...).
    """
    header = read_header(path)
    step = header.dtype.itemsize * prod(out.shape[1:])
    # Images that lie one after the other are read together.
    gaps = np.flatnonzero(np.diff(slices) != 1) + 1
    with path.open("rb") as file:
        for run in np.split(np.arange(len(slices)), gaps):
            part = out[run[0] : run[-1] + 1]
            same = part.dtype == header.dtype
            images = part if same else np.empty_like(part, dtype=header.dtype)
            file.seek(header.offset + max(int(slices[run[0]]), 0) * step)
            if file.readinto(images.data) != images.nbytes:
                raise ValueError(f"{path} must not change while it is read; it was cut short.")
            if not same:
                part[:] = images


def write_stack(path: Path | str, images: np.ndarray, *, pixel_size: float) -> None:
    """Write images, (n, height, width), as a stack that RELION and cryoSPARC read."""
    _write(path, images, pixel_size, stack=True)


def write_volume(path: Path | str, volume: np.ndarray, *, pixel_size: float) -> None:
    """Write a volume, (depth, height, width), as a map."""
    _write(path, volume, pixel_size, stack=False)


def _write(path: Path | str, data: np.ndarray, pixel_size: float, *, stack: bool) -> None:
    with extra("mrcfile").new(path, overwrite=True) as file:
        # Single precision, which all programs read.
        file.set_data(np.ascontiguousarray(data, dtype=np.float32))
        if stack:
            # Readers tell a stack from a volume by the space group in the header.
            file.set_image_stack()
        file.voxel_size = pixel_size


def write_stack_in_parts(
    path: Path, parts: Iterable[np.ndarray], *, shape: tuple[int, int, int], pixel_size: float
) -> None:
    """Write a stack that does not fit into memory from parts, (any, height, width)."""
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
