"""Samples from a file: .npy, .npz, text, .parquet, .pkl, .cs, .zarr, pictures, films."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from manifactor._support.array_files import name_damage, open_archive
from manifactor._support.errors import extra
from manifactor._support.files import numeric_order, require_regular_file
from manifactor._support.memory import require_memory, require_plausible
from manifactor.estimators.arrays import as_rows, in_pixels
from manifactor.tables import stores
from manifactor.tables.columns import ColumnChoice, Columns, Table, quoted
from manifactor.tables.pickles import read_pickled_array
from manifactor.tables.text import DELIMITERS, layout_of, read_text

# The fields of cryoSPARC's 3D variability analysis, one for each mode.
MODE = re.compile(r"components_mode_(\d+)/value")


def read_samples(path) -> np.ndarray:
    """Read the samples in a file, one a row, as floats; all columns of numbers.

    Floats of an .npy are not loaded: they are memory-mapped and read when needed. A table may start
    with a line of column names, and its columns of text are left out. An .npz and a Zarr group must
    hold an array ``X``, or one array only. A .pkl must be a plain array, such as cryoDRGN's z; a
    .cs must hold the components of a variability analysis. The files of a folder of .parquet files
    are read one after the other. Images are rows of pixels, also those in picture files.

    Returns (n_samples, n_features).
    """
    return read_table(path).samples


def read_table(path, choice: ColumnChoice = ColumnChoice()) -> Table:
    """Read the chosen columns of a file."""
    path = Path(path)
    if stores.is_stored(path):
        return _read_stored(path, choice)
    if is_frames(path):
        return _read_array(read_frames, path, choice)
    _require_readable(path)
    return READERS[path.suffix.lower()](path, choice)


def _read_stored(path: Path, choice: ColumnChoice) -> Table:
    """Return a Zarr store, a Parquet file, or a folder of such files, as a whole."""
    stored = stores.stored_table(path, choice)
    require_memory(path, 8 * stored.n_samples * stored.shape[1])
    if path.is_dir():
        return Table(stored.read(0, stored.n_samples), stored.columns)
    samples = stores.open_store(path).read(0, stored.n_samples, stored.columns.numbers)
    return Table(samples.astype(np.float64, copy=False), stored.columns)


def column_names(path) -> list[str]:
    """Return the names of a table's columns; empty if it has none."""
    path = Path(path)
    if path.suffix.lower() in DELIMITERS:
        return list(layout_of(path).names or ())
    if path.suffix.lower() != ".parquet" and not stores.is_stored(path):
        return []
    return list(stores.open_store(path).names or ())


def read_like(path, columns: Columns) -> np.ndarray:
    """Return the samples of another file in the same columns and scale."""
    table = read_table(path, ColumnChoice() if columns.image else columns.choice)
    samples, names = table.samples, table.columns.names
    if columns.image and table.columns.image != columns.image:
        raise ValueError(
            f"{path} must hold images of {in_pixels(columns.image)}, as the run's input; got "
            f"{in_pixels(table.columns.image or (1, samples.shape[1]))}."
        )
    # By name: another file may have them in another order.
    if columns.names is not None and names is not None:
        samples = samples[:, [names.index(name) for name in columns.names]]
    return columns.scaled(samples)


def _require_readable(path: Path) -> None:
    """Refuse what is missing, a folder, of an unknown format or empty."""
    require_regular_file(path)
    if path.suffix.lower() not in READERS:
        raise ValueError(
            f"the input must end in one of {', '.join(READERS)}, be particles (.star, .cs, .mrcs, "
            ".mrc), pictures (a folder, .tif, .gif), a film (.mp4, .avi, ...), a Zarr store, a "
            f"folder of .parquet files, or a folder of .mrc volumes; got {path.name}."
        )
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")


def array_name(path: Path) -> str:
    """Return the name of the array in an .npz that holds the samples."""
    with open_archive(path) as archive:
        return stores.sample_array(path, list(archive.members))


