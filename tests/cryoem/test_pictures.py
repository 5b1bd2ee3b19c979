import sys

import mrcfile
import numpy as np
import pytest
from PIL import Image

from manifactor.cryoem import pictures
from manifactor.cryoem.pictures import (
    chimerax_script,
    grid_picture,
    projections,
    strip,
    write_movie,
    write_png,
    write_stack,
    write_volume,
)


def moving_blob(n_images, size=36):
    """A bright spot that goes from left to right."""
    y, x = np.mgrid[:size, :size]
    return np.stack(
        [
            np.exp(-((x - c) ** 2 + (y - size / 2) ** 2) / 18)
            for c in np.linspace(5, size - 5, n_images)
        ]
    )


def bright_column(picture):
    """Where, from 0 to 1, the brightness of a picture lies."""
    profile = np.asarray(picture, dtype=float).sum(axis=0)
    return (profile @ np.arange(len(profile))) / profile.sum() / len(profile)


def frames(path):
    with Image.open(path) as movie:
        for k in range(movie.n_frames):
            movie.seek(k)
            yield np.asarray(movie.convert("L"))


def test_a_stack_comes_back_with_its_pixel_size(tmp_path, rng):
    images = rng.normal(size=(4, 8, 6))
    write_stack(tmp_path / "means.mrcs", images, pixel_size=1.35)
    with mrcfile.open(tmp_path / "means.mrcs") as file:
        assert file.is_image_stack()
        assert file.voxel_size.x == pytest.approx(1.35)
        assert file.voxel_size.y == pytest.approx(1.35)
        assert file.data.dtype == np.float32
        assert np.array_equal(file.data, images.astype(np.float32))
    assert mrcfile.validate(tmp_path / "means.mrcs")


def test_a_volume_comes_back_with_its_voxel_size(tmp_path, rng):
    volume = rng.normal(size=(5, 6, 7))
    write_volume(tmp_path / "map.mrc", volume, pixel_size=2)
    with mrcfile.open(tmp_path / "map.mrc") as file:
        assert file.is_volume()
        assert file.voxel_size.tolist() == (2, 2, 2)
        assert np.array_equal(file.data, volume.astype(np.float32))


def test_wrong_pixel_sizes_and_shapes_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match="`pixel_size` must be a number above 0; got 0"
    ):
        write_stack(tmp_path / "a.mrcs", np.zeros((2, 3, 3)), pixel_size=0)
    with pytest.raises(
        ValueError, match=r"`volume` must have three axes; got shape \(3, 3\)"
    ):
        write_volume(tmp_path / "a.mrc", np.zeros((3, 3)), pixel_size=1)
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mrcfile", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(
        ValueError,
        match=r"needs the package mrcfile: pip install 'manifactor\[cryoem\]'",
    ):
        write_stack(tmp_path / "a.mrcs", np.zeros((2, 2, 2)), pixel_size=1)
    with pytest.raises(
        ValueError, match=r"needs the package PIL: pip install 'manifactor\[cryoem\]'"
    ):
        write_png(tmp_path / "a.png", np.zeros((2, 2), dtype=np.uint8))


def test_volumes_are_seen_from_where_their_change_is_seen():
    volumes = np.zeros((4, 8, 8, 8))
    for i in range(4):
        volumes[i, 6, 3, i] = 1.0  # moves along x, near the top: not to be seen along x
    images = projections(volumes)
    assert [tuple(np.argwhere(image)[0]) for image in images] == [
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 3),
    ]  # z points up


def test_images_of_a_strip_stand_in_order_in_one_grey_scale():
    picture = strip(np.stack([level + np.eye(100) / 100 for level in (0.0, 0.5, 1.0)]))
    middle = picture[20, [26, 26 + 102, 26 + 204]].astype(int)
    assert picture.dtype == np.uint8
    assert picture.shape == (100 + 12, 3 * 102 + 10)
    assert middle == pytest.approx([0, 127, 253], abs=3)


