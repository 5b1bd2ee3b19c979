import io
from functools import partial

import numpy as np
import pytest
from PIL import Image, features

from manifactor.views.pictures import BLANK, grid_picture, mp4_bytes, strip, write_movie


def moving_blob(n_images, size=36):
    """A bright spot that goes from left to right."""
    y, x = np.mgrid[:size, :size]
    columns = np.linspace(5, size - 5, n_images)
    return np.stack([np.exp(-((x - c) ** 2 + (y - size / 2) ** 2) / 18) for c in columns])


def test_images_of_a_strip_stand_in_order_in_one_grey_scale():
    picture = strip(np.stack([level + np.eye(100) / 100 for level in (0.0, 0.5, 1.0)]))
    middle = picture[20, [26, 26 + 102, 26 + 204]].astype(int)
    assert picture.dtype == np.uint8
    assert picture.shape == (100 + 12, 3 * 102 + 10)
    assert middle == pytest.approx([0, 127, 253], abs=3)
    # Many wrap into rows, and small ones grow.
    assert strip(moving_blob(16, size=40)).shape == (2 * 122 + 10, 8 * 122 + 10)


def test_an_empty_bin_is_blank_and_does_not_change_the_others():
    images = 50 + moving_blob(4, size=96)
    with_empty = strip(np.concatenate([images, np.zeros((1, 96, 96))]))
    assert np.array_equal(with_empty[:, : 4 * 98 + 4], strip(images)[:, : 4 * 98 + 4])
    assert (with_empty[6:102, -100:-6] == BLANK).all()
    assert (strip(np.zeros((1, 96, 96)))[6:102, 6:102] == BLANK).all()


def test_a_grid_has_its_rows_and_columns_in_place():
    images = moving_blob(6, size=96).reshape(2, 3, 96, 96)
    plain = grid_picture(images)
    named = grid_picture(images, rows=["low", "high"], columns=["0°", "120°", "240°"])
    assert plain.shape == (2 * 98 + 10, 3 * 98 + 10)
    assert named.shape == (2 * 98 + 20 + 10, 4 * 98 + 10)
    assert np.array_equal(named[6:202, 104:398], plain[6:202, 6:300])
    assert (named[6:202, 6:102] < 100).any()
    assert (named[202:, 104:] < 100).any()


def frames_of(path):
    with Image.open(path) as movie:
        for k in range(movie.n_frames):
            movie.seek(k)
            yield np.asarray(movie.convert("L"), dtype=float)


def bright_columns(path):
    """Where, from 0 to 1, the brightness of each frame lies."""
    profiles = [frame.sum(axis=0) for frame in frames_of(path)]
    return [p @ np.arange(len(p)) / p.sum() / len(p) for p in profiles]


def test_a_movie_goes_forth_and_back_along_an_interval_and_round_along_a_circle(tmp_path):
    images, path = moving_blob(5), tmp_path / "a.gif"
    write_movie(path, images, circular=False)
    columns = bright_columns(path)
    assert np.sign(np.diff(columns)).tolist() == [1, 1, 1, 1, -1, -1, -1]
    assert columns[1] == pytest.approx(columns[7], abs=0.01)
    write_movie(path, images, circular=True, seconds_per_frame=0.25)
    assert np.sign(np.diff(bright_columns(path))).tolist() == [1, 1, 1, 1]
    with Image.open(path) as movie:
        assert (movie.info["loop"], movie.info["duration"]) == (0, 250)
        assert min(movie.size) >= 216
    # Empty bins are left out, but for one if there are no others.
    images[2] = 0
    write_movie(path, images, circular=True)
    assert len(list(frames_of(path))) == 4
    write_movie(path, np.zeros((3, 9, 9)), circular=True)
    assert len(list(frames_of(path))) == 1


movie = partial(write_movie, circular=True)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: strip(np.zeros((2, 4, 4, 4))), "`images` must be an array with 3 axes"),
        (lambda: strip(moving_blob(2), captions=["0"]), "`captions`"),
        (lambda: grid_picture(moving_blob(2)[None], rows=["a", "b"]), "`rows`"),
        (lambda: movie("a.avi", moving_blob(3)), r"must end in \.gif"),
        (lambda: movie("a.mp4", moving_blob(1)), r"two images.*a \.gif"),
        (lambda: movie("a.gif", moving_blob(2) * np.nan), "must be finite"),
        (lambda: movie("a.gif", moving_blob(2), seconds_per_frame=11), "`seconds_per_frame`"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch, draw, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        draw()
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def frames():
    images = moving_blob(4)
    return np.uint8(255 * images / images.max()).repeat(3, axis=1).repeat(3, axis=2)


def boxes(movie):
    """Content of the boxes of a movie by kind, those inside others, too."""
    found = {}
    while len(movie) >= 8:
        size, kind = int.from_bytes(movie[:4], "big"), movie[4:8]
        found[kind] = movie[:size]
        if kind in (b"moov", b"trak", b"mdia"):
            found |= boxes(movie[8:size])
        movie = movie[size:]
    return found


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no encoder of AV1")
def test_a_movie_is_a_video_of_the_frames_that_plays_once(frames):
    movie = mp4_bytes(frames, 0.25)
    assert movie == mp4_bytes(frames, 0.25)
    found = boxes(movie)
    assert not {b"meta", b"edts"} & set(found)
    assert (found[b"ftyp"][8:12], found[b"hdlr"][16:20]) == (b"isom", b"vide")
    # Four frames of a quarter of a second, in milliseconds.
    assert int.from_bytes(found[b"mvhd"][32:40], "big") == 1000
    assert int.from_bytes(found[b"tkhd"][36:44], "big") == 1000
    # The frames are those of a sequence of images that Pillow writes.
    buffer = io.BytesIO()
    first, *others = [Image.fromarray(frame).convert("RGB") for frame in frames]
    how = {"quality": 80, "subsampling": "4:2:0", "speed": 10, "duration": 250}
    first.save(buffer, "AVIF", save_all=True, append_images=others, **how)
    assert found[b"mdat"] == boxes(buffer.getvalue())[b"mdat"]
