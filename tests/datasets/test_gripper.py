import numpy as np
import pytest

from manifactor.datasets.gripper import GripperImages


@pytest.fixture(scope="module")
def gripper():
    return GripperImages(width=0.04, n_pixels=101, noise=0.0)


@pytest.fixture(scope="module")
def drawn(gripper):
    return gripper(20, np.random.RandomState(0))


def brightness(X, points):
    """Brightness of the pixels next to points."""
    column, row = np.rint((points.T + 1) * 50).astype(int)
    return X.reshape(len(X), 101, 101)[np.arange(len(X)), row, column]


def test_the_lamp_shows_the_direction_of_the_wrist(gripper, drawn):
    X, (direction, _) = drawn
    assert (brightness(X, gripper.lamp * direction) > 0.9).all()


def test_the_fingers_stand_across_and_open(gripper, drawn):
    X, (direction, opening) = drawn
    across = np.column_stack([-direction[:, 1], direction[:, 0]])
    finger = (0.2 + 0.5 * opening) * across
    assert (brightness(X, finger) > 0.9).all()
    assert (brightness(X, -finger) > 0.9).all()
    assert (brightness(X, 0.9 * across) < 0.01).all()


def test_noise_is_in_units_of_a_finger(gripper, drawn):
    noisy, _ = GripperImages(width=0.04, n_pixels=101, noise=0.3)(20, np.random.RandomState(0))
    assert np.std(noisy - drawn[0]) == pytest.approx(0.3, rel=0.01)
