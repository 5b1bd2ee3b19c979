"""Movies along a factor: GIF and MP4 of images, ChimeraX scripts that play volumes."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra
from manifactor._support.files import write_bytes
from manifactor._support.parameters import require_number
from manifactor.cryoem.mp4 import mp4_bytes
from manifactor.cryoem.pictures import constant_images, enlarged, require_images

MOVIE_ENDINGS = (".gif", ".mp4")


@dataclass(frozen=True)
class MovieSettings:
    """Settings of `write_movie`."""

    # Least height and width of a frame in pixels.
    min_frame: int = 216

    # Browsers slow down whatever asks for less than two hundredths of a second.
    min_seconds_per_frame: float = 0.02
    max_seconds_per_frame: float = 10


def write_movie(
    path: Path | str,
    images: np.ndarray,
    *,
    circular: bool,
    seconds_per_frame: float = 0.1,
    settings: MovieSettings = MovieSettings(),
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
    if kind not in MOVIE_ENDINGS:
        raise ValueError(f"`path` must end in {' or '.join(MOVIE_ENDINGS)}; got {str(path)!r}.")
    movies = movie_bytes(
        images,
        circular=circular,
        seconds_per_frame=seconds_per_frame,
        settings=settings,
        kinds=(kind,),
    )
    if kind not in movies:
        raise ValueError(
            f"{path} cannot be written: an MP4 must have two images or more, and the "
            "installed Pillow an encoder of AVIF. Write a .gif instead."
        )
    write_bytes(Path(path), movies[kind])


def movie_bytes(
    images: np.ndarray,
    *,
    circular: bool,
    seconds_per_frame: float = 0.1,
    settings: MovieSettings = MovieSettings(),
    kinds: Sequence[str] = MOVIE_ENDINGS,
) -> dict[str, bytes]:
    """Return images as a GIF that plays for ever, and as an MP4 that plays once."""
    require_number(
        "seconds_per_frame",
        seconds_per_frame,
        low=settings.min_seconds_per_frame,
        high=settings.max_seconds_per_frame,
    )
    images = require_images(images, 3)
    filled = ~constant_images(images)
    # If all are empty, one blank frame is still a file that can be opened.
    kept = images[filled] if filled.any() else images[:1]
    shown = enlarged(kept, settings.min_frame)
    frames = shown[_play_order(len(shown), circular)]
    encoders = {".gif": _gif_bytes, ".mp4": mp4_bytes}
    made = {kind: encoders[kind](frames, seconds_per_frame) for kind in kinds}
    return {kind: content for kind, content in made.items() if content is not None}


def _gif_bytes(frames: np.ndarray, seconds_per_frame: float) -> bytes | None:
    image = extra("PIL.Image")
    first, *others = [image.fromarray(frame) for frame in frames]
    buffer = io.BytesIO()
    first.save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=others,
        # Milliseconds, in the whole hundredths of a second that the format stores.
        duration=10 * round(100 * seconds_per_frame),
        loop=0,
    )
    return buffer.getvalue()


def _play_order(n_images: int, circular: bool) -> list[int]:
    """Return the indices of the images as they are played."""
    forth = list(range(n_images))
    # On the way back neither end is shown twice.
    back = [] if circular else forth[-2:0:-1]
    return forth + back


def chimerax_script(
    volumes: Sequence[str],
    *,
    circular: bool,
    level: float | None = None,
    frames_per_second: float = 10,
) -> str:
    """Return the text of a .cxc file that plays maps as a volume series in ChimeraX."""
    if not volumes:
        raise ValueError("`volumes` must name at least one file; got none.")
    direction = "forward" if circular else "oscillate"
    contour = "" if level is None else f" level {level:g}"
    lines = [
        "# Open this file in ChimeraX with nothing else open; `vseries stop #1` halts the movie.",
        f"open {' '.join(_quoted(name) for name in volumes)} vseries true",
        f"volume #1 style surface step 1{contour}",
        "view",
        f"vseries play #1 loop true direction {direction} maxFrameRate {frames_per_second:g}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    # ChimeraX ends a word at any of these.
    if any(letter.isspace() or letter in ",;'" for letter in name):
        return f'"{name}"'
    return name
