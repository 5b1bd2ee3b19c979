import numpy as np
import pytest
from PIL import Image, features

from manifactor.cryoem.movies import MovieSettings, chimerax_script, write_movie

from .blobs import moving_blob


def bright_column(picture):
    """Where, from 0 to 1, the brightness of a picture lies."""
    profile = np.asarray(picture, dtype=float).sum(axis=0)
    return (profile @ np.arange(len(profile))) / profile.sum() / len(profile)


def frames(path):
    with Image.open(path) as movie:
        for k in range(movie.n_frames):
            movie.seek(k)
            yield np.asarray(movie.convert("L"))


def test_a_movie_along_an_interval_goes_forth_and_back(tmp_path):
    write_movie(tmp_path / "a.gif", moving_blob(5), circular=False)
    columns = [bright_column(frame) for frame in frames(tmp_path / "a.gif")]
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
    assert (np.diff([bright_column(frame) for frame in frames(tmp_path / "a.gif")]) > 0).all()


def test_a_movie_leaves_empty_bins_out(tmp_path):
    images = moving_blob(5)
    images[2] = 0
    write_movie(tmp_path / "a.gif", images, circular=True)
    assert len(list(frames(tmp_path / "a.gif"))) == 4
    write_movie(tmp_path / "b.gif", np.zeros((3, 9, 9)), circular=True)
    assert len(list(frames(tmp_path / "b.gif"))) == 1


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no encoder of AV1")
def test_a_path_that_ends_in_mp4_becomes_a_video(tmp_path):
    write_movie(tmp_path / "a.mp4", moving_blob(3), circular=True)
    assert (tmp_path / "a.mp4").read_bytes()[4:12] == b"ftypisom"


def test_a_movie_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.gif or \.mp4; got .*a\.avi"):
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
    with pytest.raises(ValueError, match="`volumes` must name at least one file"):
        chimerax_script([], circular=True)


def test_the_size_of_the_frames_can_be_set(tmp_path):
    settings = MovieSettings(min_frame=72)
    write_movie(tmp_path / "a.gif", moving_blob(2), circular=True, settings=settings)
    with Image.open(tmp_path / "a.gif") as movie:
        assert movie.size == (72, 72)


@pytest.mark.parametrize("seconds", [0.01, 11])
def test_frames_too_fast_or_too_slow_are_refused(tmp_path, seconds):
    with pytest.raises(ValueError, match=r"`seconds_per_frame` must be .*\[0.02, 10\]"):
        write_movie(tmp_path / "a.gif", moving_blob(2), circular=True, seconds_per_frame=seconds)


def test_images_that_are_not_finite_are_refused(tmp_path):
    images = moving_blob(3)
    images[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="must be finite; got NaN or infinite"):
        write_movie(tmp_path / "a.gif", images, circular=True)
    assert not (tmp_path / "a.gif").exists()
