"""MRC files: open stacks and volumes, write them."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra, warn_caller
from manifactor._support.files import require_regular_file
from manifactor._support.parameters import require_number

# Of the first part of a header, which all files have.
HEADER_BYTES = 1024


@dataclass(frozen=True)
class Described:
    """What the header of an MRC file describes, and whether that can be."""

    sides: tuple[int, int, int]  # columns, rows and sections
    dtype: np.dtype | None  # of the numbers, with their byte order; None if their kind is not known
    extended: int  # bytes of the header after the first 1024
    stamped: bool  # whether the file says that it is an MRC file, and of which byte order
    divisible: bool  # whether sections divide into volumes, where there are several

    @property
    def value_bytes(self) -> int:
        """Size of a number; 0 if its kind is not known."""
        return 0 if self.dtype is None else self.dtype.itemsize

    @property
    def offset(self) -> int:
        """Bytes before the numbers."""
        return HEADER_BYTES + self.extended

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.offset + prod(self.sides) * self.value_bytes

    @property
    def possible(self) -> bool:
        """Whether there can be such a file."""
        known = self.value_bytes > 0 and self.divisible
        return known and min(self.sides) > 0 and self.extended >= 0

    @property
    def in_words(self) -> str:
        """What the header describes."""
        sides = " x ".join(map(str, self.sides))
        numbers = f"{sides} numbers of {self.value_bytes} bytes"
        if self.value_bytes == 0:
            numbers = f"{sides} numbers of an unknown kind"
        if not self.divisible:
            numbers = f"{numbers} in volumes without sections"
        if self.extended < 0:
            numbers = f"{numbers} after {self.extended} bytes of further header"
        return f"the header describes {numbers}"


def open_map(path: Path):
    """Open an .mrc or .mrcs file as a memory map; see `described_map`."""
    # Checked first: mrcfile makes room for as much header as the file says it has.
    described = described_map(path)
    with warnings.catch_warnings(action="ignore"):
        # What it warns of was checked: the size says that the header is right.
        mmap = extra("mrcfile").mmap
        return mmap(path, mode="r", permissive=not described.stamped)


def described_map(path: Path) -> Described:
    """Return what the header of a whole .mrc or .mrcs file describes.

    A file without the stamp "MAP ", or with an unknown machine stamp, is taken if its size is the
    one that its header describes. Old versions of EMAN and cryoDRGN write such files.
    """
    require_regular_file(path, "an MRC file")
    size = path.stat().st_size
    described = _described(path)
    problem = _size_problem(described, size)
    if problem:
        raise ValueError(
            f"{path} is not a whole MRC file: {problem}. It may be truncated; copy it again."
        )
    assert described is not None
    if size > described.size:
        warn_caller(
            f"{path} is {size - described.size} bytes longer than its header says; "
            "they are not read.",
            RuntimeWarning,
        )
    return described


def _size_problem(described: Described | None, size: int) -> str:
    """Return how a file's size differs from what its header describes, else ""."""
    if described is None:
        return f"it has {size} bytes, and a header has {HEADER_BYTES}"
    whole = size == described.size or (described.stamped and size > described.size)
    if described.possible and whole:
        return ""
    stamp = "" if described.stamped else "it has no stamp of the format, and "
    if not described.possible:
        return f"{stamp}{described.in_words}"
    numbers = f"{described.size} in all, and the file has {size}"
    return f"{stamp}{described.in_words}, {numbers}"


