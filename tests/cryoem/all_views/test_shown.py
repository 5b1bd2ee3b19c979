"""The direction from which images along a factor are averaged."""

from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.all_views import shown
from manifactor.cryoem.all_views.shown import choose_cone, given_cone
from manifactor.cryoem.all_views.volumes import RunMotions
from manifactor.cryoem.directions import Cone
from manifactor.cryoem.files.particles import Particles, euler_matrices, view_directions
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view import View

from ..moving import moving_model


@pytest.fixture
def few(monkeypatch):
    """Thirty images are enough."""
    monkeypatch.setattr(shown, "ENOUGH", 30)


@pytest.fixture(scope="module")
def directions():
    vectors = np.random.default_rng(0).standard_normal((2000, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_direction_shows_the_motion_and_is_populated(directions, few):
    motions = RunMotions(moving_model(), ())
    cone = choose_cone(directions, motions, 0)
    (centre,) = view_directions(np.array([[*cone.view, 0.0]]))
    assert abs(centre[0]) < 0.6  # the interval moves along x
    assert cone.n_particles >= 30
    # Seen from within 60 degrees of x only, the best direction is at their edge.
    some = directions[np.abs(directions[:, 0]) > 0.5]
    edge = choose_cone(some, motions, 0)
    (centre,) = view_directions(np.array([[*edge.view, 0.0]]))
    assert 0.4 < abs(centre[0]) < 0.8


def test_without_a_model_the_fullest_direction_is_taken(directions):
    crowd = np.concatenate([directions, np.tile([0.0, 0.0, -1.0], (500, 1))])
    cone = choose_cone(crowd, None, 0)
    assert cone.width == 10
    assert cone.view[1] > 170 or cone.view[1] < 10
    assert cone.n_particles >= 500


def test_a_cone_is_widened_until_it_has_enough_images(directions, few):
    narrow = given_cone(directions, (30.0, 60.0), 5.0)
    wide = given_cone(directions, (30.0, 60.0), None)
    widest = given_cone(directions[:20], (30.0, 60.0), None)
    assert (narrow.width, wide.width, widest.width) == (5, 15, 30)
    assert narrow.n_particles < 30 <= wide.n_particles
    # A view and the one from behind count as one.
    behind = given_cone(directions, (210.0, 120.0), None)
    assert behind.n_particles == wide.n_particles
    assert str(Cone(30.0, 60.0, 10.0, 1234)).startswith("1,234 images within 10° of rot 30°")


@pytest.mark.parametrize("size", [24, 25])
def test_images_from_behind_show_the_front_when_mirrored(size):
    model = moving_model()
    front, place = (40.0, 70.0), np.array([0.8, 0.3])
    # The opposite direction, turned in its plane and shifted.
    angles = np.array([[*front, 25.0], [front[0] + 180, 180 - front[1], 110.0]])
    shift = np.array([[2.0, -1.0], [1.0, 3.0]])
    seen = model.images(place, euler_matrices(angles), size=size)
    moved = [
        np.roll(image, (-y, -x), (0, 1))
        for image, (x, y) in zip(seen, shift.astype(int), strict=True)
    ]
    found = Particles(Path("a.star"), np.arange(2), angles=angles, shift=shift)
    facing, mirrored = found.facing(front)
    assert mirrored.tolist() == [False, True]
    view = View(ImageArray(np.stack(moved), 1.0), facing, frame=front, mirrored=mirrored)
    ((_, aligned),) = view.blocks()
    truth = model.images(place, euler_matrices(np.array([[*front, 0.0]])), size=size)[0]
    for image in aligned:
        assert np.corrcoef(image.ravel(), truth.ravel())[0, 1] > 0.99
