"""Facts about the images of all views."""

from dataclasses import replace

import numpy as np
import pytest

from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.one_view import aligned
from manifactor.cryoem.simulate.all_views import (
    PreferredDirections,
    simulate_views,
    uniform_directions,
)
from manifactor.cryoem.simulate.molecule import Molecule, channel

CHANNEL = channel()
# Every ninth atom of each subunit.
THIN = Molecule(CHANNEL.atoms[::9], CHANNEL.weights[::9], CHANNEL.parts[::9])


def simulate(n_samples, **settings):
    usual = {"signal_to_noise": None, "random_state": 0, "molecule": THIN}
    return simulate_views(n_samples, **{**usual, **settings})


def test_poses_bring_images_of_one_direction_into_one_frame():
    """The convention of shifts and turns is that of the images of one view."""
    simulation = simulate(6, motions="rigid", molecule=CHANNEL)
    angles = np.c_[np.tile([40.0, 70.0], (6, 1)), simulation.angles[:, 2]]
    images = replace(simulation, angles=angles, rotations=euler_matrices(angles)).images
    turned = Particles(None, np.arange(6), angles=angles).turned()
    upright = aligned(images, turned, simulation.shift).reshape(6, -1)
    # Linear interpolation at .7 pixels a standard deviation leaves some percent.
    assert np.corrcoef(upright).min() > 0.98
    assert np.corrcoef(images.reshape(6, -1)).min() < 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"motions": "z"}, "`motions` must be one of 'x', 'xy', 'stretches', 'rigid'"),
        ({"size": 32, "molecule": None}, "`size` must be at least 46 pixels"),
        ({"blur": 2.0}, "`blur` must be at least 0.7 pixels, 3.85 A"),
        ({"pose_error": -1.0}, "`pose_error`"),
        ({"correlation": 0.8, "view_correlation": 0.8}, "`view_correlation` must add up to"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        simulate(**{"n_samples": 10, **settings})
    # Correlations may leave nothing to chance.
    simulate(10, correlation=0.6, view_correlation=0.8)
    for wrong in ({"weights": (1.0,)}, {"concentration": 0.0}, {"floor": 1.5}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}`"):
            PreferredDirections(**wrong)


def projected(molecule, rotations, *, stretch=(20.0, -10.0), shift=(0.0, 0.0)):
    n = len(rotations)
    given = {"angle": np.full(n, 0.3), "stretch": np.tile(stretch, (n, 1)), "rotations": rotations}
    return replace(simulate(n), molecule=molecule, shift=np.tile(shift, (n, 1)), **given).images


def test_images_are_those_of_the_moved_and_rotated_molecule(rng):
    pose = euler_matrices(rng.uniform(-180, 180, size=(2, 3)))
    images = projected(CHANNEL, pose)
    np.testing.assert_allclose(images.sum(axis=(1, 2)), 5256, rtol=1e-4)
    # No denormal numbers.
    assert images.dtype == np.float32
    assert images.min() >= np.finfo(np.float32).tiny
    # The centre of mass is that of the atoms.
    moved = CHANNEL.moved(0.3, [20.0, -10.0]).mean(axis=0)
    columns, rows = (images.sum(axis=axis) @ np.arange(48) / 5256 for axis in (1, 2))
    expected = 24 + pose[:, :2] @ moved / 5.5
    np.testing.assert_allclose(np.c_[columns, rows], expected, atol=0.01)
    close = {"atol": 1e-4 * images.max()}
    # The view from behind is the mirror image; the first row has no counterpart.
    behind = projected(CHANNEL, np.diag([1.0, -1.0, -1.0]) @ pose)
    np.testing.assert_allclose(behind[:, :0:-1], images[:, 1:], **close)
    # As RELION's origins, a shift brings the image back.
    shifted = projected(CHANNEL, pose, shift=(2.0, -3.0))
    np.testing.assert_allclose(np.roll(shifted, (-3, 2), axis=(1, 2)), images, **close)


N = 40_000


def test_preferred_directions_follow_their_density(rng):
    preferred = PreferredDirections()
    directions = preferred.draw(N, rng)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    # The mean of any function: here indicators of cones, weighted by the density.
    even = uniform_directions(N, rng)
    weights = preferred.density(even)
    assert weights.mean() == pytest.approx(1, abs=0.02)
    for centre in preferred.centres:
        found = (directions @ centre > np.cos(np.radians(20))).mean()
        expected = weights[even @ centre > np.cos(np.radians(20))].sum() / N
        assert found == pytest.approx(expected, rel=0.1)
    peak = preferred.density(preferred.centres[:1])[0]
    assert peak == pytest.approx(0.3 + 0.7 * 0.4 * 20, rel=0.02)
    assert weights.min() == pytest.approx(0.3, abs=0.01)
