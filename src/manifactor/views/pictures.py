"""Pictures and movies of mean images and volumes.

Pillow encodes a sequence of images in AVIF (AV1) with libaom, which has a permissive licence (BSD).
Such a file is laid out as an MP4 file already: it differs in its brand, in the kind of its track,
and in that it plays for ever.
"""

import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.files import write_bytes
from manifactor._support.parameters import require_number
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

    Shapes: images (n, height, width), or with three channels behind.
    """
    tiles = enlarged(require_images(images, 3), MIN_TILE)
    if captions is not None:
        boxes = _captions("captions", captions, len(tiles), tiles.shape[2])
        boxes = np.stack([boxes] * 3, axis=-1) if is_colour(tiles) else boxes
        tiles = np.concatenate([tiles, boxes], axis=1)
    # Rows of about equal length look better than full ones with a short last.
    length = ceil_div(len(tiles), ceil_div(len(tiles), 12))
    return _picture([tiles[k : k + length] for k in range(0, len(tiles), length)])


def grid_picture(
    images: np.ndarray, *, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> np.ndarray:
    """Return a picture, uint8, of images on the grid of two factors, in one grey scale.

    Shapes: images (n_rows, n_columns, height, width), or with three channels behind.
    """
    n_rows, n_columns, *shape = require_images(images, 4).shape
    # All images of the grid in one call: the grey scale is that of all of them.
    tiles = enlarged(np.reshape(images, (-1, *shape)), MIN_TILE)
    height, width = tiles.shape[1:3]
    lines = [tiles[k : k + n_columns] for k in range(0, len(tiles), n_columns)]
    if columns is not None:
        lines.append(_captions("columns", columns, n_columns, width))
    if rows is None:
        return _picture(lines)
    corner = np.full((len(lines[-1][0]), MIN_TILE), PAPER, dtype=np.uint8)
    names = [*_captions("rows", rows, n_rows, MIN_TILE, height), corner]
    return _picture([[name, *line] for name, line in zip(names, lines, strict=False)])


def png_bytes(picture: np.ndarray) -> bytes:
    """Return a picture as the bytes of a .png file."""
    buffer = io.BytesIO()
    extra("PIL.Image").fromarray(picture).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def is_colour(images: np.ndarray) -> bool:
    """Return whether images have three channels; no volume is so narrow."""
    return images.ndim == 4 and images.shape[-1] == 3


def as_grey(images: np.ndarray) -> np.ndarray:
    """Return images, uint8, in one grey scale from their percentile .5 to 99.5.

    So are the channels of colours. Constant images, which would distort the scale, are left blank.
    """
    blank = constant_images(images)
    if blank.all():
        return np.full(images.shape, BLANK, dtype=np.uint8)
    low, high = np.percentile(images[~blank], PERCENTILES)
    return _levels(images, low, high, blank)


def each_as_grey(images: np.ndarray) -> np.ndarray:
    """Return images, uint8, each in a grey scale of its own, that of pixels on a grid."""
    # Of 2500 pixels a dozen lie beyond each percentile: in pure noise, grey levels are right to 3
    # percent.
    step = max(1, math.isqrt(images.shape[1] * images.shape[2] // 2500))
    some = images[:, ::step, ::step].reshape(len(images), -1)
    ends = np.percentile(some, PERCENTILES, axis=1)
    low, high = ends.reshape(2, -1, *[1] * (images.ndim - 1))
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
    """Return which of the images, (n, height, width, ...), have one value only."""
    return np.ptp(images, axis=tuple(range(1, images.ndim))) == 0


def enlarged(images: np.ndarray, min_side: int) -> np.ndarray:
    """Return images as tiles, uint8, whose sides are not below `min_side`."""
    grey = as_grey(images)
    # A whole number, so that pixels keep their proportions.
    factor = ceil_div(min_side, min(grey.shape[1:3]))
    if factor == 1:
        return grey
    image = extra("PIL.Image")
    size = (grey.shape[2] * factor, grey.shape[1] * factor)
    how = image.Resampling.BICUBIC
    return np.stack([image.fromarray(tile).resize(size, how) for tile in grey])


def require_images(images: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the images as an array, if it has `n_axes` axes, or colours, and is not empty."""
    in_colour = np.ndim(images) == n_axes + 1 and np.shape(images)[-1] == 3
    if not (np.ndim(images) == n_axes or in_colour) or not np.size(images):
        raise ValueError(
            f"`images` must be an array with {n_axes} axes, not empty; got shape "
            f"{np.shape(images)}. Show volumes by their projection."
        )
    return np.asarray(images)


