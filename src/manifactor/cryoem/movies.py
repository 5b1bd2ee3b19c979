"""Movies along a factor: GIF and MP4 of images, ChimeraX scripts that play volumes.

Pillow encodes a sequence of images in AVIF (AV1) with libaom, which has a permissive licence (BSD).
Such a file is laid out as an MP4 file already: it differs in its brand, in the kind of its track,
and in that it plays for ever.
"""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.files import write_bytes
from manifactor._support.parameters import require_number
from manifactor.cryoem.pictures import constant_images, enlarged, require_images

MOVIE_ENDINGS = (".gif", ".mp4")
# What a player of MP4 looks for in the first box.
BRANDS = (b"isom", b"iso6", b"mp41", b"av01")
# Boxes that hold boxes.
CONTAINERS = (b"moov", b"trak", b"mdia")
# Where headers of version 1 have the 8 bytes of the duration, in units of the movie's clock.
DURATION = {b"mvhd": 32, b"tkhd": 36, b"mdhd": 32}


def can_write_mp4() -> bool:
    """Return whether the installed Pillow has an encoder."""
    return bool(extra("PIL.features").check("avif"))


def mp4_bytes(frames: np.ndarray, seconds_per_frame: float) -> bytes | None:
    """Return frames as the bytes of an .mp4 file.

    Shapes: frames (n, height, width).
    """
    if len(frames) < 2 or not can_write_mp4():
        return None
    image = extra("PIL.Image")
    # In colour: some players do not know AV1 without it.
    first, *others = [image.fromarray(frame).convert("RGB") for frame in frames]
    buffer = io.BytesIO()
    first.save(
        buffer,
        format="AVIF",
        save_all=True,
        append_images=others,
        duration=round(1000 * seconds_per_frame),
        quality=80,
        subsampling="4:2:0",
        # The fastest: slower ones take ten times as long for files as large.
        speed=10,
    )
    return _as_movie(buffer.getvalue())


def _as_movie(avif: bytes) -> bytes | None:
    """Return an AVIF sequence as an MP4 file; None if its layout is not known."""
    boxes = list(_boxes(avif, 0, len(avif)))
    starts = {kind: start for kind, start, _ in boxes}
    if not {b"ftyp", b"moov", b"hdlr", *DURATION} <= set(starts):
        return None
    if any(avif[starts[kind] + 8] != 1 for kind in DURATION):
        # Another version of these headers has other offsets.
        return None
    out = bytearray(avif)
    start = starts[b"mdhd"] + DURATION[b"mdhd"]
    length = avif[start : start + 8]
    for kind, start, end in boxes:
        if kind == b"ftyp":
            # As many brands as there were, so that nothing else moves.
            n_brands = (end - start - 16) // 4
            brands = (BRANDS * n_brands)[:n_brands]
            out[start + 8 : end] = BRANDS[0] + bytes(4) + b"".join(brands)
        elif kind in DURATION:
            # The same frames give the same file, and it plays once. After 12 bytes a header has the
            # times when it was made and last changed.
            out[start + 12 : start + 28] = bytes(16)
            out[start + DURATION[kind] : start + DURATION[kind] + 8] = length
        elif kind == b"hdlr":
            out[start + 16 : start + 20] = b"vide"
        elif kind in (b"meta", b"edts"):
            # The still image, and the repetition.
            out[start + 4 : start + 8] = b"free"
    return bytes(out)


def _boxes(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of the boxes of a movie, those inside others, too."""
    while start + 8 <= end:
        size = int.from_bytes(data[start : start + 4], "big")
        kind = data[start + 4 : start + 8]
        if size < 8 or start + size > end:
            # A box up to the end of the file, or a longer one than 4 bytes can tell.
            return
        yield kind, start, start + size
        if kind in CONTAINERS:
            yield from _boxes(data, start + 8, start + size)
        start += size


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
    if kind not in MOVIE_ENDINGS:
        raise ValueError(f"`path` must end in {' or '.join(MOVIE_ENDINGS)}; got {str(path)!r}.")
    movies = movie_bytes(
        images, circular=circular, seconds_per_frame=seconds_per_frame, kinds=(kind,)
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
    kinds: Sequence[str] = MOVIE_ENDINGS,
) -> dict[str, bytes]:
    """Return images as a GIF that plays for ever, and as an MP4 that plays once."""
    # Browsers slow down what asks for less than two hundredths of a second.
    require_number("seconds_per_frame", seconds_per_frame, low=0.02, high=10)
    images = require_images(images, 3)
    filled = ~constant_images(images)
    # If all are empty, one blank frame is still a file that can be opened.
    kept = images[filled] if filled.any() else images[:1]
    shown = enlarged(kept, 216)
    # On the way back neither end is shown twice.
    frames = shown if circular else np.concatenate([shown, shown[-2:0:-1]])
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
