"""Images in .mrcs stacks and volumes in .mrc files: memory-mapped, a block at a time, never a whole stack in memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra
from manifactor.cryoem.particles import Particles

BLOCK_BYTES = 2**26  # of images read at a time


@dataclass(frozen=True)
class ImageSource:
    """Images, or volumes, that lie in files.

    Attributes
    ----------
    files : tuple of Path
    file : ndarray of int of shape (n,)
        The file of each image.
    slice : ndarray of int of shape (n,)
        Its place in that file; -1 where the file is one volume.
    shape : tuple of int
        Of an image (rows, columns) or of a volume.
    pixel_size : float
        Angstrom; 1 where nothing tells.
    """

    files: tuple[Path, ...]
    file: np.ndarray
    slice: np.ndarray
    shape: tuple[int, ...]
    pixel_size: float

    def __len__(self) -> int:
        return len(self.file)

    def blocks(
        self, rows: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (rows, images as float32), file by file, so that each stack is read from front to back."""
        rows = np.arange(len(self)) if rows is None else np.asarray(rows)
        rows = rows[np.lexsort((self.slice[rows], self.file[rows]))]
        size = max(1, BLOCK_BYTES // (4 * int(np.prod(self.shape))))
        for start in range(0, len(rows), size):
            yield rows[start : start + size], self._read(rows[start : start + size])

    def _read(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), *self.shape), dtype=np.float32)
        file = self.file[rows]
        for number in np.unique(file):
            here = np.flatnonzero(file == number)
            with open_map(
                self.files[number]
            ) as stack:  # opened anew: pages read before are given back
                data = (
                    stack.data
                    if self.slice[rows[here[0]]] < 0
                    else _stacked(stack.data)[self.slice[rows[here]]]
                )
                out[here] = data
        bad = ~np.isfinite(out.reshape(len(rows), -1)).all(axis=1)
        if bad.any():
            worst = rows[int(bad.argmax())]
            number = (
                "" if self.slice[worst] < 0 else f"number {self.slice[worst] + 1} of "
            )
            name = self.files[self.file[worst]].name
            raise ValueError(
                f"images must be finite; {number}{name} has NaN or inf values. Leave it out."
            )
        return out


@dataclass(frozen=True)
class ImageArray:
    """Images that lie in memory, read as those of an `ImageSource` are.

    Attributes
    ----------
    images : ndarray of shape (n, rows, columns)
    pixel_size : float
        Angstrom.
    """

    images: np.ndarray
    pixel_size: float = 1.0

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image (rows, columns)."""
        return self.images.shape[1:]

    def blocks(
        self, rows: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (rows, images as float32)."""
        rows = np.arange(len(self)) if rows is None else np.asarray(rows)
        size = max(1, BLOCK_BYTES // (4 * int(np.prod(self.shape))))
        for start in range(0, len(rows), size):
            here = rows[start : start + size]
            yield here, self.images[here].astype(np.float32)


def open_map(path: Path):
    """An .mrc or .mrcs file, memory-mapped."""
    mrcfile = extra("mrcfile")
    try:
        return mrcfile.mmap(path, mode="r", permissive=False)
    except OSError:
        raise
    except ValueError as error:
        raise ValueError(
            f"{path} is not a whole MRC file: {' '.join(str(error).split())}. It may be truncated; copy it again."
        ) from error


def particle_images(particles: Particles) -> ImageSource:
    """The images of particles, after checking that every stack is there, is whole, and holds images of one size."""
    if particles.stack is None or particles.slice is None:
        raise ValueError(
            f"{particles.path} names no images (rlnImageName, or blob/path); give particles with images, or the "
            "coordinates that another program found for them."
        )
    names, file = np.unique(particles.stack, return_inverse=True)
    files = tuple(_find(name, particles.path) for name in names)
    shapes, sizes = zip(*(_stack_shape(path) for path in files), strict=True)
    if len(set(shapes)) > 1:
        other = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
        raise ValueError(
            f"all images must have one size; {files[0].name} has {_by(shapes[0])} pixels and {files[other].name} "
            f"{_by(shapes[other])}. Bring them to one box size first."
        )
    beyond = np.flatnonzero(
        (particles.slice >= np.array(sizes)[file]) | (particles.slice < 0)
    )
    if len(beyond):
        i = beyond[0]
        raise ValueError(
            f"{particles.path} names image {particles.slice[i] + 1} of {files[file[i]].name}, which holds "
            f"{sizes[file[i]]}. The two do not belong together, or the stack was cut short."
        )
    return ImageSource(
        files,
        file,
        particles.slice,
        shapes[0],
        particles.pixel_size or _voxel_size(files[0]),
    )


def stack_images(path: Path) -> ImageSource:
    """The images of one .mrcs file."""
    shape, size = _stack_shape(path)
    return ImageSource(
        (path,), np.zeros(size, int), np.arange(size), shape, _voxel_size(path)
    )


def volume_series(folder: Path) -> ImageSource:
    """The volumes in a folder of .mrc files, in the order of their names."""
    files = tuple(sorted(folder.glob("*.mrc"), key=_number_order))
    if not files:
        raise ValueError(f"{folder} must hold .mrc volumes; it holds none.")
    shapes = [_volume_shape(path) for path in files]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is not None:
        raise ValueError(
            f"all volumes must have one shape; {files[0].name} has {_by(shapes[0])} and {files[odd].name} "
            f"{_by(shapes[odd])}."
        )
    return ImageSource(
        files,
        np.arange(len(files)),
        np.full(len(files), -1),
        shapes[0],
        _voxel_size(files[0]),
    )


def _number_order(path: Path) -> tuple:
    """Names in the order of the numbers in them: vol_2 before vol_10."""
    return tuple(
        int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)
    )


def _stacked(data: np.ndarray) -> np.ndarray:
    return data if data.ndim == 3 else data[None]


def _stack_shape(path: Path) -> tuple[tuple[int, ...], int]:
    """Rows and columns of a stack's images, and how many there are."""
    with open_map(path) as stack:
        data = _stacked(stack.data)
        if data.dtype.kind == "c":
            raise ValueError(
                f"{path} must hold real images; it holds Fourier transforms."
            )
        return tuple(data.shape[1:]), len(data)


def _volume_shape(path: Path) -> tuple[int, ...]:
    with open_map(path) as volume:
        shape, kind = tuple(volume.data.shape), volume.data.dtype
    if len(shape) != 3 or kind.kind == "c":
        raise ValueError(
            f"{path} must hold a volume of real numbers; it holds {_by(shape)} of {kind}."
        )
    return shape


def _voxel_size(path: Path) -> float:
    with open_map(path) as file:
        size = float(file.voxel_size.x)
    return size if size > 0 else 1.0


def _find(name: str, beside: Path) -> Path:
    """A stack that is named relative to the particles' folder or, as RELION and cryoSPARC do, to one above it."""
    path = Path(name)
    if path.is_absolute() and path.is_file():
        return path
    # a link to the particles counts where it lies and where it leads
    for folder in [*beside.absolute().parents, *beside.resolve().parents, Path.cwd()]:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(
        f"{beside} names the stack {name}, which is neither in its folder nor in one above, nor where you are. Run in "
        "the project's folder, or copy the stack."
    )


def _by(shape) -> str:
    return " x ".join(str(side) for side in shape)
