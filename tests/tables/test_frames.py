"""Folders of pictures, pages of a file, and films."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from PIL import Image

from manifactor.tables.files import frame_names, is_frames, left_out, read_frames, read_table
from manifactor.tables.stores import stored_table

GREY = np.arange(80, dtype=np.uint8).reshape(10, 8)
COLOUR = np.stack([GREY, GREY + 1, GREY + 2], axis=-1)


def write(folder, **pictures):
    """Write arrays, images, or bytes; a name like a_png is that of a.png."""
    for name, content in pictures.items():
        path = folder / name.replace("_", ".")
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            shown = Image.fromarray(content) if isinstance(content, np.ndarray) else content
            shown.save(path)
    return folder


def test_pictures_come_in_the_order_of_their_numbers_and_others_are_named(tmp_path):
    write(tmp_path, img10_png=GREY + 10, img2_png=GREY, IMG_TXT=b"", img11_tif=GREY + 11)
    (tmp_path / ".hidden.png").write_bytes(b"")
    assert is_frames(tmp_path)
    assert frame_names(tmp_path) == ("img2.png", "img10.png", "img11.tif")
    assert np.array_equal(read_frames(tmp_path), np.stack([GREY, GREY + 10, GREY + 11]))
    assert left_out(tmp_path) == (f"{tmp_path} also holds 'IMG.TXT', not fitted.",)
    table = read_table(tmp_path)
    assert table.samples.dtype == np.float32
    assert table.samples.shape == (3, 80)
    assert table.columns.image == (10, 8)
    # Beside volumes, pictures show them.
    assert not is_frames(write(tmp_path, v_mrc=b""))


DEEP = GREY.astype(np.uint16) * 800
CLEAR = np.dstack([COLOUR, np.where(GREY < 40, 0, 255).astype(np.uint8)])
CLEAR_GREY = Image.merge("LA", [Image.fromarray(GREY), Image.fromarray(CLEAR[..., 3])])


@pytest.mark.parametrize(
    ("pictures", "expected"),
    [
        # Grey values of more than 8 bits are read as they are.
        ({"a_png": DEEP, "b_tif": DEEP, "c_tif": np.float32(GREY)}, [DEEP, DEEP, GREY]),
        # Among colours, grey pictures are in colour.
        ({"a_png": COLOUR, "b_png": GREY}, [COLOUR, np.dstack([GREY] * 3)]),
        # What is transparent is black.
        ({"a_png": CLEAR}, [np.where(GREY[..., None] < 40, 0, COLOUR)]),
        ({"a_png": CLEAR_GREY}, [np.where(GREY < 40, 0, GREY)]),
    ],
)
def test_pictures_become_grey_values_or_colours(tmp_path, pictures, expected):
    assert np.array_equal(read_frames(write(tmp_path, **pictures)), expected)


def test_pictures_are_turned_as_their_camera_was(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter, clockwise
    Image.fromarray(GREY).save(tmp_path / "a.png", exif=turned)
    assert np.array_equal(read_frames(tmp_path)[0], np.rot90(GREY, -1))


def claiming(width):
    """A picture whose header claims that many columns."""
    return b"P5 %d 30000 255\n" % width


@pytest.mark.parametrize(
    ("pictures", "message"),
    [
        ({"b_png": GREY[1:]}, r"a.png has 10 x 8 pixels and b.png has 9 x 8 pixels"),
        ({"b_png": b"no picture"}, r"b.png is damaged"),
        ({"b_png": claiming(2600)}, r"b.png holds .* bytes and claims 78,"),
        ({"b_png": GREY.astype(np.uint16)}, r"one range of values"),
    ],
)
def test_pictures_that_cannot_be_read_say_what_must_hold(tmp_path, pictures, message):
    with pytest.raises(ValueError, match=message):
        read_frames(write(tmp_path, a_png=GREY, **pictures))


def test_frames_of_a_film_are_images_in_the_order_of_red_green_and_blue(tmp_path, monkeypatch):
    (tmp_path / "a.mp4").write_bytes(b"film")
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(
        ValueError, match=r"needs the package cv2: pip install 'manifactor\[video\]'"
    ):
        read_frames(tmp_path / "a.mp4")

    def film(frames):
        read = iter([(True, frame) for frame in frames] + [(False, None)])
        return SimpleNamespace(VideoCapture=lambda path: SimpleNamespace(read=read.__next__))

    monkeypatch.setitem(sys.modules, "cv2", film([COLOUR[..., ::-1], COLOUR[..., ::-1] + 5]))
    assert np.array_equal(read_frames(tmp_path / "a.mp4"), [COLOUR, COLOUR + 5])
    monkeypatch.setitem(sys.modules, "cv2", film([]))
    with pytest.raises(ValueError, match="no frames"):
        read_frames(tmp_path / "a.mp4")


def test_arrays_of_images_are_read_as_rows_also_in_parts(tmp_path):
    images = np.stack([COLOUR + k for k in range(5)])
    np.save(tmp_path / "a.npy", images)
    np.savez(tmp_path / "a.npz", images=images)
    zarr.open_array(tmp_path / "a.zarr", mode="w", shape=images.shape, dtype="u1")[:] = images
    for name in ("a.npy", "a.npz", "a.zarr"):
        table = read_table(tmp_path / name)
        assert np.array_equal(table.samples, images.reshape(5, -1))
        assert table.columns.image == (10, 8, 3)
    for name in ("a.npy", "a.zarr"):
        table = stored_table(tmp_path / name)
        assert table.columns.image == (10, 8, 3)
        assert np.array_equal(table.take(np.array([1, 3])), images[[1, 3]].reshape(2, -1))
