import numpy as np
import pytest

from manifactor.cryoem.simulate.ion_channel import channel
from manifactor.cryoem.simulate.projection import ROUTES, Frame, splat


def painter(route="atoms", size=54):
    """The images of states that the test chooses."""
    reach = np.array([40.0, 40.0])
    frame = Frame(size, 4.0, -30.0).around(channel(), reach)
    return ROUTES[route](channel(), frame, reach, 4.0)


@pytest.mark.parametrize("route", ["atoms", "volumes"])
def test_turning_the_rotor_by_a_quarter_gives_the_same_image(route):
    images = painter(route)(
        np.array([0.2, 0.2 + np.pi / 2, 0.2 + np.pi / 4]), np.array([[9.0, 0.0]] * 3)
    )
    np.testing.assert_allclose(images[0], images[1], atol=1e-3 * images[0].max())
    assert np.abs(images[2] - images[0]).max() > 0.05 * images[0].max()


def test_the_rotor_moves_the_upper_part_and_the_stretch_the_lower():
    images = painter()(np.array([0.0, 0.6, 0.0]), np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 30.0]]))
    change = np.abs(images[1:] - images[0]).sum(axis=2)
    by_turn, by_stretch = change @ np.arange(54) / change.sum(axis=1)
    assert by_turn < 25
    assert by_stretch > 32


def test_a_stretch_along_y_moves_the_mass_to_the_right_and_one_along_x_downwards():
    images = painter(size=64)(np.zeros(3), np.array([[0.0, 0.0], [0.0, 40.0], [40.0, 0.0]]))
    mass = images.sum(axis=(1, 2))
    rows, columns = (
        images.sum(axis=2) @ np.arange(64) / mass,
        images.sum(axis=1) @ np.arange(64) / mass,
    )
    way = 40 * channel().lift.mean() / 4  # pixels
    np.testing.assert_allclose(columns - columns[0], [0, way, 0], atol=1e-3)
    np.testing.assert_allclose(rows - rows[0], [0, 0, way / 2], atol=1e-3)  # sin 30 degrees = 1/2


@pytest.mark.parametrize("shape", [(6, 7), (4, 5, 6)])
def test_splatting_keeps_mass_and_centre_of_mass(shape, rng):
    at = rng.uniform(size=(len(shape), 50)) * (np.array(shape)[:, None] - 1)
    at[:, 0] = np.array(shape) - 1  # the far corner
    weights = rng.uniform(1, 2, size=50)
    grid = splat(at, weights, shape)
    assert grid.sum() == pytest.approx(weights.sum())
    axes = np.indices(shape).reshape(len(shape), -1)
    np.testing.assert_allclose(axes @ grid.ravel(), at @ weights)
