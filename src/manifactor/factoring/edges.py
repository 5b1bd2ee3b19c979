"""Whether samples have an edge or a hole in some direction, as noise has not."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EdgeSettings:
    """Settings of `has_edge`."""

    # Least variance of a direction that counts, relative to the largest: far thinner ones are
    # rounding, or noise of the regression that left the samples.
    thick: float = 0.01
    # Main directions that count, at most; None for all. The lowest of many kurtoses is low by
    # chance.
    most_directions: int | None = None
    # How far the kurtosis of a direction with an edge or a hole lies below that of Gaussian noise
    # at least; an interval's lies 1.2 below, a circle's or a sphere's 2.
    depth: float = 0.4


def has_edge(samples: np.ndarray, *, settings: EdgeSettings = EdgeSettings()) -> bool:
    """Return whether samples, (n, p), have an edge or a hole in a main direction.

    There the kurtosis is low, which is a low eigenvalue of the matrix of fourth moments of white
    samples (Cardoso, 1989).

    >>> has_edge(np.linspace(-1, 1, 1000)[:, None])
    True
    """
    left, strength = _principal(samples)
    thick = strength**2 >= settings.thick * strength[0] ** 2
    white = left[:, thick][:, : settings.most_directions]
    lowest = _lowest_kurtosis(white)
    if lowest > white.shape[1] + 2 - settings.depth:
        return False
    # In many directions the lowest kurtosis of noise is low by chance.
    rng = np.random.default_rng(0)
    noise, _ = _principal(rng.normal(size=white.shape))
    return lowest < _lowest_kurtosis(noise) - settings.depth


def _principal(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """White coordinates along the principal axes, (n, p), and the singular values."""
    centred = samples - samples.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    return left * np.sqrt(len(left)), strength


def _lowest_kurtosis(white: np.ndarray) -> float:
    """Least eigenvalue of the fourth moments; p + 2 for a Gaussian of p directions."""
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return float(np.linalg.eigvalsh(fourth)[0])
