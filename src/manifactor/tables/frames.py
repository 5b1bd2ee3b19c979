"""Images from a folder of pictures, from the pages of one file, or from the frames of a film."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from manifactor._support.array_files import name_damage
from manifactor._support.errors import extra
from manifactor._support.files import numeric_order, require_regular_file
from manifactor._support.memory import require_memory, require_plausible
from manifactor.estimators.arrays import in_pixels
from manifactor.tables.columns import quoted

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp")
FILMS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv")
# Pillow's names of grey values, of up to 8 bits and of more; all others are colours.
GREY, DEEP = ("1", "L", "LA"), ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
SMALLER = "Crop the images, or make them smaller: a side of 64 pixels is often enough."
# Pillow raises errors of any class for damaged files.
ANY = (Exception,)


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
    with name_damage(file, kinds=ANY), extra("PIL.Image").open(file) as picture:
        # In a JPEG of a phone, a second page is a preview.
        count = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
        mode, shape = picture.mode, (count, *picture.size, len(picture.getbands()))
    require_plausible(file, shape, file.stat().st_size, itemsize=1)
    return count, shape[1] * shape[2], mode


def _pages(file: Path, count: int, mode: str) -> Iterator[np.ndarray]:
    """Yield the pages of a file, turned as EXIF says; what is transparent is black."""
    image, turned = extra("PIL.Image"), extra("PIL.ImageOps").exif_transpose
    with name_damage(file, kinds=ANY), image.open(file) as picture:
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
