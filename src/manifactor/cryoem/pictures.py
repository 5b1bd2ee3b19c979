"""Pictures of mean images and volumes: strips and grids in one grey scale, as PNG."""

import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.values import ceil_div

# Pixels of the shortest side of an image, at least, and between two images.
MIN_TILE, GAP = 96, 2
# Grey levels of the background, and of an empty bin, which must differ from most images.
PAPER, BLANK = 255, 225
# These become black and white: a few outlying pixels must not take the contrast from all others.
PERCENTILES = (0.5, 99.5)


def projections(volumes: np.ndarray) -> np.ndarray:
    """Return images of volumes, seen along the axis that shows most of their change.

    Seen from the side, z points up.

    Shapes: volumes (n, z, y, x) -> (n, height, width).
    """
    # Rows of an image go down and z goes up, hence the reversal.
    along_y = volumes.mean(axis=2)[:, ::-1]
    along_x = volumes.mean(axis=3)[:, ::-1]
    along_z = volumes.mean(axis=1)
    return max(along_y, along_x, along_z, key=lambda images: float(images.var(axis=0).sum()))


def strip(images: np.ndarray, *, captions: Sequence[str] | None = None) -> np.ndarray:
    """Return a picture, uint8, of images in rows of at most twelve, in one grey scale.

    Shapes: images (n, height, width).
    """
    tiles = enlarged(require_images(images, 3), MIN_TILE)
    if captions is not None:
        boxes = _captions("captions", captions, len(tiles), tiles.shape[2])
        tiles = np.concatenate([tiles, boxes], axis=1)
    # Rows of about equal length look better than full ones with a short last.
    n_rows = ceil_div(len(tiles), 12)
    n_columns = ceil_div(len(tiles), n_rows)
    missing = _paper(n_rows * n_columns - len(tiles), *tiles.shape[1:])
    cells = np.concatenate([tiles, missing]).reshape(n_rows, n_columns, *tiles.shape[1:])
    return _framed(_mosaic(cells))