def _picture(rows: Sequence[np.ndarray | Sequence[np.ndarray]]) -> np.ndarray:
    """Return rows of tiles on paper, with gaps between them and a margin of 6 pixels."""
    image = extra("PIL.Image")
    width = max(sum(tile.shape[1] + GAP for tile in row) for row in rows)
    height = sum(len(row[0]) + GAP for row in rows)
    in_colour = any(tile.ndim == 3 for row in rows for tile in row)
    size = (width - GAP + 12, height - GAP + 12)
    picture = image.new("RGB" if in_colour else "L", size, "white")
    y = 6
    for row in rows:
        x = 6
        for tile in row:
            picture.paste(image.fromarray(tile), (x, y))
            x += tile.shape[1] + GAP
        y += len(row[0]) + GAP
    return np.asarray(picture)


def _captions(
    name: str, texts: Sequence[str], number: int, width: int, height: int = 18
) -> np.ndarray:
    """Return boxes, (number, height, width), with a text in the middle of each."""
    if len(texts) != number:
        raise ValueError(f"`{name}` must have one caption for each of {number}; got {len(texts)}.")
    fonts, image, draw = extra("PIL.ImageFont"), extra("PIL.Image"), extra("PIL.ImageDraw")
    boxes = []
    for text in texts:
        # In smaller letters where it would not fit.
        natural_width = fonts.load_default(13).getlength(text)
        font = fonts.load_default(13 * min(1.0, width / max(natural_width, 1)))
        box = image.new("L", (width, height), PAPER)
        draw.Draw(box).text((width / 2, height / 2), text, fill=0, font=font, anchor="mm")
        boxes.append(np.asarray(box))
    return np.stack(boxes)


# Images as a movie: GIF, and MP4 where Pillow has an encoder.

# What a player of MP4 looks for in the first box, four letters each.
BRANDS = b"isomiso6mp41av01"
# Where headers of version 1 have the 8 bytes of the duration, in units of the movie's clock, behind
# their names.
DURATION = {b"mvhd": 28, b"tkhd": 32, b"mdhd": 28}


def can_write_mp4() -> bool:
    """Return whether the installed Pillow has an encoder."""
    return bool(extra("PIL.features").check("avif"))


def mp4_bytes(frames: np.ndarray, seconds_per_frame: float) -> bytes | None:
    """Return frames, (n, height, width), as the bytes of an .mp4 file."""
    if len(frames) < 2 or not can_write_mp4():
        return None
    how = {"duration": round(1000 * seconds_per_frame), "quality": 80, "subsampling": "4:2:0"}
    # In colour: some players do not know AV1 without it. The fastest: slower ones take ten times
    # as long for files as large.
    return _as_movie(_encoded(frames, "RGB", format="AVIF", speed=10, **how))


def _encoded(frames: np.ndarray, colours: str, **how) -> bytes:
    """Return frames as a sequence of images."""
    image = extra("PIL.Image")
    first, *others = [image.fromarray(frame).convert(colours) for frame in frames]
    buffer = io.BytesIO()
    first.save(buffer, save_all=True, append_images=others, **how)
    return buffer.getvalue()


