"""Facts about the images of all views."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import fft

from manifactor.cryoem.ctf import contrast_transfer
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.one_view import aligned
from manifactor.cryoem.simulate.all_views import (
    PreferredDirections,
    simulate_views,
    uniform_directions,
)
from manifactor.cryoem.simulate.molecule import Molecule, channel
from manifactor.cryoem.simulate.one_view import simulate_particles

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


@pytest.mark.parametrize("make", [simulate_views, simulate_particles])
def test_images_with_a_ctf_are_the_clean_ones_times_it(make):
    how = {"size": 48, "pixel_size": 5.5, "signal_to_noise": None, "random_state": 0}
    clean, with_ctf = make(4, **how), make(4, **how, defocus=(1e4, 2e4))
    assert (np.abs(with_ctf.defocus - 1.5e4) <= 5e3).all()
    transfer = contrast_transfer(48, 5.5, with_ctf.defocus)
    expected = fft.irfft2(fft.rfft2(clean.images) * transfer, s=(48, 48))
    np.testing.assert_allclose(with_ctf.images, expected, atol=1e-4 * clean.images.max())


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


def test_an_atom_seen_along_z_lies_at_its_own_place():
    # Two and three pixels right of and below the centre; z does not matter. The rotor is far away.
    atoms = np.array([[0.0, 0.0, 90.0], [11.0, 16.5, -30.0]])
    molecule = Molecule(atoms, np.array([0.0, 7.0]), np.array([0, 1]))
    (image,) = projected(molecule, np.eye(3)[None], stretch=(0.0, 0.0))
    assert np.unravel_index(image.argmax(), image.shape) == (24 + 3, 24 + 2)
    assert image.sum() == pytest.approx(7, rel=2e-4)
    blur = 4.0 / 5.5
    assert image.max() == pytest.approx(7 / (2 * np.pi * blur**2), rel=1e-5)
    beside = image[27, 27] / image.max()
    assert beside == pytest.approx(np.exp(-1 / (2 * blur**2)), rel=1e-4)


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
