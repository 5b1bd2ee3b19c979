import numpy as np

from manifactor.cryoem.simulate.ion_channel import channel
from manifactor.cryoem.simulate.particles import simulate_particles, simulate_volumes


def test_volumes_hold_the_molecule_and_share_the_motions_of_the_images():
    volumes, angle, stretch = simulate_volumes(4, motions="xy", random_state=0)
    images = simulate_particles(
        4, motions="xy", signal_to_noise=None, size=54, pixel_size=4.0, random_state=0
    )
    np.testing.assert_array_equal(angle, images.angle)
    np.testing.assert_array_equal(stretch, images.stretch)
    np.testing.assert_allclose(volumes.sum(axis=(1, 2, 3)), channel().weights.sum(), rtol=1e-4)
    mass = (
        volumes.sum(axis=(1, 2)) @ np.arange(32) / volumes.sum(axis=(1, 2, 3))
    )  # along x, the last axis
    lift = channel().lift.mean()
    np.testing.assert_allclose(mass, 16 + lift * stretch[:, 0] / 7, atol=1e-3)
    assert np.corrcoef(volumes[0].sum(axis=2).ravel(), volumes[1].sum(axis=2).ravel())[0, 1] < 0.999


def test_volumes_take_noise_too():
    clean, noisy = (
        simulate_volumes(8, signal_to_noise=snr, random_state=0)[0] for snr in (None, 2.0)
    )
    assert (noisy - clean).std() > 0
