import sys

import mrcfile
import numpy as np
import pytest

from manifactor.cryoem.files.mrc import read_header, write_stack, write_volume


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


def test_a_file_that_states_no_voxel_size_has_one_angstrom(tmp_path):
    for name, size in [("stated.mrc", 2.5), ("unstated.mrc", None)]:
        with mrcfile.new(tmp_path / name) as file:
            file.set_data(np.zeros((2, 3, 4), dtype=np.float32))
            if size:
                file.voxel_size = size
    assert read_header(tmp_path / "stated.mrc").voxel_size == 2.5
    assert read_header(tmp_path / "unstated.mrc").voxel_size is None


def test_a_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mrcfile", None)
    with pytest.raises(
        ValueError, match=r"needs the package mrcfile: pip install 'manifactor\[cryoem\]'"
    ):
        write_stack(tmp_path / "a.mrcs", np.zeros((2, 2, 2)), pixel_size=1)
