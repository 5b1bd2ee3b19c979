"""Where the stacks lie that a file of particles names."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manifactor._support.files import numeric_order, real_path
from manifactor._support.values import bad_values
from manifactor.cryoem.files.mrc import open_map, read_images, stated_voxel_size, voxel_size
from manifactor.cryoem.files.particles import Particles


def find_stack(name: str, beside: Path, folder: Path | None) -> Path:
    """Return the path of a stack that a file of particles names.

    RELION and cryoSPARC name it relative to the folder of the project, which is the particles'
    folder or one above it.
    """
    if folder is not None:
        return _stack_in(folder, name, beside)
    path = Path(name)
    if path.is_absolute() and path.is_file():
        return path
    for above in _search_folders(beside):
        if (above / name).is_file():
            return above / name
    raise ValueError(
        f"{beside} names the stack {name}, which is neither in its folder nor in one "
        "above it nor in the current folder. Run in the project's folder, or copy the "
        "stack, or give the folder that holds it with --datadir."
    )


def _stack_in(folder: Path, name: str, beside: Path) -> Path:
    """Return the path of a stack inside of a folder.

    The folder may be the project's, any folder on the way to the stack, or one that all stacks were
    copied to.
    """
    parts = [part for part in Path(name).parts if part != Path(name).anchor]
    for start in range(len(parts)):
        path = folder.joinpath(*parts[start:])
        if path.is_file():
            return path
    raise ValueError(
        f"{beside} names the stack {name}, and --datadir {folder} holds neither this "
        f"path nor {parts[-1] if parts else 'a file'}. Give the folder that holds the "
        "stacks."
    )


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


# Images in .mrcs or .mrc stacks and volumes in .mrc files, read block by block.
#
# Files are memory-mapped; a whole stack is never in memory.

# Endings of stacks; cryoSPARC writes its stacks as .mrc.
STACK_SUFFIXES = (".mrcs", ".mrc")


@dataclass(frozen=True)
class ImageSource:
    """Images, or volumes, that lie in files."""

    files: tuple[Path, ...]
    file: np.ndarray  # (n,): index of the file of each image
    slice: np.ndarray  # (n,): index of the image in its file; -1 where the file is one volume
    shape: tuple[int, ...]  # of an image (rows, columns) or of a volume
    pixel_size: float  # angstrom; 1 if unknown
    # 64 MiB: memory stays below 300 MB for a stack of any size, with up to four blocks alive
    # (mapped, copied, handed over, the one before).
    block_bytes: int = 2**26  # size of a block that is read at a time
    pixel_size_stated: bool = True  # whether a file states the pixel size

    def __len__(self) -> int:
        return len(self.file)

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
        """Return the rows of each block, or of so many blocks in a row."""
        rows = np.arange(len(self)) if rows is None else np.asarray(rows)
        in_file_order = np.lexsort((self.slice[rows], self.file[rows]))
        return _in_blocks(rows[in_file_order], self.shape, n_blocks * self.block_bytes)

    def _read(self, rows: np.ndarray) -> np.ndarray:
        images = np.empty((len(rows), *self.shape), dtype=np.float32)
        file = self.file[rows]
        for number in np.unique(file):
            # The images of a file come one after the other.
            start, end = np.searchsorted(file, [number, number + 1])
            slices = self.slice[rows[start:end]]
            read_images(self.files[number], slices, out=images[start:end])
        self._require_values(images, rows)
        return images

    def _require_values(self, images: np.ndarray, rows: np.ndarray) -> None:
        # One bad pixel would spread over all coefficients of the Fourier transform.
        found = bad_values(images)
        if found is None:
            return
        row = rows[found.place[0]]
        name = self.files[self.file[row]].name
        if self.slice[row] >= 0:
            name = f"number {self.slice[row] + 1} of {name}"
        if not np.isfinite(found.value):
            raise ValueError(f"images must be finite; {name} has NaN or inf values. Leave it out.")
        raise ValueError(
            f"values of images must be smaller than {found.limit:.0e}, so that their "
            f"squares are finite; {name} has a value of {found.value:.2g}, a usual "
            "mark for missing values. Leave it out, or set such pixels to the mean."
        )


@dataclass(frozen=True)
class ImageArray:
    """Images in memory, with the interface of `ImageSource`."""

    images: np.ndarray  # (n, rows, columns)
    pixel_size: float = 1.0  # angstrom
    block_bytes: int = ImageSource.block_bytes  # size of a block

    def __len__(self) -> int:
        return len(self.images)

    @property
    def files(self) -> tuple[Path, ...]:
        """None: the images are in memory."""
        return ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image (rows, columns)."""
        return self.images.shape[1:]

    @property
    def pixel_size_stated(self) -> bool:
        """Whether the pixel size is known; whoever has images in memory knows it."""
        return True

    def __getitem__(self, rows: np.ndarray) -> "ImageArray":
        """Return some of the images."""
        return replace(self, images=self.images[rows])

    def blocks(self, rows: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs (rows, images as float32)."""
        for here in self.block_rows(rows):
            yield here, self.images[here].astype(np.float32)

    def block_rows(self, rows: np.ndarray | None = None, *, n_blocks: int = 1) -> list[np.ndarray]:
        """Return the rows of each block, or of so many blocks in a row."""
        rows = np.arange(len(self)) if rows is None else np.asarray(rows)
        return _in_blocks(rows, self.shape, n_blocks * self.block_bytes)


def _in_blocks(rows: np.ndarray, shape: tuple[int, ...], block_bytes: int) -> list[np.ndarray]:
    """Divide rows into blocks whose images, in float32, have at most so many bytes."""
    image_bytes = np.dtype(np.float32).itemsize * int(np.prod(shape))
    size = max(1, block_bytes // image_bytes)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def particle_images(particles: Particles, *, folder: Path | None = None) -> ImageSource:
    """Return the images of particles.

    Every stack is checked: it must exist, be whole, and hold images of one size.
    """
    if particles.stack is None or particles.slice is None:
        raise ValueError(
            f"{particles.path} names no images (rlnImageName, or blob/path); give "
            "particles with images, or the coordinates that another program found for "
            "them."
        )
    # Checked now: a missing stack should not be found after an hour of reading.
    names, file = np.unique(particles.stack, return_inverse=True)
    files = tuple(find_stack(name, particles.path, folder) for name in names)
    shapes, lengths = zip(*(_stack_shape(path) for path in files), strict=True)
    _require_one_shape(
        files,
        shapes,
        "all images must have one size",
        unit=" pixels",
        remedy=" Bring them to one box size first.",
    )
    _require_slices(particles, files, file, np.array(lengths))
    # The file of particles knows better: headers of stacks are often left unset.
    stated = particles.pixel_size or stated_voxel_size(files[0])
    if particles.unscaled_shift is not None and stated is None:
        raise ValueError(
            f"{particles.path} states shifts in Angstrom (rlnOriginXAngst) but no "
            f"pixel size ({particles.pixel_size_label}), and neither do its stacks. "
            "Give it in Angstrom with --pixel-size."
        )
    return ImageSource(
        files, file, particles.slice, shapes[0], stated or 1.0, pixel_size_stated=stated is not None
    )


def stack_images(path: Path, *, pixel_size: float | None = None) -> ImageSource:
    """Return the images of one .mrcs or .mrc file."""
    shape, count = _stack_shape(path)
    # A stack of as many images as they are wide is possible, but rare.
    if path.suffix.lower() == ".mrc" and (count, count) == shape:
        raise ValueError(
            f"{path} looks like a volume, {_times((count, *shape))}; images are "
            "expected. If it is a stack, rename it to .mrcs; for volumes, give the "
            "folder that holds them."
        )
    stated = pixel_size or stated_voxel_size(path)
    return ImageSource(
        files=(path,),
        file=np.zeros(count, int),
        slice=np.arange(count),
        shape=shape,
        pixel_size=stated or 1.0,
        pixel_size_stated=stated is not None,
    )


def volume_series(folder: Path) -> ImageSource:
    """Return the volumes in a folder of .mrc files, in the order of their names."""
    files = tuple(sorted(folder.glob("*.mrc"), key=numeric_order))
    if not files:
        raise ValueError(
            f"the folder {folder} must hold .mrc volumes; it holds none. For samples, "
            "give a file, a folder of Parquet files or a Zarr store; for particles, "
            "their STAR or .cs file."
        )
    shapes = [_volume_shape(path) for path in files]
    _require_one_shape(files, shapes, "all volumes must have one shape")
    count = len(files)
    return ImageSource(
        files=files,
        file=np.arange(count),
        slice=np.full(count, -1),
        shape=shapes[0],
        pixel_size=voxel_size(files[0]),
    )


def _as_stack(data: np.ndarray) -> np.ndarray:
    # A stack of one image may be stored with two axes.
    return data[None] if data.ndim == 2 else data


def _stack_shape(path: Path) -> tuple[tuple[int, ...], int]:
    """Return the rows and columns of a stack's images, and how many there are."""
    with open_map(path) as stack:
        data = _as_stack(stack.data)
        if data.ndim != 3:
            raise ValueError(
                f"{path} must hold images; it holds volumes of {_times(data.shape[1:])}."
            )
        if data.dtype.kind == "c":
            raise ValueError(f"{path} must hold real images; it holds Fourier transforms.")
        return tuple(data.shape[1:]), len(data)


def _volume_shape(path: Path) -> tuple[int, ...]:
    with open_map(path) as volume:
        shape, dtype = tuple(volume.data.shape), volume.data.dtype
    # Mode 4 of the MRC format is a Fourier transform.
    if len(shape) != 3 or dtype.kind == "c":
        raise ValueError(
            f"{path} must hold a volume of real numbers; it holds {_times(shape)} of {dtype}."
        )
    return shape


def _require_one_shape(files, shapes, rule: str, *, unit="", remedy="") -> None:
    """Refuse files whose contents differ in shape."""
    for path, shape in zip(files, shapes, strict=True):
        if shape != shapes[0]:
            raise ValueError(
                f"{rule}; {files[0].name} has {_times(shapes[0])}{unit} and "
                f"{path.name} {_times(shape)}.{remedy}"
            )


def _require_slices(
    particles: Particles, files: tuple[Path, ...], file: np.ndarray, lengths: np.ndarray
) -> None:
    """Refuse images that their stack does not hold."""
    slices = np.asarray(particles.slice)
    # A negative slice comes of image 0 in a file that must count from 1.
    outside = (slices >= lengths[file]) | (slices < 0)
    beyond = np.flatnonzero(outside)
    if len(beyond):
        first = beyond[0]
        raise ValueError(
            f"{particles.path} names image {slices[first] + 1} of "
            f"{files[file[first]].name}, which holds {lengths[file[first]]}. The two "
            "do not belong together, or the stack was cut short."
        )


def _times(shape) -> str:
    return " x ".join(str(side) for side in shape)
