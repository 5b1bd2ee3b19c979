"""The molecule from places that another program told, and which directions show a motion."""

from dataclasses import replace

import mrcfile
import numpy as np
import pytest

from manifactor.cryoem.all_views.model import UNKNOWN, model_of_places, visibility
from manifactor.cryoem.all_views.motions import PlaceFeatures
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.cryoem.files.stacks import write_volume

from ..moving import BOX, moving_model, moving_views
from .molecules import random_rotations, shifting, transforms_of, turning

N = 500
VIEWS = moving_views()


@pytest.fixture(scope="module")
def told():
    """Images of a molecule that shifts along x and turns about z, and its places."""
    rng = np.random.default_rng(0)
    shift, turn = rng.uniform(size=(2, N))
    points = shifting(turning(2 * np.pi * turn), 0.3 * (shift - 0.5))
    return transforms_of(points, random_rotations(N), noise=1.0, scale=3.0), shift, turn


def model(images, topologies, *places):
    columns = [place.reshape(N, -1) for place in places]
    return model_of_places(images, topologies, columns, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def found(told):
    images, shift, turn = told
    return model(images, ["interval", "circle"], shift, turn)


def test_the_molecule_is_that_of_the_places(found):
    view = euler_matrices(np.array([[90.0, 90.0, 0.0]]))
    for shift, turn in ((0.1, 0.2), (0.9, 0.7)):
        state = found.motions.features(np.array([[shift, turn]])) @ found.volumes
        seen = found.grid.slices(view) @ found.grid.sharpen(state)[0]
        turned = turning(np.array([2 * np.pi * turn]))
        truth = transforms_of(shifting(turned, np.array([0.3 * (shift - 0.5)])), view).values[0]
        cosine = np.abs(np.vdot(seen, truth)) / np.linalg.norm(seen)
        assert cosine / np.linalg.norm(truth) > 0.97


def test_a_direction_along_the_motion_shows_nothing_of_it(found):
    views = found.views
    along_x = np.abs(views.cells.centres[:, 0])
    deviation = views.deviations[:, 0]
    blind = deviation[(along_x > 0.97) & (views.counts > 0)]
    seeing = deviation[(along_x < 0.5) & (views.counts > 0)]
    assert np.nanmin(blind) > 2 * np.nanmedian(seeing)
    assert np.nanmax(views.deviations) < UNKNOWN + 1e-9
    assert (found.consistency > 0.8).all()


def test_slopes_of_a_circle_are_those_of_its_harmonics():
    turn = np.random.default_rng(0).uniform(size=(50, 1))
    slopes = np.sort(np.diag(PlaceFeatures.of(("circle",), [turn]).slopes(0)))
    # Once around, sqrt(2) cos(2 pi k t) has the mean squared slope (2 pi k)^2.
    np.testing.assert_allclose(slopes[[0, 3]], (2 * np.pi * np.array([1, 2])) ** 2, rtol=1e-3)


def test_a_motion_along_x_is_not_seen_from_there():
    along, around = (visibility(VIEWS, motion) for motion in (0, 1))
    rot, tilt = along["axis"]
    assert abs(np.sin(np.radians(rot))) < 0.05
    assert tilt == pytest.approx(90, abs=3)
    assert 0 < along["blind"] == pytest.approx(along["blind_particles"])
    assert along["blind"] + along["shown"] == pytest.approx(1)
    assert around == {"shown": 1, "blind": 0, "blind_particles": 0, "axis": None}


@pytest.mark.parametrize("size", [40, 45])
def test_a_volume_lies_on_a_map_of_relion(tmp_path, size):
    model = replace(moving_model(), size=size)
    write_volume(tmp_path / "a.mrc", model.density([1.0, 0.2]), pixel_size=model.voxel_size)
    with mrcfile.open(tmp_path / "a.mrc") as file:
        found, header = file.data, file.header
        assert file.voxel_size.x == pytest.approx(BOX / size)
    starts = (header.nxstart, header.nystart, header.nzstart)
    assert [*starts, *(float(header.origin[axis]) for axis in "xyz")] == 6 * [0]
    # RELION's origin is the voxel size // 2. The interval has moved this density along x.
    axis = (np.arange(size) - size // 2) / size
    z, y, x = np.meshgrid(axis, axis, axis, indexing="ij")
    truth = np.zeros((size, size, size))
    # The first polynomial is the root of 3 at its end; harmonics have unit variance.
    turn, both = 0.4 * np.pi, np.sqrt(2) / 2
    along = (np.sqrt(3) / 2, both * np.cos(turn), both * np.sin(turn))
    for weight, centre in zip(along, np.eye(3) / 5, strict=True):
        for side in (1, -1):
            squares = [(a - side * c) ** 2 for a, c in zip((x, y, z), centre, strict=True)]
            truth += (1 + side * weight) * np.exp(-sum(squares) / 0.02)
    assert np.abs(found - truth).max() < 0.02 * truth.max()
    assert abs((found * x).sum() / found.sum() - (truth * x).sum() / truth.sum()) < 0.01 / size
