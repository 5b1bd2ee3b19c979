"""Facts about images in one view, and about volumes."""

import numpy as np
import pytest

from manifactor.cryoem.one_view import Optics
from manifactor.cryoem.simulate.one_view import simulate_particles, simulate_volumes, splat

SMALL = {"size": 54, "pixel_size": 4.0}


def simulate(n_samples, **settings):
    return simulate_particles(n_samples, **{**SMALL, "random_state": 0, **settings})


@pytest.mark.parametrize("shape", [(6, 7), (4, 5, 6)])
def test_splatting_keeps_mass_and_centre_of_mass(shape, rng):
    at = rng.uniform(size=(len(shape), 50)) * (np.array(shape)[:, None] - 1)
    at[:, 0] = np.array(shape) - 1  # the far corner
    weights = rng.uniform(1, 2, size=50)
    grid = splat(at, weights, shape)
    assert grid.sum() == pytest.approx(weights.sum())
    axes = np.indices(shape).reshape(len(shape), -1)
    np.testing.assert_allclose(axes @ grid.ravel(), at @ weights)


@pytest.mark.parametrize("settings", [{}, {"defocus": (10000.0, 20000.0), "motions": "xy"}])
def test_the_same_seed_gives_the_same_images(settings):
    first, again, other = (simulate(8, **settings, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.images, again.images)
    np.testing.assert_array_equal(first.angle, again.angle)
    assert not np.array_equal(first.images, other.images)
    assert not first.shift.any()
    assert 1 < np.abs(simulate(5, size=64, in_plane=True).shift).max() <= 3


def test_the_truth_is_a_circle_and_an_interval_or_a_sheet():
    one, two = simulate(6, motions="x"), simulate(6, motions="xy")
    assert [t.shape for t in one.truth] == [(6, 2), (6, 1)]
    assert [t.shape for t in two.truth] == [(6, 2), (6, 2)]
    np.testing.assert_allclose(one.truth[0], np.c_[np.cos(4 * one.angle), np.sin(4 * one.angle)])
    np.testing.assert_array_equal(one.stretch[:, 1], 0)
    np.testing.assert_array_equal(one.stretch[:, 0], two.stretch[:, 0])


WRONG = {"n_samples": 0, "pixel_size": 0.0, "motions": "z", "route": "boat", "correlation": 1.5}
WRONG |= {"signal_to_noise": 0.0, "symmetry": 0, "stretch": -1.0, "tilt": np.nan, "blur": -1.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 4}, "`n_samples` must be at least 5 for noise"),
        ({"size": 32}, r"`size` must be at least 54 pixels of 4 A for every state.*got 32"),
        ({"size": 55}, "`size` must be even; got 55. Take 56"),
        ({"defocus": (2.0, 1.0)}, r"`defocus` must be \(low, high\)"),
        ({"defocus": (1.0, np.inf)}, "`defocus`"),
        ({"optics": Optics(voltage=np.array([200.0, 300.0]))}, "`optics.voltage`"),
        *(({name: value}, f"`{name}`") for name, value in WRONG.items()),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        simulate(**{"n_samples": 10, **settings})
    with pytest.raises(ValueError, match=r"`size` must be at least 28 pixels of 7 A.*got 16"):
        simulate_volumes(3, size=16)
