import io

import numpy as np
import pytest
from PIL import Image, features

from manifactor.cryoem.movies import _as_movie, _boxes, can_write_mp4, movie_bytes, mp4_bytes

from .blobs import moving_blob

needs_encoder = pytest.mark.skipif(
    not features.check("avif"), reason="this Pillow has no encoder of AV1"
)


@pytest.fixture(scope="module")
def frames():
    images = moving_blob(4)
    return np.uint8(255 * images / images.max()).repeat(3, axis=1).repeat(3, axis=2)


def part(movie, kind):
    start, end = {k: (a, b) for k, a, b in _boxes(movie, 0, len(movie))}[kind]
    return movie[start:end]


@needs_encoder
def test_a_movie_is_a_video_that_plays_once(frames):
    movie = mp4_bytes(frames, 0.25)
    kinds = [kind for kind, _, _ in _boxes(movie, 0, len(movie))]
    assert kinds[0] == b"ftyp"
    assert {b"moov", b"mdat"} < set(kinds)
    assert not {b"meta", b"edts"} & set(kinds)
    assert part(movie, b"ftyp")[8:12] == b"isom"
    assert part(movie, b"hdlr")[16:20] == b"vide"
    # Four frames of a quarter of a second, in milliseconds.
    assert int.from_bytes(part(movie, b"mvhd")[32:40], "big") == 1000
    assert int.from_bytes(part(movie, b"tkhd")[36:44], "big") == 1000


@needs_encoder
def test_the_same_frames_give_the_same_file(frames):
    assert mp4_bytes(frames, 0.1) == mp4_bytes(frames, 0.1)


@needs_encoder
def test_the_frames_are_those_of_the_images(frames):
    # Read as the sequence of images that the file still is inside.
    movie = bytearray(mp4_bytes(frames, 0.1))
    buffer = io.BytesIO()
    first, *others = [Image.fromarray(frame).convert("RGB") for frame in frames]
    how = {"quality": 80, "subsampling": "4:2:0", "speed": 10, "duration": 100}
    first.save(buffer, "AVIF", save_all=True, append_images=others, **how)
    assert part(bytes(movie), b"mdat") == part(buffer.getvalue(), b"mdat")
    with Image.open(buffer) as sequence:
        for k, frame in enumerate(frames):
            sequence.seek(k)
            shown = np.asarray(sequence.convert("L"), dtype=float)
            assert np.abs(shown - frame).mean() < 4


def test_files_of_another_layout_and_single_frames_are_no_movie(frames):
    assert _as_movie(b"") is None
    assert _as_movie(b"\0\0\0\x10ftypavis\0\0\0\0") is None
    assert mp4_bytes(frames[:1], 0.1) is None


def test_without_an_encoder_there_is_a_gif_only(frames, monkeypatch):
    monkeypatch.setattr(features, "check", lambda name: False)
    assert not can_write_mp4()
    assert list(movie_bytes(frames, circular=True)) == [".gif"]
