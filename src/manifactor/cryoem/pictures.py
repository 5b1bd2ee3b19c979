"""Mean images and volumes as files: MRC stacks and maps, PNG strips and grids, GIF movies, ChimeraX scripts.

Every function writes one file at the path it is given and does nothing else.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra
from manifactor._support.parameters import require_number

TILE, FRAME = (
    96,
    216,
)  # least height and width in pixels of an image in a strip and in a movie
ROW = 12  # images of a strip in one row
GAP, MARGIN = 2, 6  # pixels between images and around them
TEXT = 13  # height of captions in pixels
PAPER, INK, BLANK = (
    255,
    0,
    225,
)  # grey of the background, of captions and of an empty bin


def write_stack(path: Path | str, images: np.ndarray, *, pixel_size: float) -> None:
    """Write images, (n, height, width), as a stack that RELION and cryoSPARC read.

    Parameters
    ----------
    pixel_size : float
        In Angstrom.
    """
    _write_mrc(path, images, pixel_size, stack=True)


def write_volume(path: Path | str, volume: np.ndarray, *, pixel_size: float) -> None:
    """Write a volume, (z, y, x), as a map with its pixel size in Angstrom."""
    _write_mrc(path, volume, pixel_size, stack=False)


def _write_mrc(
    path: Path | str, data: np.ndarray, pixel_size: float, *, stack: bool
) -> None:
    require_number("pixel_size", pixel_size, above=0)
    if np.ndim(data) != 3:
        raise ValueError(
            f"{'`images`' if stack else '`volume`'} must have three axes; got shape {np.shape(data)}."
        )
    with extra("mrcfile").new(path, overwrite=True) as file:
        file.set_data(np.ascontiguousarray(data, dtype=np.float32))
        if stack:
            file.set_image_stack()
        file.voxel_size = pixel_size


def projections(volumes: np.ndarray) -> np.ndarray:
    """Images, (n, height, width), of volumes, (n, z, y, x): means along the axis that shows most of how they differ.

    Seen from the side, z points up.
    """
    views = [
        volumes.mean(axis=2)[:, ::-1],
        volumes.mean(axis=3)[:, ::-1],
        volumes.mean(axis=1),
    ]
    return max(views, key=lambda view: float(view.var(axis=0).sum()))


def strip(images: np.ndarray, *, captions: Sequence[str] | None = None) -> np.ndarray:
    """A picture, uint8, of images side by side in one grey scale, twelve in a row.

    Parameters
    ----------
    images : ndarray of shape (n, height, width)
        An image of one value only, such as the mean of an empty bin, is left blank.
    captions : sequence of str, optional
        One under each image.
    """
    tiles = _tiles(_require_images(images, 3))
    tiles = (
        tiles
        if captions is None
        else _captioned(tiles, _require_captions("captions", captions, len(tiles)))
    )
    n_rows = -(-len(tiles) // ROW)
    n_columns = -(-len(tiles) // n_rows)
    missing = np.full(
        (n_rows * n_columns - len(tiles), *tiles.shape[1:]), PAPER, dtype=np.uint8
    )
    return _framed(
        _mosaic(
            np.concatenate([tiles, missing]).reshape(
                n_rows, n_columns, *tiles.shape[1:]
            )
        )
    )


def grid_picture(
    images: np.ndarray,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> np.ndarray:
    """A picture, uint8, of images on the grid of two factors, in one grey scale.

    Parameters
    ----------
    images : ndarray of shape (n_rows, n_columns, height, width)
        An image of one value only, such as the mean of an empty bin, is left blank.
    rows, columns : sequence of str, optional
        Captions to the left of the rows and under the columns.
    """
    n_rows, n_columns, height, width = _require_images(images, 4).shape
    tiles = _tiles(np.reshape(images, (-1, height, width)))
    picture = _mosaic(tiles.reshape(n_rows, n_columns, *tiles.shape[1:]))
    if columns is not None:
        boxes = _text_boxes(
            _require_captions("columns", columns, n_columns), tiles.shape[2]
        )
        picture = np.concatenate([picture, _mosaic(boxes[None])])
    if rows is not None:
        boxes = _text_boxes(
            _require_captions("rows", rows, n_rows), TILE, height=tiles.shape[1]
        )
        left = _mosaic(boxes[:, None])
        below = np.full(
            (len(picture) - len(left), left.shape[1]), PAPER, dtype=np.uint8
        )
        picture = np.concatenate([np.concatenate([left, below]), picture], axis=1)
    return _framed(picture)


def write_png(path: Path | str, picture: np.ndarray) -> None:
    """Write a picture of `strip` or `grid_picture`."""
    Path(path).write_bytes(png_bytes(picture))


def png_bytes(picture: np.ndarray) -> bytes:
    """The same picture as the bytes of a .png file."""
    buffer = io.BytesIO()
    extra("PIL.Image").fromarray(picture).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def write_movie(
    path: Path | str,
    images: np.ndarray,
    *,
    circular: bool,
    seconds_per_frame: float = 0.1,
) -> None:
    """Write images, (n, height, width), as a GIF that plays for ever.

    Parameters
    ----------
    images : ndarray of shape (n, height, width)
        Those of one value only, such as the mean of an empty bin, are left out.
    circular : bool
        Round and round, as along a circle; otherwise forth and back, as along an interval.
    seconds_per_frame : float
        GIF counts hundredths of a second.
    """
    require_number("seconds_per_frame", seconds_per_frame, low=0.02, high=10)
    images = _require_images(images, 3)
    filled = ~_blank(images)
    shown = _tiles(images[filled] if filled.any() else images[:1], least=FRAME)
    frames = [
        extra("PIL.Image").fromarray(shown[i])
        for i in _play_order(len(shown), circular)
    ]
    duration = 10 * round(100 * seconds_per_frame)
    frames[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=duration,
        loop=0,
    )


def _play_order(n_images: int, circular: bool) -> list[int]:
    """Indices of the images as they are played; neither end is shown twice."""
    return [*range(n_images), *([] if circular else range(n_images - 2, 0, -1))]


def chimerax_script(
    volumes: Sequence[str],
    *,
    circular: bool,
    level: float | None = None,
    frames_per_second: float = 10,
) -> str:
    """The text of a .cxc file that plays maps as a volume series in ChimeraX.

    Parameters
    ----------
    volumes : sequence of str
        Names of .mrc files in the folder of the script, in order.
    circular : bool
        Round and round; otherwise forth and back.
    level : float, optional
        Contour level of all maps; ChimeraX's own choice for the first map by default.
    """
    if not volumes:
        raise ValueError("`volumes` must name at least one file; got none.")
    direction = "forward" if circular else "oscillate"
    lines = [
        "# Open this file in ChimeraX with nothing else open; `vseries stop #1` halts the movie.",
        f"open {' '.join(_quoted(name) for name in volumes)} vseries true",
        "volume #1 style surface step 1"
        + ("" if level is None else f" level {level:g}"),
        "view",
        f"vseries play #1 loop true direction {direction} maxFrameRate {frames_per_second:g}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    return (
        f'"{name}"'
        if any(letter.isspace() or letter in ",;'" for letter in name)
        else name
    )


def _require_images(images: np.ndarray, n_axes: int) -> np.ndarray:
    if np.ndim(images) != n_axes or not np.size(images):
        raise ValueError(
            f"`images` must be an array with {n_axes} axes, not empty; got shape {np.shape(images)}. "
            "Show volumes by their projection."
        )
    return np.asarray(images)


def _require_captions(name: str, captions: Sequence[str], number: int) -> Sequence[str]:
    if len(captions) != number:
        raise ValueError(
            f"`{name}` must have one caption for each of {number}; got {len(captions)}."
        )
    return captions


def _tiles(images: np.ndarray, *, least: int = TILE) -> np.ndarray:
    """Images as grey tiles, uint8, a whole number of times larger so that no side is below `least`."""
    grey = as_grey(images)
    factor = -(-least // min(grey.shape[1:]))
    if factor == 1:
        return grey
    image = extra("PIL.Image")
    size = (grey.shape[2] * factor, grey.shape[1] * factor)
    return np.stack(
        [image.fromarray(tile).resize(size, image.Resampling.BICUBIC) for tile in grey]
    )


def as_grey(images: np.ndarray) -> np.ndarray:
    """Images in one grey scale from their percentile .5 to 99.5; those of one value, which would distort it, blank."""
    blank = _blank(images)
    if blank.all():
        return np.full(images.shape, BLANK, dtype=np.uint8)
    low, high = np.percentile(images[~blank], [0.5, 99.5])
    scaled = (images - low) / max(high - low, np.finfo(float).tiny)
    return (
        np.where(blank[:, None, None], BLANK, 255 * np.clip(scaled, 0, 1))
        .round()
        .astype(np.uint8)
    )


def _blank(images: np.ndarray) -> np.ndarray:
    """Which of the images have one value only."""
    return np.ptp(images, axis=(1, 2)) == 0


def _mosaic(tiles: np.ndarray) -> np.ndarray:
    """Tiles, (rows, columns, height, width), as one picture with a thin line of paper below and right of each."""
    rows, columns, height, width = tiles.shape
    cells = np.full((rows, height + GAP, columns, width + GAP), PAPER, dtype=np.uint8)
    cells[:, :height, :, :width] = tiles.transpose(0, 2, 1, 3)
    return cells.reshape(rows * (height + GAP), columns * (width + GAP))


def _framed(picture: np.ndarray) -> np.ndarray:
    """The picture with a margin of paper; the last line between tiles is part of it."""
    return np.pad(
        picture, ((MARGIN, MARGIN - GAP), (MARGIN, MARGIN - GAP)), constant_values=PAPER
    )


def _captioned(tiles: np.ndarray, captions: Sequence[str]) -> np.ndarray:
    """Tiles with a line of text under each."""
    return np.concatenate([tiles, _text_boxes(captions, tiles.shape[2])], axis=1)


def _text_boxes(
    texts: Sequence[str], width: int, *, height: int = TEXT + 5
) -> np.ndarray:
    """Boxes, (n, height, width), with a text in the middle of each."""
    return np.stack([_text_box(text, width, height) for text in texts])


def _text_box(text: str, width: int, height: int) -> np.ndarray:
    """One text in the middle of a box, smaller letters where it would not fit."""
    fonts, image = extra("PIL.ImageFont"), extra("PIL.Image")
    natural = fonts.load_default(TEXT).getlength(text)
    font = fonts.load_default(TEXT * min(1.0, width / max(natural, 1)))
    box = image.new("L", (width, height), PAPER)
    extra("PIL.ImageDraw").Draw(box).text(
        (width / 2, height / 2), text, fill=INK, font=font, anchor="mm"
    )
    return np.asarray(box)
