"""Shapes with two good coordinates that are no product of their ranges.

The truth has both coordinates: finding them is right, "product" is not.
"""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.densities import draw_by_rejection
from manifactor.datasets.products import Samples, ring


@dataclass(frozen=True)
class _Carved:
    """The part of a rectangle for which `contains` is true, uniform in area."""

    sides: tuple[float, float] = (1.6, 1.0)

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples and both coordinates, from 0 to 1."""

        def candidates(count: int) -> np.ndarray:
            return rng.uniform(size=(count, 2))

        def density(place: np.ndarray) -> np.ndarray:
            return self.contains(place * self.sides).astype(float)

        place = draw_by_rejection(candidates, density, n_samples, rng)
        first, second = np.hsplit(place, 2)
        return place * self.sides, (first, second)

    def contains(self, x: np.ndarray) -> np.ndarray:
        """Return whether points of the rectangle belong to the shape."""
        raise NotImplementedError


@dataclass(frozen=True)
class CutCorner(_Carved):
    """A rectangle without one corner, a right triangle with equal legs."""

    leg: float = 0.5

    def contains(self, x: np.ndarray) -> np.ndarray:
        """Return whether points of the rectangle are not in the corner."""
        from_corner = self.sides - x
        return from_corner.sum(axis=1) > self.leg


@dataclass(frozen=True)
class Hole(_Carved):
    """A rectangle with a round hole in the middle."""

    radius: float = 0.2

    def contains(self, x: np.ndarray) -> np.ndarray:
        """Return whether points of the rectangle are not in the hole."""
        middle = np.array(self.sides) / 2
        return np.linalg.norm(x - middle, axis=1) > self.radius


@dataclass(frozen=True)
class Stadium(_Carved):
    """A rectangle with round ends: half disks in place of its short sides."""

    def contains(self, x: np.ndarray) -> np.ndarray:
        """Return whether points of the rectangle are in the stadium."""
        length, width = self.sides
        radius = width / 2
        along, across = np.abs(x - np.array(self.sides) / 2).T
        beyond = np.maximum(along - (length / 2 - radius), 0)
        return np.hypot(beyond, across) < radius


@dataclass(frozen=True)
class LatticeTorus:
    """A flat torus whose two circles meet at an angle, isometric in R^6.

    The circles have lengths 1 and `length`. The truth is the place on each of them.
    """

    degrees: float = 80.0
    length: float = 1.0

    @property
    def lattice(self) -> np.ndarray:
        """The two vectors, (2, 2), that the plane is divided by."""
        angle = np.radians(self.degrees)
        second = self.length * np.array([np.cos(angle), np.sin(angle)])
        return np.array([[1.0, 0.0], second])

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples, uniform in area, and both places as cosine and sine."""
        place = rng.uniform(size=(n_samples, 2))
        waves, amplitudes = self._isometry()
        phases = 2 * np.pi * place @ self.lattice @ waves.T
        pairs = zip(amplitudes, phases.T, strict=True)
        X = np.hstack([amplitude * ring(phase) for amplitude, phase in pairs])
        return X, tuple(ring(2 * np.pi * t) for t in place.T)

    def _isometry(self) -> tuple[np.ndarray, np.ndarray]:
        """Return three vectors of the dual lattice, (3, 2), and radii of circles.

        Waves along vectors k with amplitudes a have the metric sum (2 pi a)^2 k k^T, which is the
        identity for one choice of the three amplitudes.
        """
        first, second = np.linalg.inv(self.lattice).T
        # For this choice of the sign the squares of the amplitudes are positive.
        sign = -np.sign(first @ second) or 1.0
        waves = np.array([first, second, first + sign * second])
        x, y = waves.T
        metric = np.array([x * x, y * y, x * y])
        squares = np.linalg.solve(metric, [1.0, 1.0, 0.0])
        return waves, np.sqrt(squares.clip(0)) / (2 * np.pi)