def test_many_images_wrap_into_rows_and_small_ones_grow():
    picture = strip(moving_blob(16, size=40))
    assert picture.shape == (2 * 122 + 10, 8 * 122 + 10)


def test_captions_add_a_line_of_dark_letters_under_the_images():
    images = moving_blob(3, size=96)
    plain, named = (
        strip(images),
        strip(images, captions=["0°", "a caption much too long for its image", "0.5"]),
    )
    line = named[6 + 96 : 6 + 96 + 18]
    assert named.shape[1] == plain.shape[1]
    assert all((line[:, 6 + 98 * k : 6 + 98 * k + 96] < 100).any() for k in range(3))


def test_an_empty_bin_is_blank_and_does_not_change_the_others():
    images = 50 + moving_blob(4, size=96)
    with_empty = strip(np.concatenate([images, np.zeros((1, 96, 96))]))
    assert np.array_equal(with_empty[:, : 4 * 98 + 4], strip(images)[:, : 4 * 98 + 4])
    assert (with_empty[6:102, -100:-6] == pictures.BLANK).all()
    assert (strip(np.zeros((1, 96, 96)))[6:102, 6:102] == pictures.BLANK).all()


def test_a_grid_has_its_rows_and_columns_in_place():
    images = moving_blob(6, size=96).reshape(2, 3, 96, 96)
    plain = grid_picture(images)
    named = grid_picture(images, rows=["low", "high"], columns=["0°", "120°", "240°"])
    assert plain.shape == (2 * 98 + 10, 3 * 98 + 10)
    assert named.shape == (2 * 98 + 20 + 10, 4 * 98 + 10)
    assert np.array_equal(named[6:202, 104:398], plain[6:202, 6:300])
    assert (named[6:202, 6:102] < 100).any()
    assert (named[202:, 104:] < 100).any()


def test_pictures_refuse_volumes_and_missing_captions():
    with pytest.raises(
        ValueError,
        match=r"`images` must be an array with 3 axes.*got shape \(2, 3, 3, 3\)",
    ):
        strip(np.zeros((2, 3, 3, 3)))
    with pytest.raises(
        ValueError, match="`captions` must have one caption for each of 2; got 1"
    ):
        strip(moving_blob(2), captions=["0"])
    with pytest.raises(
        ValueError, match="`rows` must have one caption for each of 1; got 2"
    ):
        grid_picture(moving_blob(2)[None], rows=["a", "b"])


def test_a_png_comes_back_as_it_was(tmp_path):
    picture = strip(moving_blob(3), captions="abc")
    write_png(tmp_path / "strip.png", picture)
    with Image.open(tmp_path / "strip.png") as image:
        assert np.array_equal(np.asarray(image), picture)


def test_a_movie_along_an_interval_goes_forth_and_back(tmp_path):
    write_movie(tmp_path / "a.gif", moving_blob(5), circular=False)
    columns = [bright_column(frame) for frame in frames(tmp_path / "a.gif")]
    assert len(columns) == 8
    assert np.sign(np.diff(columns)).tolist() == [1, 1, 1, 1, -1, -1, -1]
    assert columns[1] == pytest.approx(columns[7], abs=0.01)


def test_a_movie_along_a_circle_goes_round(tmp_path):
    write_movie(
        tmp_path / "a.gif", moving_blob(5), circular=True, seconds_per_frame=0.25
    )
    with Image.open(tmp_path / "a.gif") as movie:
        assert movie.n_frames == 5
        assert movie.info["loop"] == 0
        assert movie.info["duration"] == 250
        assert min(movie.size) >= 216
    assert (
        np.diff([bright_column(frame) for frame in frames(tmp_path / "a.gif")]) > 0
    ).all()


def test_a_movie_leaves_empty_bins_out(tmp_path):
    images = moving_blob(5)
    images[2] = 0
    write_movie(tmp_path / "a.gif", images, circular=True)
    assert len(list(frames(tmp_path / "a.gif"))) == 4
    write_movie(tmp_path / "b.gif", np.zeros((3, 9, 9)), circular=True)
    assert len(list(frames(tmp_path / "b.gif"))) == 1


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
