"""What is shown of a run: the molecule, images of about one direction, and given volumes."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor.cryoem.all_views import volumes
from manifactor.cryoem.all_views.volumes import (
    RunMotions,
    given_cone,
    read_volumes,
    rotation,
    scale_of,
)
from manifactor.cryoem.components import projection
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.files.stacks import ImageArray, write_volume
from manifactor.cryoem.one_view import View
from manifactor.runs.places import Place
from manifactor.runs.run import Run

from ..moving import moving_model

# The molecule in the coordinates of factors.


@pytest.fixture(scope="module")
def motions():
    places = np.linspace(0, 1, 200)
    interval = SimpleNamespace(coordinate=places**2, topology="interval")
    circle = SimpleNamespace(coordinate=2 * np.pi * places[:-1], topology="circle")
    return RunMotions(moving_model(), (scale_of(interval), scale_of(circle)))


def centre(image):
    """Columns and rows of the centre of mass, from the middle, in widths."""
    size = len(image)
    axis = (np.arange(size) - size // 2) / size
    mass = np.clip(image - np.median(image), 0, None)
    return mass.sum(axis=0) @ axis / mass.sum(), mass.sum(axis=1) @ axis / mass.sum()


def test_the_molecule_moves_as_its_coordinates_say(motions):
    along_z, along_y = (0.0, 0.0), (90.0, 90.0)
    left, right = (motions.image([at, 90], along_z, size=48) for at in (0.02, 0.98))
    assert centre(left)[0] < -0.02
    assert centre(right)[0] > 0.02
    up, down = (motions.image([0.25, at], along_z, size=48) for at in (0, 180))
    assert centre(up)[1] - centre(down)[1] > 0.05
    sideways = [motions.image([at, 90], along_y, size=48) for at in (0.02, 0.98)]
    assert np.abs(sideways[0] - sideways[1]).max() > 0.1 * np.ptp(sideways[0])


def test_images_along_a_motion_are_those_of_the_sliders(motions):
    found = motions.along(1, count=4, size=32, view=(20.0, 70.0))
    assert found.places.displayed.tolist() == [0, 90, 180, 270]
    # The middle of the interval, by rank, is at 1/4 of its coordinate.
    same = motions.image([0.25, 90.0], (20.0, 70.0), size=32)
    np.testing.assert_allclose(found.images[1], same, atol=0.02 * np.ptp(same))


def test_volumes_project_to_the_images(motions):
    (volume,) = motions.volumes([0, 1], [np.array([0.98]), np.array([0.0])])
    image = motions.image([0.98, 0.0], (0.0, 0.0), size=len(volume))
    assert np.corrcoef(volume.sum(axis=0).ravel(), image.ravel())[0, 1] > 0.99
    assert motions.model.voxel_size * len(volume) == pytest.approx(264, rel=0.1)
    grid = motions.volumes([0, 1], [np.array([0.1, 0.9]), np.array([0.0, 120, 240])])
    assert len(grid) == 6
    assert grid.dtype == np.float32


# The direction from which images along a factor are averaged.


@pytest.fixture
def few(monkeypatch):
    """Thirty images are enough."""
    monkeypatch.setattr(volumes, "ENOUGH", 30)


@pytest.fixture(scope="module")
def directions():
    vectors = np.random.default_rng(0).standard_normal((2000, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_cone_is_widened_until_it_has_enough_images(directions, few):
    narrow = given_cone(directions, (30.0, 60.0), 5.0)
    wide = given_cone(directions, (30.0, 60.0), None)
    widest = given_cone(directions[:20], (30.0, 60.0), None)
    assert (narrow.width, wide.width, widest.width) == (5, 15, 30)
    assert narrow.n_particles < 30 <= wide.n_particles
    # A view and the one from behind count as one.
    behind = given_cone(directions, (210.0, 120.0), None)
    assert behind.n_particles == wide.n_particles


@pytest.mark.parametrize("size", [24, 25])
def test_images_from_behind_show_the_front_when_mirrored(size):
    model = moving_model()
    front, place = (40.0, 70.0), np.array([0.8, 0.3])
    # The opposite direction, turned in its plane and shifted.
    angles = np.array([[*front, 25.0], [front[0] + 180, 180 - front[1], 110.0]])
    shift = np.array([[2.0, -1.0], [1.0, 3.0]])
    seen = model.images(place, euler_matrices(angles), size=size)
    pairs = zip(seen, shift.astype(int), strict=True)
    moved = np.stack([np.roll(image, (-y, -x), (0, 1)) for image, (x, y) in pairs])
    found = Particles(Path("a.star"), np.arange(2), angles=angles, shift=shift)
    facing, mirrored = found.facing(front)
    assert mirrored.tolist() == [False, True]
    view = View(ImageArray(moved, 1.0), facing, frame=front, mirrored=mirrored)
    ((_, aligned),) = view.blocks()
    truth = model.images(place, rotation(front), size=size)[0]
    for image in aligned:
        assert np.corrcoef(image.ravel(), truth.ravel())[0, 1] > 0.99


# Volumes of another program along a factor.

SIDE = 24


def blob(x, y, z):
    """A dot at a point, in voxels from the centre, in an array indexed by z, y, x."""
    axis = np.arange(SIDE) - SIDE // 2
    squared = sum(np.ix_(*[(axis - at) ** 2 for at in (z, y, x)]))
    return np.exp(-squared / 4).astype(np.float32)


@pytest.fixture
def run(tmp_path):
    """A run of 200 samples on an interval and a circle."""
    samples = np.random.default_rng(0).uniform(size=(200, 2)) * [1, 2 * np.pi]
    np.save(tmp_path / "z.npy", samples)
    places = Place(samples[:, 0], "interval"), Place(samples[:, 1], "circle")
    return Run(tmp_path, {"input": str(tmp_path / "z.npy")}, np.arange(200), places)


@pytest.fixture
def folder(tmp_path):
    """Six volumes in which a dot moves along x."""
    out = tmp_path / "exported" / "volumes"
    out.mkdir(parents=True)
    for k in range(6):
        write_volume(out / f"vol_{k:03d}.mrc", blob(k - 3, 0, 0), pixel_size=5.0)
    return out


def test_volumes_lie_where_their_points_do(run, folder):
    z = np.load(run.input)
    # Down the interval, all around 90 degrees.
    near = np.flatnonzero(np.abs(z[:, 1] - np.pi / 2) < 0.5)
    chosen = near[np.argsort(-z[near, 0])][-6:]
    points = folder.parent / "z_values.txt"
    np.savetxt(points, z[chosen])
    found = read_volumes(folder.parent, run)  # the folder of an export
    assert found.factor == 0
    np.testing.assert_allclose(found.place.displayed, np.sort(z[chosen, 0]))
    assert found.names[0] == "vol_005.mrc"
    for text in ("1 2\n3 4\n", "1 2\n" * 5 + "3 1e200\n"):
        points.write_text(text)
        with pytest.raises(ValueError, match="a line of 2 finite numbers for each of 6 volumes"):
            read_volumes(folder, run)


def test_volumes_that_cannot_be_shown_are_refused(run, folder, tmp_path, monkeypatch):
    write_volume(tmp_path / "a.mrc", np.zeros((4, 6, 6), np.float32), pixel_size=1)
    sheet = replace(run, places=(Place(np.zeros((200, 2)), "other"), run.places[1]))
    for where, given, factor, message in (
        (tmp_path / "none", run, 1, r"folder of \.mrc files; .*none is not"),
        (folder, run, 3, "must be one of the run's 1 to 2; got 3"),
        (folder, sheet, 1, r"those of this run are factors \[2\]"),
        (tmp_path, run, 1, "must be cubes; they have 4 x 6 x 6 voxels"),
    ):
        with pytest.raises(ValueError, match=message):
            read_volumes(where, given, factor=factor)
    monkeypatch.setattr(volumes, "MOST", 5)
    with pytest.raises(ValueError, match="at most 5 volumes are shown"):
        read_volumes(folder, run, factor=1)


@pytest.mark.parametrize("view", [(0.0, 0.0), (30.0, 60.0), (-110.0, 130.0)])
def test_a_projection_is_what_the_direction_shows(view):
    points = np.array([5.0, 2.0, -3.0])
    image = projection(blob(*points), rotation(view)[0])
    expected = rotation(view)[0] @ points
    np.testing.assert_allclose(SIDE * np.array(centre(image)), expected[:2], atol=0.05)
