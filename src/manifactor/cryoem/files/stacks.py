"""Stacks of images and volumes in MRC files: found, checked, read block by block, written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra, warn_caller
from manifactor._support.files import numeric_order, real_path, require_regular_file
from manifactor._support.values import bad_values
from manifactor.cryoem.files.particles import Particles

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
    """Return what the header of an .mrc or .mrcs file says, if the file has that size."""
    # Without the known stamps, as old EMAN and cryoDRGN write files, the size must be the very one.
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

    Shapes: slices (n,), -1 for the volume; out (n, ...).
    """
    # A mapped file would have megabytes around each image in memory, and the system ends a process
    # that touches what was cut off.
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
    write_volume(path, images, pixel_size=pixel_size, stack=True)


def write_volume(
    path: Path | str, volume: np.ndarray, *, pixel_size: float, stack: bool = False
) -> None:
    """Write a volume, (depth, height, width), as a map; or as a stack of images."""
    with extra("mrcfile").new(path, overwrite=True) as file:
        # Single precision, which all programs read.
        file.set_data(np.ascontiguousarray(volume, dtype=np.float32))
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


# Images and volumes, where they lie in files.

# Endings of stacks; cryoSPARC writes its stacks as .mrc.
STACK_SUFFIXES = (".mrcs", ".mrc")
# Size of a block that is read at a time: memory stays below 300 MB for a stack of any size, with up
# to four blocks alive (read, converted, handed over, the one before).
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class ImageSource:
    """Images, or volumes, that lie in files."""

    files: tuple[Path, ...]
    file: np.ndarray  # (n,): index of the file of each image
    slice: np.ndarray  # (n,): index of the image in its file; -1 where the file is one volume
    shape: tuple[int, ...]  # of an image (rows, columns) or of a volume
    stated_size: float | None  # of a pixel, in angstrom; None if no file states it
    block_bytes: int = BLOCK_BYTES

    def __len__(self) -> int:
        return len(self.file)

    @property
    def pixel_size(self) -> float:
        """The pixel size in Angstrom; 1 if it is unknown."""
        return self.stated_size or 1.0

    def __getitem__(self, rows: np.ndarray) -> "ImageSource":
        """Return some of the images, for a worker to read."""
        used, file = np.unique(self.file[rows], return_inverse=True)
        # A worker may run in another folder, and needs no other files.
        files = tuple(self.files[number].absolute() for number in used)
        return replace(self, files=files, file=file, slice=self.slice[rows])

    def blocks(self, rows: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs (rows, images as float32), each stack from front to back."""
        for here in self.block_rows(rows):
            yield here, self._read(here)

    def block_rows(self, rows: np.ndarray | None = None, *, n_blocks: int = 1) -> list[np.ndarray]:
        """Return the rows of each block, or of `n_blocks` successive blocks together."""
        rows = np.arange(len(self)) if rows is None else np.asarray(rows)
        rows = rows[np.lexsort((self.slice[rows], self.file[rows]))]
        # In float32, which is what is read.
        size = max(1, n_blocks * self.block_bytes // (4 * prod(self.shape)))
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _read(self, rows: np.ndarray) -> np.ndarray:
        images = np.empty((len(rows), *self.shape), dtype=np.float32)
        file = self.file[rows]
        for number in np.unique(file):
            # The images of a file come one after the other.
            start, end = np.searchsorted(file, [number, number + 1])
            slices = self.slice[rows[start:end]]
            read_images(self.files[number], slices, out=images[start:end])
        # One bad pixel would spread over all coefficients of the Fourier transform.
        found = bad_values(images)
        if found is None:
            return images
        row = rows[found.place[0]]
        number = f"number {self.slice[row] + 1} of " if self.slice[row] >= 0 else ""
        name = number + self.files[self.file[row]].name
        if not np.isfinite(found.value):
            raise ValueError(f"images must be finite; {name} has NaN or inf values. Leave it out.")
        raise ValueError(
            f"values of images must be smaller than {found.limit:.0e}, so that their "
            f"squares are finite; {name} has a value of {found.value:.2g}, a usual "
            "mark for missing values. Leave it out, or set such pixels to the mean."
        )


class ImageArray(ImageSource):
    """Images in memory, (n, rows, columns), with a pixel size in Angstrom."""

    images: np.ndarray

    def __init__(
        self, images: np.ndarray, pixel_size: float | None = 1.0, block_bytes: int = BLOCK_BYTES
    ) -> None:
        """Take the images as one file with one place, so that rows are read as they come."""
        zeros = np.zeros(len(images), int)
        super().__init__((), zeros, zeros, images.shape[1:], pixel_size, block_bytes)
        object.__setattr__(self, "images", images)

    def __getitem__(self, rows: np.ndarray) -> "ImageArray":
        """Return some of the images."""
        return ImageArray(self.images[rows], self.stated_size, self.block_bytes)

    def _read(self, rows: np.ndarray) -> np.ndarray:
        return self.images[rows].astype(np.float32)


def particle_images(particles: Particles, *, folder: Path | None = None) -> ImageSource:
    """Return the images of particles, whose stacks must be whole, with images of one size."""
    if particles.stack is None or particles.slice is None:
        raise ValueError(
            f"{particles.path} names no images (rlnImageName, or blob/path); give particles with "
            "images, or the coordinates that another program found for them."
        )
    # Checked now: a missing stack should not be found after an hour of reading.
    names, file = np.unique(particles.stack, return_inverse=True)
    files = tuple(find_stack(name, particles.path, folder) for name in names)
    headers = _headers(files, "images")
    lengths = np.array([header.shape[0] for header in headers])[file]
    # A negative slice comes of image 0 in a file that must count from 1.
    beyond = np.flatnonzero((particles.slice >= lengths) | (particles.slice < 0))
    if len(beyond):
        first = beyond[0]
        raise ValueError(
            f"{particles.path} names image {particles.slice[first] + 1} of "
            f"{files[file[first]].name}, which holds {lengths[first]}. The two "
            "do not belong together, or the stack was cut short."
        )
    # The file of particles knows better: headers of stacks are often left unset.
    stated = particles.pixel_size or headers[0].voxel_size
    if particles.unscaled_shift is not None and stated is None:
        raise ValueError(
            f"{particles.path} states shifts in Angstrom (rlnOriginXAngst) but no "
            f"pixel size ({particles.pixel_size_label}), and neither do its stacks. "
            "Give it in Angstrom with --pixel-size."
        )
    return ImageSource(files, file, particles.slice, headers[0].shape[1:], stated)


def stack_images(path: Path, *, pixel_size: float | None = None) -> ImageSource:
    """Return the images of one .mrcs or .mrc file."""
    (header,) = _headers([path], "images")
    count, *shape = header.shape
    # A stack of as many images as they are wide is possible, but rare.
    if path.suffix.lower() == ".mrc" and [count, count] == shape:
        raise ValueError(
            f"{path} looks like a volume, {_times(header.shape)}; images are expected. If it is a "
            "stack, rename it to .mrcs; for volumes, give the folder that holds them."
        )
    zeros, stated = np.zeros(count, int), pixel_size or header.voxel_size
    return ImageSource((path,), zeros, np.arange(count), tuple(shape), stated)


def volume_series(folder: Path) -> ImageSource:
    """Return the volumes in a folder of .mrc files, in the order of their names."""
    files = tuple(sorted(folder.glob("*.mrc"), key=numeric_order))
    if not files:
        raise ValueError(
            f"the folder {folder} must hold pictures (.png, .jpg, .tif, ...) or .mrc volumes; it "
            "holds none. For samples, give a file, a folder of Parquet files or a Zarr store; for "
            "particles, their STAR or .cs file."
        )
    count, first = len(files), _headers(files, "volumes")[0]
    return ImageSource(
        files, np.arange(count), np.full(count, -1), first.shape, first.voxel_size or 1.0
    )


def _headers(files: Sequence[Path], what: str) -> list[MapHeader]:
    """Return the headers of stacks, or of volumes, which must have one size."""
    headers = [read_header(path) for path in files]
    for k, (path, header) in enumerate(zip(files, headers, strict=True)):
        if what == "images" and len(header.shape) == 2:
            # A single image is a stack of one.
            headers[k] = replace(header, shape=(1, *header.shape))
        # Mode 4 of the MRC format is a Fourier transform.
        if len(headers[k].shape) != 3 or header.dtype.kind == "c":
            raise ValueError(
                f"{path} must hold {what} of real numbers; it holds {_times(header.shape)} of "
                f"{header.dtype}."
            )
        size, first = (each.shape[what == "images" :] for each in (headers[k], headers[0]))
        if size != first:
            raise ValueError(
                f"all {what} must have one size; {files[0].name} has {_times(first)} and "
                f"{path.name} {_times(size)}. Bring them to one box size first."
            )
    return headers


def _times(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


# Where the stacks lie that a file of particles names.


def find_stack(name: str, beside: Path, folder: Path | None) -> Path:
    """Return the path of a stack that a file of particles names."""
    # RELION and cryoSPARC name it relative to the project, the particles' folder or one above. A
    # folder that is given may be the project's, any on the way to the stack, or one of copies.
    if folder is None:
        candidates = [above / name for above in _search_folders(beside)]
        remedy = (
            "which is neither in its folder nor in one above it nor in the current folder. Run in "
            "the project's folder, or copy the stack, or give the folder that holds it with "
            "--datadir."
        )
    else:
        parts = [part for part in Path(name).parts if part != Path(name).anchor]
        candidates = [folder.joinpath(*parts[start:]) for start in range(len(parts))]
        remedy = (
            f"and --datadir {folder} holds neither this path nor a file of this name. Give the "
            "folder that holds the stacks."
        )
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise ValueError(f"{beside} names the stack {name}, {remedy}")
    return found


def _search_folders(beside: Path) -> list[Path]:
    """Return the folders that may be the project's, the nearest first."""
    # The particles may be a link: search around the link and around its target.
    around_link, around_target = beside.absolute().parents, real_path(beside).parents
    return [*around_link, *around_target, Path.cwd()]


def image_folder(particles: Particles, *, folder: Path | None = None) -> Path | None:
    """Return the folder from which the names of all stacks lead to them."""
    if particles.stack is None:
        return None
    names = np.unique(particles.stack)
    given = [] if folder is None else [folder.absolute(), *folder.absolute().parents]
    for project in [*given, *_search_folders(particles.path)]:
        if all((project / name).is_file() for name in names):
            return project
    return None
