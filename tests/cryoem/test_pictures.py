import sys

import numpy as np
import pytest
from PIL import Image

from manifactor.cryoem.pictures import (
    BLANK,
    as_grey,
    each_as_grey,
    grid_picture,
    projections,
    strip,
    write_png,
)

from .blobs import moving_blob


def test_a_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ValueError, match=r"pip install 'manifactor\[cryoem\]'"):
        write_png(tmp_path / "a.png", np.zeros((2, 2), dtype=np.uint8))


def test_volumes_are_seen_from_where_their_change_is_seen():
    volumes = np.zeros((4, 8, 8, 8))
    for i in range(4):
        volumes[i, 6, 3, i] = 1.0  # moves along x, near the top: not to be seen along x
    images = projections(volumes)
    # z points up.
    assert [tuple(np.argwhere(image)[0]) for image in images] == [(1, i) for i in range(4)]


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
    captions = ["0°", "a caption much too long for its image", "0.5"]
    plain, named = strip(images), strip(images, captions=captions)
    line = named[6 + 96 : 6 + 96 + 18]
    assert named.shape[1] == plain.shape[1]
    assert all((line[:, 6 + 98 * k : 6 + 98 * k + 96] < 100).any() for k in range(3))


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


def test_pictures_refuse_volumes_and_missing_captions():
    with pytest.raises(ValueError, match="`images` must be an array with 3 axes"):
        strip(np.zeros((2, 3, 3, 3)))
    with pytest.raises(ValueError, match="`captions`"):
        strip(moving_blob(2), captions=["0"])
    with pytest.raises(ValueError, match="`rows`"):
        grid_picture(moving_blob(2)[None], rows=["a", "b"])


def test_a_png_comes_back_as_it_was(tmp_path):
    picture = strip(moving_blob(3), captions="abc")
    write_png(tmp_path / "strip.png", picture)
    with Image.open(tmp_path / "strip.png") as image:
        assert np.array_equal(np.asarray(image), picture)


def test_single_images_have_grey_scales_of_their_own():
    blob = moving_blob(2, size=40)
    images = np.stack([blob[0], 1000 * blob[1], np.ones((40, 40))])
    grey = each_as_grey(images)
    for image, found in zip(images, grey, strict=True):
        assert np.array_equal(found, as_grey(image[None])[0])


def test_the_grey_scale_of_a_large_image_is_read_from_some_of_its_pixels():
    noise = np.random.default_rng(0).normal(size=(3, 256, 256)).astype(np.float32)
    exact = np.stack([as_grey(image[None])[0] for image in noise]).astype(int)
    # Of 255 levels.
    assert np.abs(each_as_grey(noise) - exact).mean() < 8
