"""Simulated measurements of the gallery, with known factors: spectra, camera images, neurons.

Each function returns samples and one array of true values for each factor: one column for an
interval, cosine and sine for a circle.
"""

import numpy as np


def moving_peaks(n_samples, random_state=0):
    """Return spectra of 120 channels with two peaks, and the place of each from 0 to 1.

    Both peaks move by several times their widths, so that the spectra are far from linear in the
    places. Their ranges overlap: some channels see both.
    """
    rng = np.random.RandomState(random_state)
    channels = np.linspace(0, 1, 120)
    # Lowest and highest centre, width and height of each peak.
    peaks = ((0.15, 0.55, 0.05, 1.0), (0.45, 0.85, 0.07, 0.7))
    places = [rng.uniform(size=(n_samples, 1)) for _ in peaks]
    X = np.zeros((n_samples, 120))
    for place, (lowest, highest, width, height) in zip(places, peaks, strict=True):
        offset = (channels - (lowest + (highest - lowest) * place)) / width
        X += height * np.exp(-(offset**2) / 2)
    return X + rng.normal(scale=0.05, size=X.shape), tuple(places)


def gripper_images(n_samples, random_state=0, *, n_pixels=24, width=0.15, noise=0.1):
    """Return images of a gripper along the axis of its wrist, its direction and its opening.

    The wrist turns (a circle), and two fingers open and close (an interval). A lamp beside the
    fingers tells one half turn from the other. Pixels have coordinates from -1 to 1, and the axis
    is at 0. Fingers and lamp are spots of this width.
    """
    rng = np.random.RandomState(random_state)
    direction = ring(rng.uniform(0, 2 * np.pi, size=n_samples))
    opening = rng.uniform(size=(n_samples, 1))
    finger = (0.2 + (0.7 - 0.2) * opening) * (direction[:, ::-1] * [-1, 1])
    grid = np.linspace(-1, 1, n_pixels)
    X = np.zeros((n_samples, n_pixels**2))
    for centre in (finger, -finger, 0.5 * direction):
        # A Gaussian spot is the product of its profiles along rows and columns.
        x, y = (np.exp(-((grid - place[:, None]) ** 2) / (2 * width**2)) for place in centre.T)
        X += (y[:, :, None] * x[:, None]).reshape(n_samples, -1)
    return X + rng.normal(scale=noise, size=X.shape), (direction, opening)


def grid_and_direction(n_samples, random_state=0):
    """Return spike counts of 120 grid cells and 40 head direction cells.

    The true factors are the place in the unit cell of the grid, as circles of its two phases, and
    the direction.
    """
    rng = np.random.RandomState(random_state)
    phases = rng.uniform(0, 2 * np.pi, size=(n_samples, 2))
    centres = rng.uniform(0, 2 * np.pi, size=(120, 2))
    place = np.hstack([ring(phase) for phase in phases.T])
    rates, direction = direction_rates(n_samples, rng)
    return spikes([grid_rates(phases, centres), rates], rng), (place, direction)


def direction_and_speed(n_samples, random_state=0):
    """Return spike counts of 40 head direction cells and 30 speed cells; direction and speed.

    The rates of speed cells grow in proportion to the speed. Slow runs are more frequent.
    """
    rng = np.random.RandomState(random_state)
    rates, direction = direction_rates(n_samples, rng)
    speed = rng.beta(1.5, 2.5, size=(n_samples, 1))
    slopes = rng.uniform(0.5, 1, size=30) * 25
    return spikes([rates, 1 + speed * slopes], rng), (direction, speed)


def spikes(rates, rng):
    """Return Poisson numbers of spikes in a time window, of several kinds of cells."""
    return rng.poisson(np.hstack(rates)).astype(float)


def grid_rates(phases, centres):
    """Return the rates of grid cells of equal spacing and orientation with these field centres.

    The three plane waves of a hexagonal grid lie 60 degrees apart: the states of all cells lie on a
    flat torus with angles of 60 degrees, which is not a product.
    """
    waves = np.array([[1, 0], [0, 1], [1, -1]]).T
    offset = (phases @ waves)[:, None] - centres @ waves
    return 15 * np.exp(2 * (np.cos(offset).mean(axis=2) - 1))


def direction_rates(n_samples, rng):
    """Return the rates of head direction cells, 100 degrees wide at half their height, and it."""
    direction = rng.uniform(0, 2 * np.pi, size=n_samples)
    preferred = 2 * np.pi * np.arange(40) / 40
    return 15 * np.exp(2 * (np.cos(direction[:, None] - preferred) - 1)), ring(direction)


def ring(angle):
    """Return points of the unit circle, (n_samples, 2)."""
    return np.column_stack([np.cos(angle), np.sin(angle)])
