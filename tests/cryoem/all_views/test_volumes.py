"""The molecule of a run of all views, in the coordinates of its factors."""

from types import SimpleNamespace

import numpy as np
import pytest

from manifactor.cryoem.all_views.model import angles_of
from manifactor.cryoem.all_views.volumes import RunMotions, scale_of

from ..moving import moving_model


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


def test_even_places_are_ranks_and_a_circle_has_no_end(motions):
    interval, circle = motions.scales
    coordinates = np.array([0.04, 0.25, 0.81])
    np.testing.assert_allclose(interval.places_at(coordinates), np.sqrt(coordinates), atol=0.01)
    even = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(interval.even_places(interval.coordinates(even)), even)
    below, above = circle.places_at(np.array([359.9, 0.1]))
    assert (above - below) % 1 < 0.01
    np.testing.assert_allclose(circle.places_at(np.array([90.0, 450])), 0.25, atol=0.01)


def test_the_best_view_has_particles_and_is_not_along_the_motion(motions):
    rot, tilt = motions.best_view(0)
    x = np.sin(np.radians(tilt)) * np.cos(np.radians(rot))
    assert abs(x) < 0.3
    assert (rot, tilt) != angles_of(motions.model.views.directions[:1])[0]


def test_images_along_a_motion_are_those_of_the_sliders(motions):
    found = motions.along(1, count=4, size=32, view=(20.0, 70.0))
    assert found.places.displayed.tolist() == [0, 90, 180, 270]
    # The middle of the interval, by rank, is at 1/4 of its coordinate.
    same = motions.image([0.25, 90.0], (20.0, 70.0), size=32)
    np.testing.assert_allclose(found.images[1], same, atol=0.02 * np.ptp(same))


def test_volumes_project_to_the_images(motions):
    (volume,) = motions.volumes([0, 1], [np.array([0.98]), np.array([0.0])])
    image = motions.image([0.98, 0.0], (0.0, 0.0), size=len(volume))
    projection = volume.sum(axis=0)
    assert np.corrcoef(projection.ravel(), image.ravel())[0, 1] > 0.99
    assert motions.model.voxel_size * len(volume) == pytest.approx(264, rel=0.1)
    grid = motions.volumes([0, 1], [np.array([0.1, 0.9]), np.array([0.0, 120, 240])])
    assert len(grid) == 6
    assert grid.dtype == np.float32
