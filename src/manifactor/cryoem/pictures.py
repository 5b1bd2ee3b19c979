"""Pictures of mean images and volumes: strips and grids in one grey scale, as PNG."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.values import ceil_div


@dataclass(frozen=True)
class PictureSettings:
    """Layout and grey levels of pictures; lengths are in pixels."""

    # An image is enlarged by a whole number until no side is below this.
    min_tile: int = 96
    max_columns: int = 12
    gap: int = 2
    margin: int = 6

    text_height: int = 13
    caption_height: int = 18

    # Grey levels of the background, of captions and of an empty bin, which must differ from the
    # background and from most images.
    paper: int = 255
    ink: int = 0
    blank: int = 225

    # Percentiles that become black and white: a few outlying pixels must not take the contrast from
    # all others.
    percentiles: tuple[float, float] = (0.5, 99.5)

    # Pixels that the percentiles of a single image are read from. A dozen lie beyond each of them:
    # in pure noise, grey levels are right to 3 percent.
    ranged_pixels: int = 2500


def projections(volumes: np.ndarray) -> np.ndarray:
    """Return images of volumes, seen along the axis that shows most of their change.

    Seen from the side, z points up.

    Shapes: volumes (n, z, y, x) -> (n, height, width).
    """
    # Rows of an image go down and z goes up, hence the reversal.
    along_y = volumes.mean(axis=2)[:, ::-1]
    along_x = volumes.mean(axis=3)[:, ::-1]
    along_z = volumes.mean(axis=1)
    return max(along_y, along_x, along_z, key=_change)


def _change(images: np.ndarray) -> float:
    return float(images.var(axis=0).sum())


def strip(
    images: np.ndarray,
    *,
    captions: Sequence[str] | None = None,
    settings: PictureSettings = PictureSettings(),
) -> np.ndarray:
    """Return a picture, uint8, of images in rows of at most twelve, in one grey scale.

    Shapes: images (n, height, width).
    """
    tiles = _tiles(require_images(images, 3), settings)
    if captions is not None:
        _require_captions("captions", captions, len(tiles))
        boxes = _captions(captions, tiles.shape[2], settings)
        tiles = np.concatenate([tiles, boxes], axis=1)
    # Rows of about equal length look better than full ones with a short last.
    n_rows = ceil_div(len(tiles), settings.max_columns)
    n_columns = ceil_div(len(tiles), n_rows)
    n_missing = n_rows * n_columns - len(tiles)
    missing = _paper((n_missing, *tiles.shape[1:]), settings)
    cells = np.concatenate([tiles, missing])
    cells = cells.reshape(n_rows, n_columns, *tiles.shape[1:])
    return _framed(_mosaic(cells, settings), settings)


def grid_picture(
    images: np.ndarray,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    settings: PictureSettings = PictureSettings(),
) -> np.ndarray:
    """Return a picture, uint8, of images on the grid of two factors.

    All images have one grey scale.

    Shapes: images (n_rows, n_columns, height, width).
    """
    n_rows, n_columns, height, width = require_images(images, 4).shape
    # All images of the grid in one call: the grey scale is that of all of them.
    tiles = _tiles(np.reshape(images, (-1, height, width)), settings)
    _, tile_height, tile_width = tiles.shape
    cells = tiles.reshape(n_rows, n_columns, tile_height, tile_width)
    picture = _mosaic(cells, settings)
    if columns is not None:
        _require_captions("columns", columns, n_columns)
        below = _captions(columns, tile_width, settings)
        picture = np.concatenate([picture, _mosaic(below[None], settings)])
    if rows is not None:
        _require_captions("rows", rows, n_rows)
        boxes = _text_boxes(rows, settings.min_tile, tile_height, settings)
        left = _mosaic(boxes[:, None], settings)
        # Empty where the captions of the rows meet those of the columns.
        n_below = len(picture) - len(left)
        corner = _paper((n_below, left.shape[1]), settings)
        left = np.concatenate([left, corner])
        picture = np.concatenate([left, picture], axis=1)
    return _framed(picture, settings)


def write_png(path: Path | str, picture: np.ndarray) -> None:
    """Write a picture of `strip` or `grid_picture`."""
    Path(path).write_bytes(png_bytes(picture))


def png_bytes(picture: np.ndarray) -> bytes:
    """Return a picture as the bytes of a .png file."""
    buffer = io.BytesIO()
    image = extra("PIL.Image").fromarray(picture)
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def as_grey(images: np.ndarray, *, settings: PictureSettings = PictureSettings()) -> np.ndarray:
    """Return images, uint8, in one grey scale from their percentile .5 to 99.5.

    Constant images, which would distort the scale, are left blank.
    """
    blank = constant_images(images)
    if blank.all():
        return np.full(images.shape, settings.blank, dtype=np.uint8)
    low, high = np.percentile(images[~blank], settings.percentiles)
    return _levels(images, low, high, blank, settings)


def each_as_grey(
    images: np.ndarray, *, settings: PictureSettings = PictureSettings()
) -> np.ndarray:
    """Return images, uint8, each in a grey scale of its own, as `as_grey` has it.

    Of large images, the scale is that of pixels on a grid.
    """
    n_pixels = images.shape[1] * images.shape[2]
    step = max(1, math.isqrt(n_pixels // settings.ranged_pixels))
    some = images[:, ::step, ::step].reshape(len(images), -1)
    low, high = np.percentile(some, settings.percentiles, axis=1)[:, :, None, None]
    return _levels(images, low, high, constant_images(images), settings)


def _levels(
    images: np.ndarray,
    low: np.ndarray | float,
    high: np.ndarray | float,
    blank: np.ndarray,
    settings: PictureSettings,
) -> np.ndarray:
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
    grey[blank] = settings.blank
    return grey


def constant_images(images: np.ndarray) -> np.ndarray:
    """Return which of the images, (n, height, width), have one value only."""
    return np.ptp(images, axis=(1, 2)) == 0


def enlarged(
    images: np.ndarray, min_side: int, *, settings: PictureSettings = PictureSettings()
) -> np.ndarray:
    """Return images as grey tiles, uint8, whose sides are not below `min_side`.

    They are enlarged by a whole number, so that pixels keep their proportions.
    """
    grey = as_grey(images, settings=settings)
    factor = ceil_div(min_side, min(grey.shape[1:]))
    if factor == 1:
        return grey
    image = extra("PIL.Image")
    size = (grey.shape[2] * factor, grey.shape[1] * factor)
    bicubic = image.Resampling.BICUBIC
    large = [image.fromarray(tile).resize(size, bicubic) for tile in grey]
    return np.stack(large)


def require_images(images: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the images as an array, if it has so many axes and is not empty."""
    if np.ndim(images) != n_axes or not np.size(images):
        raise ValueError(
            f"`images` must be an array with {n_axes} axes, not empty; got shape "
            f"{np.shape(images)}. Show volumes by their projection."
        )
    return np.asarray(images)


