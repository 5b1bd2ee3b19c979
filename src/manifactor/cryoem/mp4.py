"""MP4 files of grey frames, encoded as AV1 by Pillow.

Pillow encodes a sequence of images in AVIF with libaom, which has a permissive licence (BSD). Such
a file is laid out as an MP4 file already: it differs in its brand, in the kind of its track, and in
that it plays for ever.
"""

import io
from collections.abc import Iterator

import numpy as np

from manifactor._support.extras import extra

# What a player of MP4 looks for in the first box.
BRANDS = (b"isom", b"iso6", b"mp41", b"av01")
# Boxes that hold boxes.
CONTAINERS = (b"moov", b"trak", b"mdia")
# Start of the two times of a header of version 1: when it was made and last changed.
TIMES = slice(12, 28)
# Where such headers have the duration, in units of the movie's clock.
DURATION = {b"mvhd": slice(32, 40), b"tkhd": slice(36, 44), b"mdhd": slice(32, 40)}


def can_write_mp4() -> bool:
    """Return whether the installed Pillow has an encoder."""
    return bool(extra("PIL.features").check("avif"))


def mp4_bytes(frames: np.ndarray, seconds_per_frame: float, *, quality: int = 80) -> bytes | None:
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
        quality=quality,
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
    start = starts[b"mdhd"]
    length = avif[start:][DURATION[b"mdhd"]]
    for kind, start, end in boxes:
        if kind == b"ftyp":
            # As many brands as there were, so that nothing else moves.
            n_brands = (end - start - 16) // 4
            brands = (BRANDS * n_brands)[:n_brands]
            out[start + 8 : end] = BRANDS[0] + bytes(4) + b"".join(brands)
        elif kind in DURATION:
            # The same frames give the same file, and it plays once.
            out[start:end] = _headed(avif[start:end], DURATION[kind], length)
        elif kind == b"hdlr":
            out[start + 16 : start + 20] = b"vide"
        elif kind in (b"meta", b"edts"):
            # The still image, and the repetition.
            out[start + 4 : start + 8] = b"free"
    return bytes(out)


def _headed(header: bytes, duration: slice, length: bytes) -> bytes:
    """Return a header with a duration, and without the times of its making."""
    out = bytearray(header)
    out[TIMES] = bytes(TIMES.stop - TIMES.start)
    out[duration] = length
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