def _described(path: Path) -> Described | None:
    """Return what a file's header describes; None if the file is shorter than that."""
    utils = extra("mrcfile.utils")
    with path.open("rb") as file:
        content = file.read(HEADER_BYTES)
    if len(content) < HEADER_BYTES:
        return None
    header = _header(content, "<")
    try:
        order = utils.byte_order_from_machine_stamp(header.machst)
        known = True
    except ValueError:
        order, known = "<", False
    # Some files have the stamp of the other byte order: the kind of their numbers tells, as it does
    # in mrcfile.
    orders = (order, ">" if order == "<" else "<")
    known_orders = (each for each in orders if _dtype(content, each) is not None)
    used = next(known_orders, order)
    header = _header(content, used)
    of_volumes = utils.spacegroup_is_volume_stack(int(header.ispg))
    return Described(
        sides=(int(header.nx), int(header.ny), int(header.nz)),
        dtype=_dtype(content, used),
        extended=int(header.nsymbt),
        stamped=known and used == order and bytes(header.map)[:3] == b"MAP",
        divisible=not of_volumes or 0 < int(header.mz) <= int(header.nz),
    )


def _header(content: bytes, order: str):
    kind = extra("mrcfile.dtypes").HEADER_DTYPE.newbyteorder(order)
    return np.frombuffer(content, dtype=kind).reshape(()).view(np.recarray)


def _dtype(content: bytes, order: str) -> np.dtype | None:
    """Return the kind of the numbers of a file; None if it is not known."""
    try:
        return extra("mrcfile.utils").data_dtype_from_header(_header(content, order))
    except ValueError:
        return None


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


def write_stack(path: Path | str, images: np.ndarray, *, pixel_size: float) -> None:
    """Write images as a stack that RELION and cryoSPARC read.

    Shapes: images (n, height, width).
    """
    _require_three_axes("images", images)
    _write(path, images, pixel_size, stack=True)


def write_stack_in_parts(
    path: Path, parts: Iterable[np.ndarray], *, shape: tuple[int, int, int], pixel_size: float
) -> None:
    """Write a stack that does not fit into memory, part by part.

    Shapes: parts (any, height, width).
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


def write_volume(path: Path | str, volume: np.ndarray, *, pixel_size: float) -> None:
    """Write a volume as a map.

    Shapes: volume (depth, height, width).
    """
    _require_three_axes("volume", volume)
    _write(path, volume, pixel_size, stack=False)


def _require_three_axes(name: str, data: np.ndarray) -> None:
    if np.ndim(data) != 3:
        raise ValueError(f"`{name}` must have three axes; got shape {np.shape(data)}.")


def _write(path: Path | str, data: np.ndarray, pixel_size: float, *, stack: bool) -> None:
    require_number("pixel_size", pixel_size, above=0)
    with extra("mrcfile").new(path, overwrite=True) as file:
        # Single precision, which all programs read.
        file.set_data(np.ascontiguousarray(data, dtype=np.float32))
        if stack:
            # Readers tell a stack from a volume by the space group in the header.
            file.set_image_stack()
        file.voxel_size = pixel_size


# The numbers of images in a stack, or of a volume.


def read_images(path: Path, slices: np.ndarray, *, out: np.ndarray) -> None:
    """Read images of a stack, or the volume that a file is, into an array.

    Shapes: slices (n,), out (n, ...).
    """
    if slices[0] >= 0:
        _read_runs(path, described_map(path), slices, out)
        return
    with open_map(path) as volume:
        out[:] = volume.data


def _read_runs(path: Path, stack: Described, slices: np.ndarray, out: np.ndarray) -> None:
    """Read images; those that lie one after the other together.

    They are not copied from a mapped file: the system maps megabytes around each image that is
    touched, and ends a process that touches what was cut off.
    """
    assert stack.dtype is not None
    kind, (columns, rows, _) = stack.dtype, stack.sides
    step = kind.itemsize * columns * rows
    gaps = np.flatnonzero(np.diff(slices) != 1) + 1
    starts, ends = [0, *gaps.tolist()], [*gaps.tolist(), len(slices)]
    with path.open("rb", buffering=0) as file:
        for start, end in zip(starts, ends, strict=True):
            place = out[start:end]
            same = place.dtype == kind
            images = place if same else np.empty_like(place, dtype=kind)
            file.seek(stack.offset + int(slices[start]) * step)
            if file.readinto(images.data) != images.nbytes:
                raise ValueError(f"{path} must not change while it is read; it was cut short.")
            if not same:
                place[:] = images