def _as_movie(avif: bytes) -> bytes | None:
    """Return an AVIF sequence as an MP4 file; None if its layout is not known."""
    out = bytearray(avif)
    # The headers, in front of the frames. A box has 4 bytes of its size, then its name.
    movie = avif.find(b"moov")
    places = {kind: avif.find(kind, movie) for kind in (b"hdlr", *DURATION)}
    if movie < 0 or min(places.values()) < 0:
        return None
    if any(avif[places[kind] + 4] != 1 for kind in DURATION):
        # Another version of these headers has other offsets.
        return None

    def put(start: int, new: bytes) -> None:
        out[start : start + len(new)] = new

    # As many brands as there were, so that nothing else moves.
    size = int.from_bytes(avif[:4], "big")
    put(8, BRANDS[:4] + bytes(4) + (BRANDS * size)[: size - 16])
    put(places[b"hdlr"] + 12, b"vide")
    length = places[b"mdhd"] + DURATION[b"mdhd"]
    for kind, offset in DURATION.items():
        # The same frames give the same file, and it plays once. After 8 bytes a header has the
        # times when it was made and last changed.
        put(places[kind] + 8, bytes(16))
        put(places[kind] + offset, avif[length : length + 8])
    # Without the still image, and the repetition.
    return bytes(out).replace(b"meta", b"free", 1).replace(b"edts", b"free", 1)


def _gif_bytes(frames: np.ndarray, seconds_per_frame: float) -> bytes | None:
    # In the whole hundredths of a second that the format stores.
    duration = 10 * round(100 * seconds_per_frame)
    colours = "RGB" if is_colour(frames) else "L"
    return _encoded(frames, colours, format="GIF", duration=duration, loop=0)


# By ending; None where a file cannot be made.
MOVIES = {".gif": _gif_bytes, ".mp4": mp4_bytes}


def write_movie(
    path: Path | str, images: np.ndarray, *, circular: bool, seconds_per_frame: float = 0.1
) -> None:
    """Write images as a GIF that plays for ever, or as an MP4 that plays once.

    Shapes: images (n, height, width).
    """
    kind = Path(path).suffix.lower()
    if not np.isfinite(images).all():
        raise ValueError(
            "`images` must be finite; got NaN or infinite values. Leave such images "
            "out, or replace the values."
        )
    if kind not in MOVIES:
        raise ValueError(f"`path` must end in {' or '.join(MOVIES)}; got {str(path)!r}.")
    # Browsers slow down what asks for less than two hundredths of a second.
    require_number("seconds_per_frame", seconds_per_frame, low=0.02, high=10)
    made = movie_bytes(images, circular=circular, seconds_per_frame=seconds_per_frame, kinds=[kind])
    content = made.get(kind)
    if content is None:
        raise ValueError(
            f"{path} cannot be written: an MP4 must have two images or more, and the "
            "installed Pillow an encoder of AVIF. Write a .gif instead."
        )
    write_bytes(Path(path), content)


def movie_bytes(
    images: np.ndarray,
    *,
    circular: bool,
    seconds_per_frame: float = 0.1,
    kinds: Iterable[str] = MOVIES,
) -> dict[str, bytes]:
    """Return images as a GIF that plays for ever, and as an MP4 that plays once, by ending."""
    images = require_images(images, 3)
    filled = ~constant_images(images)
    # If all are empty, one blank frame is still a file that can be opened.
    frames = enlarged(images[filled] if filled.any() else images[:1], 216)
    if not circular:
        # On the way back neither end is shown twice.
        frames = np.concatenate([frames, frames[-2:0:-1]])
    made = {kind: MOVIES[kind](frames, seconds_per_frame) for kind in kinds}
    return {kind: content for kind, content in made.items() if content is not None}


def chimerax_script(volumes: Sequence[str], *, circular: bool) -> str:
    """Return the text of a .cxc file that plays maps as a volume series in ChimeraX."""
    direction = "forward" if circular else "oscillate"
    return f"""\
# Open this file in ChimeraX with nothing else open; `vseries stop #1` halts the movie.
open {" ".join(volumes)} vseries true
volume #1 style surface step 1
view
vseries play #1 loop true direction {direction} maxFrameRate 10
"""