def read_npz(path: Path) -> np.ndarray:
    """Read the array in an .npz that holds the samples."""
    name = array_name(path)
    with open_archive(path) as archive:
        # Numbers may be converted to double precision, beside those that were read.
        return archive.read(name, itemsize=16)[name]


def _read_components(path: Path) -> np.ndarray:
    """Return the components of a 3D variability analysis, one column a mode."""
    table = stores.read_npy(path)
    modes = filter(None, map(MODE.fullmatch, table.dtype.names or ()))
    # By number: as text, mode 10 would come before mode 2.
    fields = [mode[0] for mode in sorted(modes, key=lambda mode: int(mode[1]))]
    if not fields:
        raise ValueError(
            f"{path} must hold fields components_mode_0/value, "
            "components_mode_1/value, ... of a 3D variability analysis; it holds none."
        )
    return np.column_stack([table[field] for field in fields])


def _read_latents(path: Path) -> np.ndarray:
    """Return pickled coordinates; refuse the CTF of cryoDRGN, which is a pickled array, too.

    Its nine columns are box size, pixel size, two defoci, their angle, voltage, spherical
    aberration, amplitude contrast and phase shift.
    """
    X = read_pickled_array(path)
    if X.shape[1:] != (9,) or not len(X):
        return X
    box, pixel, voltage, contrast = X[:, [0, 1, 5, 7]].T
    whole_box = (box == box[0]).all() and box[0] >= 2 and box[0] % 1 == 0
    # In kV; microscopes have 80 to 300, and no coordinate has such a mean.
    in_kilovolts = voltage.min() >= 50 and voltage.max() <= 1500
    if whole_box and in_kilovolts and pixel.min() > 0 and 0 <= contrast.min() <= 1:
        raise ValueError(
            f"{path} holds the CTF of every image, as cryoDRGN's ctf.pkl does, and no coordinates. "
            "Give z.N.pkl of the training folder, where N is the last epoch."
        )
    return X


def _read_array(read: Callable[[Path], np.ndarray], path: Path, choice: ColumnChoice) -> Table:
    """Return the chosen columns of an array as floats."""
    X = read(path)
    image = stores.require_table(path, X)
    X = as_rows(X)[0]
    mapped = isinstance(X, np.memmap)
    if not mapped or X.dtype not in (np.float32, np.float64):
        # Single precision holds the integers of images, of 16 bits at most, as they are.
        held = image is not None or (mapped and X.dtype.kind != "f")
        X = X.astype(stores.float_type(X.dtype) if held else np.float64, copy=False)
    columns = Columns(choice.numbers(None, X.shape[1]), X.shape[1]).pixels_of(image)
    # Without a selection, a memory-mapped file is not read.
    every = len(columns.numbers) == columns.total
    return Table(X if every else X[:, columns.numbers], columns)


READERS: dict[str, Callable[[Path, ColumnChoice], Table]] = {
    ".npy": partial(_read_array, stores.read_npy),
    ".npz": partial(_read_array, read_npz),
    ".pkl": partial(_read_array, _read_latents),
    ".cs": partial(_read_array, _read_components),
    **dict.fromkeys(DELIMITERS, read_text),
    ".parquet": _read_stored,
}


# Images from a folder of pictures, from the pages of one file, or from the frames of a film.

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp")
FILMS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv")
# Pillow's names of grey values, of up to 8 bits and of more; all others are colours.
GREY, DEEP = ("1", "L", "LA"), ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
SMALLER = "Crop the images, or make them smaller: a side of 64 pixels is often enough."


def is_frames(path: Path) -> bool:
    """Return whether this is a folder of pictures, or a file of pictures or of a film."""
    if not path.is_dir():
        return path.suffix.lower() in (*PICTURES, *FILMS)
    # Beside volumes, pictures show them.
    return bool(_files(path)) and not any(path.glob("*.mrc"))


def _files(path: Path) -> list[Path]:
    """Return the pictures in a folder, 2 before 10; hidden files are those of a system."""
    if not path.is_dir():
        return [path]
    pictures = [file for file in path.glob("[!.]*") if file.suffix.lower() in PICTURES]
    return sorted(pictures, key=numeric_order)


