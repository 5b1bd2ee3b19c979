"""Pictures as samples: a folder of image files, the pages of one file, or the frames of a film.

A sample is a row of pixels, as floats that hold 8 and 16 bits as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.array_files import damage_named
from manifactor._support.errors import extra
from manifactor._support.files import numeric_order, require_regular_file
from manifactor._support.memory import require_memory, require_plausible
from manifactor.estimators.arrays import as_rows, in_pixels
from manifactor.tables.columns import listed

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp")
FILMS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv")
# Pillow's names of grey values, of up to 8 bits and of more; all others are colours.
GREY, DEEP = ("1", "L", "LA"), ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
# Pillow, OpenCV and FFmpeg raise errors of any class for damaged files.
ANY = (Exception,)


def is_frames(path: Path) -> bool:
    """Return whether this is a folder of pictures, or a file of pictures or of a film."""
    if not path.is_dir():
        return path.suffix.lower() in (*PICTURES, *FILMS)
    # Beside volumes, pictures show them.
    return bool(picture_files(path)) and not any(path.glob("*.mrc"))


def picture_files(folder: Path) -> list[Path]:
    """Return the pictures in a folder, 2 before 10; hidden files are those of a system."""
    found = [each for each in folder.glob("[!.]*") if each.suffix.lower() in PICTURES]
    return sorted(found, key=numeric_order)


def left_out(path: Path) -> tuple[str, ...]:
    """Return a note of what a folder holds beside pictures."""
    used = set(picture_files(path)) if path.is_dir() else set()
    others = sorted(each.name for each in path.glob("[!.]*") if each not in used) if used else []
    return (f"{path} also holds {listed(others, most=3)}, not fitted.",) if others else ()


def read_frames(path: Path) -> tuple[np.ndarray, tuple[int, ...], tuple[str, ...] | None]:
    """Return pictures as rows (n, n_pixels), the shape of one, and their names in a folder."""
    if path.suffix.lower() in FILMS and not path.is_dir():
        rows, shape = as_rows(_film(path))
        return rows, shape, None
    files = [_looked_at(each) for each in (picture_files(path) if path.is_dir() else [path])]
    deep, colour = (any(getattr(each, kind) for each in files) for kind in ("deep", "colour"))
    for each in files:
        if deep and not each.deep:
            other = next(each for each in files if each.deep)
            raise ValueError(
                f"all pictures must have one range of values; {other.path.name} has grey values "
                f"of more than 8 bits, and {each.path.name} has others. Convert them."
            )
    require_memory(path, sum(4.0 * each.pixels * (3 if colour else 1) for each in files))
    first, rows, names = None, None, []
    for pixels, name in (each for file in files for each in file.pages(colour=colour)):
        if first is None:
            first, count = pixels, sum(each.count for each in files)
            rows = np.empty((count, *pixels.shape), dtype=np.float32)
        if pixels.shape != first.shape:
            raise ValueError(
                f"all pictures must have one size; {names[0]} has {in_pixels(first.shape)} and "
                f"{name} has {in_pixels(pixels.shape)}. Crop or scale them."
            )
        rows[len(names)] = pixels
        names.append(name)
    rows, shape = as_rows(rows)
    return rows, shape, tuple(names) if path.is_dir() else None


@dataclass(frozen=True)
class _File:
    """A file of one picture, or of several pages."""

    path: Path
    count: int
    pixels: int  # of all pages
    deep: bool
    colour: bool

    def pages(self, *, colour: bool) -> Iterator[tuple[np.ndarray, str]]:
        """Yield the pixels of each page, with its name."""
        image, name = extra("PIL.Image"), self.path.name
        with damage_named(self.path, kinds=ANY), image.open(self.path) as picture:
            for page in range(self.count):
                picture.seek(page)
                pixels = _pixels(picture, deep=self.deep, colour=colour)
                yield pixels, name if self.count == 1 else f"{name}[{page}]"


def _looked_at(path: Path) -> _File:
    """Return what the header of a file says, which is not far more than the file holds."""
    require_regular_file(path, "a picture")
    with damage_named(path, kinds=ANY), extra("PIL.Image").open(path) as picture:
        # In a JPEG of a phone, a second page is a preview.
        count = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
        mode, (width, height) = picture.mode, picture.size
    colour = mode not in GREY + DEEP
    claimed = (count, height, width, 3 if colour else 1)
    require_plausible(path, claimed, path.stat().st_size, itemsize=1)
    return _File(path, count, count * width * height, mode in DEEP, colour)


def _pixels(picture: Any, *, deep: bool, colour: bool) -> np.ndarray:
    """Return the pixels of a page the right way up; what is transparent is black."""
    turned = extra("PIL.ImageOps").exif_transpose(picture)
    if deep:
        return np.asarray(turned)
    if turned.has_transparency_data:
        image = extra("PIL.Image")
        black = image.new("RGBA", turned.size, (0, 0, 0, 255))
        turned = image.alpha_composite(black, turned.convert("RGBA"))
    return np.asarray(turned.convert("RGB" if colour else "L"))


def _film(path: Path) -> np.ndarray:
    """Return the frames of a film, (n, height, width, 3); their number is known at the end."""
    require_regular_file(path)
    reader, frames = extra("imageio.v3"), []
    with damage_named(path, kinds=ANY):
        film = iter(reader.imiter(path))
    while True:
        with damage_named(path, kinds=ANY):
            frame = next(film, None)
        if frame is None:
            break
        frames.append(frame)
        if len(frames) % 64 == 1:
            require_memory(path, 4.0 * frame.size * (len(frames) + 64))
    if not frames:
        raise ValueError(f"{path} holds no frames. Convert it to another format, such as .mp4.")
    return np.stack(frames).astype(np.float32)
