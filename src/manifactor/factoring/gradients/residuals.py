"""Whether what factors leave of the samples is noise, or a factor that was missed."""

from dataclasses import dataclass

import numpy as np

from manifactor._support.regression import neighbour_means
from manifactor.factoring.prediction import PredictionSettings, thinned


@dataclass(frozen=True)
class ResidualSettings:
    """Settings of `leaves_noise`."""

    # Least variance of a direction that counts, relative to the largest.
    thick: float = 0.01
    # How far the kurtosis of a direction with an edge or a hole lies below that of
    # Gaussian noise at least; an interval's lies 1.2 below, a circle's or a sphere's 2.
    edge: float = 0.4


def leaves_noise(
    places: np.ndarray,
    samples: np.ndarray,
    *,
    settings: ResidualSettings = ResidualSettings(),
    prediction: PredictionSettings = PredictionSettings(),
) -> bool:
    """Return whether what places leave of the samples has no edge and no hole.

    Noise has none. Samples, (n, d), are predicted from their neighbours on the
    factors, (n, c). A small factor that was missed, an interval or a circle, shows in
    the rest as a direction of low kurtosis, which `has_edge` finds. At 4,000 samples an
    interval blurred by noise of a quarter of its width looks like noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line = rng.uniform(size=(2000, 1))
    >>> noise = 0.1 * rng.normal(size=(2000, 1))
    >>> strip = 0.3 * rng.uniform(size=(2000, 1))
    >>> leaves_noise(line, np.hstack([line, noise]))
    True
    >>> leaves_noise(line, np.hstack([line, strip]))
    False
    """
    thin = thinned(len(samples), prediction.samples)
    places, samples = places[thin], samples[thin]
    k = min(prediction.n_neighbors, len(places) - 1)
    rest = samples - neighbour_means(places, k)(samples)
    left, strength, _ = np.linalg.svd(rest - rest.mean(axis=0), full_matrices=False)
    # Below rounding nothing is left.
    if strength[0] <= 1e-9 * np.linalg.norm(samples - samples.mean(axis=0)):
        return True
    # Directions far thinner than the thickest are rounding, or noise of the regression.
    thick = strength**2 > settings.thick * strength[0] ** 2
    return not has_edge(left[:, thick] * np.sqrt(len(left)), settings.edge)


def has_edge(white: np.ndarray, depth: float) -> bool:
    """Return whether white samples have an edge or a hole in some direction.

    There the kurtosis is low, which is a low eigenvalue of the matrix of fourth moments
    (Cardoso, 1989).

    Parameters
    ----------
    white : ndarray of shape (n, p)
        Samples of mean 0 whose covariance is the unit matrix.
    depth : float
        How far the kurtosis lies below that of Gaussian noise at least.

    Examples
    --------
    >>> interval = np.sqrt(3) * np.linspace(-1, 1, 1000)[:, None]
    >>> has_edge(interval, 0.4)
    True
    """
    lowest = _lowest_kurtosis(white)
    if lowest > white.shape[1] + 2 - depth:
        return False
    # In many directions the lowest kurtosis of noise is low by chance.
    rng = np.random.default_rng(0)
    noise = np.linalg.qr(rng.normal(size=white.shape))[0] * np.sqrt(len(white))
    return lowest < _lowest_kurtosis(noise) - depth


def _lowest_kurtosis(white: np.ndarray) -> float:
    """Least eigenvalue of the fourth moments; p + 2 for a Gaussian of p directions."""
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return float(np.linalg.eigvalsh(fourth)[0])