def left_out(folder: Path) -> tuple[str, ...]:
    """Return a note of what a folder holds beside pictures."""
    pictures = {file.name for file in _files(folder)}
    others = sorted({file.name for file in folder.glob("[!.]*")} - pictures)
    return (f"{folder} also holds {quoted(others, most=3)}, not fitted.",) if others else ()


def frame_names(folder: Path) -> tuple[str, ...]:
    """Return the names of all pictures in a folder; pages are numbered from 0."""
    counts = {file.name: _header(file)[0] for file in _files(folder)}
    pages = [(name, count, page) for name, count in counts.items() for page in range(count)]
    return tuple(name if count == 1 else f"{name}[{page}]" for name, count, page in pages)


def read_frames(path: Path) -> np.ndarray:
    """Return pictures as floats, (n, height, width) or, if any has colours, with 3 channels."""
    if path.suffix.lower() in FILMS and not path.is_dir():
        return _film(path)
    headers = {file: _header(file) for file in _files(path)}
    modes = {mode for _, _, mode in headers.values()}
    if not modes.isdisjoint(DEEP) and not modes <= set(DEEP):
        raise ValueError(
            f"all pictures of {path} must have one range of values; some have grey values of more "
            "than 8 bits, and others have not. Convert them."
        )
    colour = not modes <= {*GREY, *DEEP}
    n_pixels = sum(count * pixels for count, pixels, _ in headers.values())
    require_memory(path, (12.0 if colour else 4.0) * n_pixels, SMALLER)
    images, row, first = np.empty((0,), np.float32), 0, ""
    for file, (count, _, mode) in headers.items():
        for pixels in _pages(file, count, mode if mode in DEEP else "RGB" if colour else "L"):
            if not row:
                total = sum(count for count, _, _ in headers.values())
                images, first = np.empty((total, *pixels.shape), np.float32), file.name
            if pixels.shape != images.shape[1:]:
                raise ValueError(
                    f"all pictures must have one size; {first} has {in_pixels(images.shape[1:])} "
                    f"and {file.name} has {in_pixels(pixels.shape)}. Crop or scale them."
                )
            images[row], row = pixels, row + 1
    return images


def _header(file: Path) -> tuple[int, int, str]:
    """Return the number of pages, the pixels of one, and their mode, as a file claims them."""
    require_regular_file(file, "a picture")
    with name_damage(file, kinds=stores.ANY), extra("PIL.Image").open(file) as picture:
        # In a JPEG of a phone, a second page is a preview.
        count = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
        mode, shape = picture.mode, (count, *picture.size, len(picture.getbands()))
    require_plausible(file, shape, file.stat().st_size, itemsize=1)
    return count, shape[1] * shape[2], mode


def _pages(file: Path, count: int, mode: str) -> Iterator[np.ndarray]:
    """Yield the pages of a file, turned as EXIF says; what is transparent is black."""
    image, turned = extra("PIL.Image"), extra("PIL.ImageOps").exif_transpose
    with name_damage(file, kinds=stores.ANY), image.open(file) as picture:
        for page in range(count):
            picture.seek(page)
            shown = turned(picture)
            if mode not in DEEP and shown.has_transparency_data:
                black = image.new("RGBA", shown.size, (0, 0, 0, 255))
                shown = image.alpha_composite(black, shown.convert("RGBA"))
            yield np.asarray(shown if mode in DEEP else shown.convert(mode))


def _film(path: Path) -> np.ndarray:
    """Return the frames of a film, (n, height, width, 3)."""
    require_regular_file(path)
    film, frames = extra("cv2").VideoCapture(str(path)), []
    while (read := film.read())[0]:
        # OpenCV has blue first.
        frames.append(read[1][..., ::-1])
        # How many there are is known at the end.
        if len(frames) % 64 == 1:
            require_memory(path, 4.0 * frames[0].size * (len(frames) + 64), SMALLER)
    if not frames:
        raise ValueError(f"{path} has no frames that OpenCV can read. Convert it to .mp4.")
    return np.array(frames, dtype=np.float32)
