"""Independent coordinates on surfaces whose metric is no product.

A conformal map stretches the metric of a rectangle by the same factor in all directions, which
differs from place to place. On a surface of revolution the circles have different lengths.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples, ring


def exponential(z: np.ndarray) -> np.ndarray:
    """Return points of the plane, (n, 2): strips become sectors of annuli."""
    return _plane(np.exp(z))


def square(z: np.ndarray) -> np.ndarray:
    """Return the squares of complex numbers as points of the plane, (n, 2)."""
    return _plane(z**2)


def bend(z: np.ndarray, *, strength: float = 0.2) -> np.ndarray:
    """Return z + strength z^2 as points of the plane, (n, 2): lines become curves."""
    return _plane(z + strength * z**2)


def stereographic(z: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere, (n, 3)."""
    squared = np.abs(z) ** 2
    return np.c_[2 * z.real, 2 * z.imag, 1 - squared] / (1 + squared)[:, None]


def mercator(z: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere, (n, 3); the imaginary part is an angle."""
    return np.c_[ring(z.imag) / np.cosh(z.real)[:, None], np.tanh(z.real)]


def catenoid(z: np.ndarray) -> np.ndarray:
    """Return points of a catenoid, (n, 3); the imaginary part is an angle."""
    return np.c_[ring(z.imag) * np.cosh(z.real)[:, None], z.real]


def _plane(z: np.ndarray) -> np.ndarray:
    return np.c_[z.real, z.imag]


@dataclass(frozen=True)
class Conformal:
    """A rectangle of the complex plane under a conformal map, uniform before it."""

    mapping: Callable[[np.ndarray], np.ndarray]  # maps complex numbers to points
    real: tuple[float, float]  # the sides of the rectangle: lowest and highest value
    # The sides of the rectangle: lowest and highest value
    imaginary: tuple[float, float] = (0.0, 2 * np.pi)
    # Whether the imaginary part is an angle, so that the second factor is a circle
    closed: bool = False

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples and both coordinates before the map, from 0 to 1."""
        u, v = rng.uniform(size=(2, n_samples))
        z = _between(self.real, u) + 1j * _between(self.imaginary, v)
        second = ring(2 * np.pi * v) if self.closed else v[:, None]
        return self.mapping(z), (u[:, None], second)


def _between(ends: tuple[float, float], share: np.ndarray) -> np.ndarray:
    low, high = ends
    return low + (high - low) * share


def bulge(t: np.ndarray, ratio: float) -> np.ndarray:
    """Return radii that grow from 1 to the ratio in the middle, and shrink again."""
    return 1 + (ratio - 1) * np.sin(np.pi * t) ** 2


def waist(t: np.ndarray, ratio: float) -> np.ndarray:
    """Return radii that shrink from the ratio to 1 in the middle, and grow again."""
    return 1 + (ratio - 1) * np.cos(np.pi * t) ** 2


def horn(t: np.ndarray, ratio: float) -> np.ndarray:
    """Return radii that grow exponentially from 1 to the ratio."""
    return ratio**t


PROFILES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "bulge": bulge,
    "waist": waist,
    "horn": horn,
}


@dataclass(frozen=True)
class Revolution:
    """A surface of revolution, uniform along its axis and around it."""

    profile: str  # A key of `PROFILES`: how the radius varies along the axis
    ratio: float  # the largest radius; the smallest is 1
    length: float

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples, their place along the axis from 0 to 1, and the angle."""
        t, turn = rng.uniform(size=(2, n_samples))
        around = ring(2 * np.pi * turn)
        radius = PROFILES[self.profile](t, self.ratio)
        X = np.c_[radius[:, None] * around, self.length * t]
        return X, (t[:, None], around)