def grid_picture(
    images: np.ndarray, *, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> np.ndarray:
    """Return a picture, uint8, of images on the grid of two factors.

    All images have one grey scale.

    Shapes: images (n_rows, n_columns, height, width).
    """
    n_rows, n_columns, height, width = require_images(images, 4).shape
    # All images of the grid in one call: the grey scale is that of all of them.
    tiles = enlarged(np.reshape(images, (-1, height, width)), MIN_TILE)
    _, height, width = tiles.shape
    picture = _mosaic(tiles.reshape(n_rows, n_columns, height, width))
    if columns is not None:
        below = _captions("columns", columns, n_columns, width)
        picture = np.concatenate([picture, _mosaic(below[None])])
    if rows is not None:
        left = _mosaic(_captions("rows", rows, n_rows, MIN_TILE, height)[:, None])
        # Empty where the captions of the rows meet those of the columns.
        corner = _paper(len(picture) - len(left), left.shape[1])
        picture = np.concatenate([np.concatenate([left, corner]), picture], axis=1)
    return _framed(picture)


def write_png(path: Path | str, picture: np.ndarray) -> None:
    """Write a picture of `strip` or `grid_picture`."""
    Path(path).write_bytes(png_bytes(picture))


def png_bytes(picture: np.ndarray) -> bytes:
    """Return a picture as the bytes of a .png file."""
    buffer = io.BytesIO()
    image = extra("PIL.Image").fromarray(picture)
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def as_grey(images: np.ndarray) -> np.ndarray:
    """Return images, uint8, in one grey scale from their percentile .5 to 99.5.

    Constant images, which would distort the scale, are left blank.
    """
    blank = constant_images(images)
    if blank.all():
        return np.full(images.shape, BLANK, dtype=np.uint8)
    low, high = np.percentile(images[~blank], PERCENTILES)
    return _levels(images, low, high, blank)


def each_as_grey(images: np.ndarray) -> np.ndarray:
    """Return images, uint8, each in a grey scale of its own, as `as_grey` has it.

    For large images, the scale is that of pixels on a grid.
    """
    # Of 2500 pixels a dozen lie beyond each percentile: in pure noise, grey levels are right to 3
    # percent.
    step = max(1, math.isqrt(images.shape[1] * images.shape[2] // 2500))
    some = images[:, ::step, ::step].reshape(len(images), -1)
    low, high = np.percentile(some, PERCENTILES, axis=1)[:, :, None, None]
    return _levels(images, low, high, constant_images(images))


def _levels(images: np.ndarray, low, high, blank: np.ndarray) -> np.ndarray:
    """Return grey levels, from black at `low` to white at `high`."""
    kind = np.result_type(images, np.float32)
    low, high = np.asarray(low, kind), np.asarray(high, kind)
    # Percentiles may coincide where nearly all pixels are equal.
    high = np.maximum(high, np.nextafter(low, np.inf, dtype=kind))
    levels = np.clip(images, low, high, dtype=kind)
    levels -= low
    levels /= high - low
    levels *= 255
    grey = np.rint(levels, out=levels).astype(np.uint8)
    grey[blank] = BLANK
    return grey


def constant_images(images: np.ndarray) -> np.ndarray:
    """Return which of the images, (n, height, width), have one value only."""
    return np.ptp(images, axis=(1, 2)) == 0


def enlarged(images: np.ndarray, min_side: int) -> np.ndarray:
    """Return images as grey tiles, uint8, whose sides are not below `min_side`.

    They are enlarged by a whole number, so that pixels keep their proportions.
    """
    grey = as_grey(images)
    factor = ceil_div(min_side, min(grey.shape[1:]))
    if factor == 1:
        return grey
    image = extra("PIL.Image")
    size = (grey.shape[2] * factor, grey.shape[1] * factor)
    how = image.Resampling.BICUBIC
    return np.stack([image.fromarray(tile).resize(size, how) for tile in grey])


def require_images(images: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the images as an array, if it has `n_axes` axes and is not empty."""
    if np.ndim(images) != n_axes or not np.size(images):
        raise ValueError(
            f"`images` must be an array with {n_axes} axes, not empty; got shape "
            f"{np.shape(images)}. Show volumes by their projection."
        )
    return np.asarray(images)


def _paper(*shape: int) -> np.ndarray:
    return np.full(shape, PAPER, dtype=np.uint8)


def _mosaic(tiles: np.ndarray) -> np.ndarray:
    """Return tiles, (rows, columns, height, width), as one picture.

    Below and to the right of each is a gap.
    """
    rows, columns, height, width = tiles.shape
    cells = _paper(rows, height + GAP, columns, width + GAP)
    cells[:, :height, :, :width] = tiles.transpose(0, 2, 1, 3)
    return cells.reshape(rows * (height + GAP), columns * (width + GAP))


def _framed(picture: np.ndarray) -> np.ndarray:
    """Return the picture with a margin of 6 pixels."""
    # The last gap between tiles is part of the margin below and to the right.
    margins = (6, 6 - GAP)
    return np.pad(picture, (margins, margins), constant_values=PAPER)


def _captions(
    name: str, texts: Sequence[str], number: int, width: int, height: int = 18
) -> np.ndarray:
    """Return boxes, (number, height, width), with a text in the middle of each."""
    if len(texts) != number:
        raise ValueError(f"`{name}` must have one caption for each of {number}; got {len(texts)}.")
    return np.stack([_text_box(text, width, height) for text in texts])


def _text_box(text: str, width: int, height: int) -> np.ndarray:
    """Draw a text in the middle of a box, in smaller letters where it would not fit."""
    fonts, image = extra("PIL.ImageFont"), extra("PIL.Image")
    letters = 13
    natural_width = fonts.load_default(letters).getlength(text)
    font = fonts.load_default(letters * min(1.0, width / max(natural_width, 1)))
    box = image.new("L", (width, height), PAPER)
    draw = extra("PIL.ImageDraw").Draw(box)
    draw.text((width / 2, height / 2), text, fill=0, font=font, anchor="mm")
    return np.asarray(box)
