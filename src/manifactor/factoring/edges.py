"""Whether samples have an edge or a hole in some direction, as noise has not."""

import numpy as np


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
    noise = rng.normal(size=white.shape)
    # White as the samples are: centred, and of unit covariance.
    noise = np.linalg.qr(noise - noise.mean(axis=0))[0] * np.sqrt(len(white))
    return lowest < _lowest_kurtosis(noise) - depth


def _lowest_kurtosis(white: np.ndarray) -> float:
    """Least eigenvalue of the fourth moments; p + 2 for a Gaussian of p directions."""
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return float(np.linalg.eigvalsh(fourth)[0])
