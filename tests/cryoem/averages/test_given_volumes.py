"""Volumes of another program along a factor."""

from dataclasses import replace

import numpy as np
import pytest

from manifactor.cryoem.all_views import shown
from manifactor.cryoem.all_views.shown import read_volumes
from manifactor.cryoem.all_views.volumes import rotation
from manifactor.cryoem.components import projection
from manifactor.cryoem.files.mrc import write_volume
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.runs.places import Place
from manifactor.runs.run import Run

SIDE = 24


def blob(x, y, z):
    """A dot at a point, in voxels from the centre, in an array indexed by z, y, x."""
    axis = np.arange(SIDE) - SIDE // 2
    squared = [(axis - at) ** 2 for at in (z, y, x)]
    return np.exp(-(squared[0][:, None, None] + squared[1][:, None] + squared[2]) / 4).astype(
        np.float32
    )


def centre(image):
    axis = np.arange(SIDE) - SIDE // 2
    return image.sum(axis=0) @ axis / image.sum(), image.sum(axis=1) @ axis / image.sum()


@pytest.fixture
def run(tmp_path):
    """A run of 200 samples on an interval and a circle."""
    samples = np.random.default_rng(0).uniform(size=(200, 2)) * [1, 2 * np.pi]
    np.save(tmp_path / "z.npy", samples)
    places = Place(samples[:, 0], "interval"), Place(samples[:, 1], "circle")
    record = {"input": str(tmp_path / "z.npy")}
    return Run(tmp_path, record, np.arange(200), places)


@pytest.fixture
def folder(tmp_path):
    """Six volumes in which a dot moves along x."""
    out = tmp_path / "exported" / "volumes"
    out.mkdir(parents=True)
    for k in range(6):
        write_volume(out / f"vol_{k:03d}.mrc", blob(k - 3, 0, 0), pixel_size=5.0)
    return out


def test_volumes_at_even_distances_are_the_bins_of_an_export(run, folder):
    with pytest.raises(ValueError, match="Say which with --volumes-along, one of"):
        read_volumes(folder, run)
    found = read_volumes(folder, run, factor=2)
    np.testing.assert_allclose(found.place.displayed, np.arange(6) * 60)
    assert found.factor == 1
    assert found.width == SIDE * 5.0
    assert found.names[found.nearest(350)] == "vol_000.mrc"
    assert found.names[found.nearest(130)] == "vol_002.mrc"
    x, y = centre(found.image(5, (0.0, 0.0)))
    assert (round(x), round(y)) == (2, 0)


def test_volumes_lie_where_their_points_do(run, folder):
    z = np.load(run.input)
    # Down the interval, all around 90 degrees.
    near = np.flatnonzero(np.abs(z[:, 1] - np.pi / 2) < 0.5)
    chosen = near[np.argsort(-z[near, 0])][-6:]
    np.savetxt(folder.parent / "z_values.txt", z[chosen])
    found = read_volumes(folder.parent, run)  # the folder of an export
    assert found.factor == 0
    np.testing.assert_allclose(found.place.displayed, np.sort(z[chosen, 0]))
    assert found.names[0] == "vol_005.mrc"
    (folder.parent / "z_values.txt").write_text("1 2\n3 4\n")
    with pytest.raises(ValueError, match="a line of 2 finite numbers for each of 6 volumes"):
        read_volumes(folder, run)
    (folder.parent / "z_values.txt").write_text("1 2\n" * 5 + "3 1e200\n")
    with pytest.raises(ValueError, match="finite numbers"):
        read_volumes(folder, run)


def test_volumes_that_cannot_be_shown_are_refused(run, folder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"folder of \.mrc files; .*none is not"):
        read_volumes(tmp_path / "none", run, factor=1)
    with pytest.raises(ValueError, match="must be one of the run's 1 to 2; got 3"):
        read_volumes(folder, run, factor=3)
    sheet = Place(np.zeros((200, 2)), "other")
    with pytest.raises(
        ValueError, match=r"an interval or a circle; those of this run are factors \[2\]"
    ):
        read_volumes(folder, replace(run, places=(sheet, run.places[1])), factor=1)
    monkeypatch.setattr(shown, "MOST", 5)
    with pytest.raises(ValueError, match="at most 5 volumes are shown"):
        read_volumes(folder, run, factor=1)
    flat = tmp_path / "flat"
    flat.mkdir()
    write_volume(flat / "a.mrc", np.zeros((4, 6, 6), np.float32), pixel_size=1)
    with pytest.raises(ValueError, match="must be cubes; they have 4 x 6 x 6 voxels"):
        read_volumes(flat, run, factor=1)


def test_a_projection_is_what_the_direction_shows():
    points = np.array([5.0, 2.0, -3.0])
    for view in ((0.0, 0.0), (30.0, 60.0), (-110.0, 130.0)):
        expected = euler_matrices([[*view, 0.0]])[0] @ points
        image = projection(blob(*points), rotation(view)[0])
        np.testing.assert_allclose(centre(image), expected[:2], atol=0.05)