def _require_captions(name: str, captions: Sequence[str], number: int) -> None:
    if len(captions) != number:
        raise ValueError(
            f"`{name}` must have one caption for each of {number}; got {len(captions)}."
        )


def _tiles(images: np.ndarray, settings: PictureSettings) -> np.ndarray:
    return enlarged(images, settings.min_tile, settings=settings)


def _paper(shape: tuple[int, ...], settings: PictureSettings) -> np.ndarray:
    return np.full(shape, settings.paper, dtype=np.uint8)


def _mosaic(tiles: np.ndarray, settings: PictureSettings) -> np.ndarray:
    """Return tiles, (rows, columns, height, width), as one picture.

    Below and to the right of each is a gap.
    """
    rows, columns, height, width = tiles.shape
    outer_height, outer_width = height + settings.gap, width + settings.gap
    cells = _paper((rows, outer_height, columns, outer_width), settings)
    cells[:, :height, :, :width] = tiles.transpose(0, 2, 1, 3)
    return cells.reshape(rows * outer_height, columns * outer_width)


def _framed(picture: np.ndarray, settings: PictureSettings) -> np.ndarray:
    """Return the picture with a margin."""
    # The last gap between tiles is part of the margin below and to the right.
    margins = (settings.margin, settings.margin - settings.gap)
    return np.pad(picture, (margins, margins), constant_values=settings.paper)


def _captions(texts: Sequence[str], width: int, settings: PictureSettings) -> np.ndarray:
    return _text_boxes(texts, width, settings.caption_height, settings)


def _text_boxes(
    texts: Sequence[str], width: int, height: int, settings: PictureSettings
) -> np.ndarray:
    """Return boxes, (n, height, width), with a text in the middle of each."""
    return np.stack([_text_box(text, width, height, settings) for text in texts])


def _text_box(text: str, width: int, height: int, settings: PictureSettings) -> np.ndarray:
    """Draw a text in the middle of a box, in smaller letters where it would not fit."""
    fonts, image = extra("PIL.ImageFont"), extra("PIL.Image")
    natural_width = fonts.load_default(settings.text_height).getlength(text)
    scale = min(1.0, width / max(natural_width, 1))
    font = fonts.load_default(settings.text_height * scale)
    box = image.new("L", (width, height), settings.paper)
    middle = (width / 2, height / 2)
    draw = extra("PIL.ImageDraw").Draw(box)
    draw.text(middle, text, fill=settings.ink, font=font, anchor="mm")
    return np.asarray(box)
