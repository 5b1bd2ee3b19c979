"""Factors along which the samples are Gaussian: their axes are not identifiable.

Independent Gaussians stay independent Gaussians under rotations, once each is measured in its
standard deviation: the axes that a cloud of them shows depend on the units of the columns. At most
one factor may be Gaussian (Comon, 1994).
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.measures.placed_samples import PlacedSamples
from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class GaussianSettings:
    """Settings of `gaussian_factors`."""

    # A factor is flat if this share of its directions lies in one plane: a bent factor is
    # identified by its bend. A half circle has .8 in a line.
    flat: float = 0.9
    # Largest difference of the fourth moment from a Gaussian's, relative to the
    # Gaussian's: -.40 for an even interval, -.28 for beta(2, 2), 1 for Laplace's law,
    # -.2 for an interval whose density falls to a fifth, and for a Gaussian without its
    # tails beyond 2 standard deviations.
    fourth_moment: float = 0.1
    # Largest difference between the distributions of distances from the centre, that of the samples
    # and a Gaussian's: .12 for an even interval, .06 for beta(2, 2), .12 for Laplace's law.
    distances: float = 0.025
    # Samples that are looked at: standard errors are then below a hundredth.
    samples: int = 10_000
    # Largest mean cube in any direction: .6 for beta(2, 5), 2 for the exponential law.
    skewness: float = 0.4


def gaussian_factors(
    placed: PlacedSamples, samples: np.ndarray, *, settings: GaussianSettings = GaussianSettings()
) -> Measurement:
    """Return the number of factors along which the samples are Gaussian.

    A factor is measured in the data's own units: by the part of the samples in the factor's
    directions, with those of all other factors taken off.

    >>> from manifactor.factoring.measures.placed_samples import place_samples
    >>> rng = np.random.default_rng(0)
    >>> samples = rng.normal(size=(2000, 3)) * [3.0, 2.0, 0.0]
    >>> samples[:, 2] = rng.uniform(size=2000)
    >>> placed = place_samples(np.hsplit(samples, 3), [1, 1, 1], samples)
    >>> gaussian_factors(placed, samples).value
    2.0

    Shapes: samples (n, p).
    """
    fits = placed.local_fits
    planes, flat = [], []
    for rows in fits.directions:
        plane, share = _mean_plane(fits.slopes[:, rows])
        planes.append(plane)
        flat.append(share > settings.flat)
    some = samples[thinned(len(samples), settings.samples)] @ placed.axes
    centred = some - some.mean(axis=0)
    # Coordinates along the directions of all factors together.
    coordinates = centred @ np.linalg.pinv(np.hstack(planes)).T
    parts = [coordinates[:, rows] for rows in fits.directions]
    count = sum(
        is_flat and _is_gaussian(part, settings) for part, is_flat in zip(parts, flat, strict=True)
    )
    return Measurement(float(count))


def _mean_plane(slopes: np.ndarray) -> tuple[np.ndarray, float]:
    """The plane nearest to the directions at all nodes, (p, d), and their share in it.

    `slopes` has shape (m, d, p).
    """
    directions = np.linalg.qr(slopes.transpose(0, 2, 1))[0]
    dimension = directions.shape[2]
    # The mean of the projections onto the planes of all nodes.
    mean = np.einsum("mpd,mqd->pq", directions, directions) / len(directions)
    shares, axes = np.linalg.eigh(mean)
    return axes[:, -dimension:], float(shares[-dimension:].mean())


def _is_gaussian(part: np.ndarray, settings: GaussianSettings) -> bool:
    """Whether samples, (n, d), have a Gaussian's moments and distances."""
    left = np.linalg.svd(part - part.mean(axis=0), full_matrices=False)[0]
    n, dimension = left.shape
    white = left * np.sqrt(n)
    squares = (white**2).sum(axis=1)
    fourth = float((squares**2).mean()) / (dimension * (dimension + 2)) - 1
    # One standard error of each number is added to what is allowed.
    error = np.sqrt(8 / (dimension * (dimension + 2) * n))
    ranks = (np.arange(n) + 0.5) / n
    off = np.abs(chi2.cdf(np.sort(squares), dimension) - ranks).max()
    skewness = np.abs((white**3).mean(axis=0)).max()
    return bool(
        abs(fourth) < settings.fourth_moment + error
        and off < settings.distances + 0.5 / np.sqrt(n)
        and skewness < settings.skewness + np.sqrt(6 / n)
    )
