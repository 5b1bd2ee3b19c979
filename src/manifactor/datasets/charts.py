"""Shapes in curved coordinates: the image of a box under a smooth map, even by area or volume.

In these coordinates the Laplacian of an annulus, an ellipse or a vase separates, although lengths
along one coordinate depend on another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples, Truth, ring, thinned

AROUND = (0.0, 2 * np.pi)


@dataclass(frozen=True)
class MappedBox:
    """The image of a box of coordinates under a map."""

    box: Sequence[tuple[float, float]]  # lowest and highest value of each coordinate
    place: Callable[..., np.ndarray]  # from coordinates, (n,) each, to samples, (n, n_columns)
    # True factors in the order of the coordinates: "interval" or "circle". Without any, the samples
    # are the only factor.
    factors: Sequence[str] = ()

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples and truth."""

        def box(n: int, rng) -> Samples:
            return rng.uniform(*np.transpose(self.box), size=(n, len(self.box))), ()

        highest = self.density(box(20_000, rng)[0]).max()
        q, _ = thinned(box, lambda q, _: self.density(q) / highest, n_samples, rng)
        X = self.place(*q.T)
        return X, self.truth(q) or (X,)

    def density(self, q: np.ndarray) -> np.ndarray:
        """Return the density at coordinates, (n, d): the area or volume that the map makes."""
        return np.sqrt(np.linalg.det(self.metric(q)).clip(0))

    def metric(self, q: np.ndarray) -> np.ndarray:
        """Return the metric tensor at coordinates (n, d), of shape (n, d, d)."""
        # Central differences are then right to 1e-9.
        steps = 1e-5 * np.ptp(self.box, axis=1)
        ends = [(self.place(*(q + s).T), self.place(*(q - s).T)) for s in np.diag(steps)]
        jacobian = np.stack([high - low for high, low in ends], axis=-1) / (2 * steps)
        return jacobian.transpose(0, 2, 1) @ jacobian

    def truth(self, q: np.ndarray) -> Truth:
        """Return the true factors: intervals from 0 to 1, circles as unit vectors."""
        low, high = np.transpose(self.box)
        return tuple(
            ring(x) if factor == "circle" else ((x - a) / (b - a))[:, None]
            for factor, x, a, b in zip(self.factors, q.T, low, high, strict=False)
        )


def annulus(ratio: float) -> MappedBox:
    """Return the annulus between radii `ratio` and 1: radius and angle."""
    return MappedBox(
        ((ratio, 1.0), AROUND), lambda r, a: r[:, None] * ring(a), ("interval", "circle")
    )


def vase(depth: float, waves: float, phase: float, length: float) -> MappedBox:
    """Return a surface of revolution with a wavy radius: height and angle."""

    def place(t: np.ndarray, angle: np.ndarray) -> np.ndarray:
        radius = 1 + depth * np.cos(2 * np.pi * waves * t + phase)
        return np.c_[radius[:, None] * ring(angle), length * t]

    return MappedBox(((0.0, 1.0), AROUND), place, ("interval", "circle"))


def ellipse(axis: float) -> MappedBox:
    """Return the inside of an ellipse with half axes 1 and `axis`, in elliptic coordinates.

    The confocal ellipses, from the segment between the foci to the border, are an interval; the
    hyperbolas, each side of which is one value of an angle, are a circle.
    """
    focus = np.sqrt(1 - axis**2)

    def place(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return focus * np.c_[np.cosh(u) * np.cos(v), np.sinh(u) * np.sin(v)]

    return MappedBox(((0.0, np.arctanh(axis)), AROUND), place, ("interval", "circle"))
