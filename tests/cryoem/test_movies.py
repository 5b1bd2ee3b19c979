import io

import numpy as np
import pytest
from PIL import Image, features

from manifactor.cryoem.pictures import (
    _as_movie,
    _boxes,
    chimerax_script,
    movie_bytes,
    mp4_bytes,
    write_movie,
)

from .blobs import moving_blob

needs_encoder = pytest.mark.skipif(
    not features.check("avif"), reason="this Pillow has no encoder of AV1"
)


def bright_column(picture):
    """Where, from 0 to 1, the brightness of a picture lies."""
    profile = np.asarray(picture, dtype=float).sum(axis=0)
    return (profile @ np.arange(len(profile))) / profile.sum() / len(profile)


def frames_of(path):
    with Image.open(path) as movie:
        for k in range(movie.n_frames):
            movie.seek(k)
            yield np.asarray(movie.convert("L"))


def test_a_movie_along_an_interval_goes_forth_and_back(tmp_path):
    write_movie(tmp_path / "a.gif", moving_blob(5), circular=False)
    columns = [bright_column(frame) for frame in frames_of(tmp_path / "a.gif")]
    assert len(columns) == 8
    assert np.sign(np.diff(columns)).tolist() == [1, 1, 1, 1, -1, -1, -1]
    assert columns[1] == pytest.approx(columns[7], abs=0.01)


def test_a_movie_along_a_circle_goes_round(tmp_path):
    write_movie(tmp_path / "a.gif", moving_blob(5), circular=True, seconds_per_frame=0.25)
    with Image.open(tmp_path / "a.gif") as movie:
        assert movie.n_frames == 5
        assert movie.info["loop"] == 0
        assert movie.info["duration"] == 250
        assert min(movie.size) >= 216
    assert (np.diff([bright_column(frame) for frame in frames_of(tmp_path / "a.gif")]) > 0).all()


def test_a_movie_leaves_empty_bins_out(tmp_path):
    images = moving_blob(5)
    images[2] = 0
    write_movie(tmp_path / "a.gif", images, circular=True)
    assert len(list(frames_of(tmp_path / "a.gif"))) == 4
    write_movie(tmp_path / "b.gif", np.zeros((3, 9, 9)), circular=True)
    assert len(list(frames_of(tmp_path / "b.gif"))) == 1


def test_a_movie_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.gif"):
        write_movie(tmp_path / "a.avi", moving_blob(3), circular=True)
    with pytest.raises(ValueError, match=r"two images or more.*Write a \.gif"):
        write_movie(tmp_path / "b.mp4", moving_blob(1), circular=True)


def test_a_script_opens_the_maps_as_a_series_and_plays_it():
    text = chimerax_script(
        ["bin 0.mrc", "bin1.mrc"], circular=False, level=0.25, frames_per_second=8
    )
    lines = text.splitlines()
    assert lines[1] == 'open "bin 0.mrc" bin1.mrc vseries true'
    assert lines[2].endswith("level 0.25")
    assert lines[-1] == "vseries play #1 loop true direction oscillate maxFrameRate 8"
    assert "direction forward" in chimerax_script(["a.mrc"], circular=True)
    assert "level" not in chimerax_script(["a.mrc"], circular=True)
    with pytest.raises(ValueError, match="`volumes`"):
        chimerax_script([], circular=True)


@pytest.mark.parametrize("seconds", [0.01, 11])
def test_frames_too_fast_or_too_slow_are_refused(tmp_path, seconds):
    with pytest.raises(ValueError, match="`seconds_per_frame`"):
        write_movie(tmp_path / "a.gif", moving_blob(2), circular=True, seconds_per_frame=seconds)


def test_images_that_are_not_finite_are_refused(tmp_path):
    images = moving_blob(3)
    images[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="must be finite"):
        write_movie(tmp_path / "a.gif", images, circular=True)
    assert not (tmp_path / "a.gif").exists()


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
    assert movie == mp4_bytes(frames, 0.25)
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


def test_files_of_another_layout_and_single_frames_are_not_a_movie(frames):
    assert _as_movie(b"") is None
    assert _as_movie(b"\0\0\0\x10ftypavis\0\0\0\0") is None
    assert mp4_bytes(frames[:1], 0.1) is None


def test_without_an_encoder_there_is_a_gif_only(frames, monkeypatch):
    monkeypatch.setattr(features, "check", lambda name: False)
    assert list(movie_bytes(frames, circular=True)) == [".gif"]
