"""Angles, and places on a circle."""

import numpy as np

from manifactor._support.arithmetic import quotient


def angle_of(places: np.ndarray) -> np.ndarray:
    """Return the angle of places, (n, 2), from 0 to below 2 pi.

    >>> angle_of(np.array([[1.0, -1e-20], [0.0, 1.0]])).round(3)
    array([0.   , 1.571])
    """
    angle = np.arctan2(places[:, 1], places[:, 0])
    angle[angle < 0] += 2 * np.pi
    # The sum is 2 pi for an angle just below 0.
    angle[angle >= 2 * np.pi] = 0.0
    return angle


def on_circle(angle: np.ndarray) -> np.ndarray:
    """Return cosine and sine of angles, (n, 2)."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def unit_vectors(places: np.ndarray) -> np.ndarray:
    """Return the directions from the origin to places, (n, 2)."""
    radius = np.linalg.norm(places, axis=1, keepdims=True)
    return quotient(places, radius)


def widest_gap(angle: np.ndarray) -> tuple[float, float]:
    """Return where the widest gap between angles begins, and its width.

    >>> start, width = widest_gap(np.array([3.0, 0.0, 1.0]))
    >>> start, round(width, 3)
    (3.0, 3.283)
    """
    ordered = np.sort(angle)
    gaps = np.diff(ordered, append=ordered[0] + 2 * np.pi)
    widest = int(gaps.argmax())
    return float(ordered[widest]), float(gaps[widest])
