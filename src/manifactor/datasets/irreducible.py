"""Shapes that are no product: one true factor, whose latents are the samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.densities import draw_by_rejection
from manifactor.datasets.products import Samples, Sphere, ring

# Two sides of length 1 with 60 degrees between them.
SIDES_AT_60_DEGREES = np.array([[1.0, 0.0], [0.5, np.sqrt(3) / 2]])


def triangle(n_samples: int, rng) -> Samples:
    """Draw an equilateral triangle of side 1."""
    # The gaps between sorted uniform numbers are uniform barycentric coordinates.
    u = rng.uniform(size=(n_samples, 2))
    low, high = np.sort(u, axis=1).T
    X = np.c_[low, high - low] @ SIDES_AT_60_DEGREES
    return X, (X,)


def parallelogram(n_samples: int, rng) -> Samples:
    """Draw a rhombus of side 1 with an angle of 60 degrees."""
    X = rng.uniform(size=(n_samples, 2)) @ SIDES_AT_60_DEGREES
    return X, (X,)


def moebius(n_samples: int, rng) -> Samples:
    """Draw a nearly flat Moebius band in R^4: a product locally but not globally."""
    turn, height = rng.uniform(size=(2, n_samples))
    angle = turn * (2 * np.pi)
    height = height - 0.5
    # Half a turn of the strip for each full turn of the circle glues it with a twist.
    twist = ring(angle / 2)
    X = np.c_[ring(angle), height[:, None] * twist]
    return X, (X,)


def klein_bottle(n_samples: int, rng) -> Samples:
    """Draw a nearly flat Klein bottle in R^5: a product locally but not globally."""
    u, v = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    # One full turn of u reflects sin v.
    twisted = np.sin(v)[:, None] * ring(u / 2)
    X = np.c_[2 * ring(u), np.cos(v), twisted]
    return X, (X,)


@dataclass(frozen=True)
class Cloud:
    """A Gaussian with columns of variance 1."""

    n_columns: int
    # Correlation of the first two columns; 0 for an isotropic cloud. The principal axes of a
    # correlated cloud are independent, but few samples of a small correlation do not show them.
    correlation: float = 0.0

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples."""
        z = rng.normal(size=(n_samples, self.n_columns))
        X = z.copy()
        own = np.sqrt(1 - self.correlation**2)
        X[:, 1] = self.correlation * z[:, 0] + own * z[:, 1]
        return X, (X,)


@dataclass(frozen=True)
class Ellipsoid:
    """The surface of an ellipsoid with the given half axes, uniform in area."""

    axes: Sequence[float]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples."""
        axes = np.array(self.axes)

        def candidates(count: int) -> np.ndarray:
            return Sphere().draw(count, rng)[0]

        def density(x: np.ndarray) -> np.ndarray:
            # The map from the sphere stretches areas by |x / axes| times a constant.
            return axes.min() * np.linalg.norm(x / axes, axis=1)

        X = axes * draw_by_rejection(candidates, density, n_samples, rng)
        return X, (X,)


@dataclass(frozen=True)
class SolidEllipsoid:
    """The inside of an ellipsoid with the given half axes, uniform in volume."""

    axes: Sequence[float]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples."""
        direction, _ = Sphere().draw(n_samples, rng)
        # The cubic root makes the samples uniform in volume.
        radius = np.cbrt(rng.uniform(size=(n_samples, 1)))
        X = np.array(self.axes) * radius * direction
        return X, (X,)


@dataclass(frozen=True)
class Frustum:
    """A cone cut off: the radius falls from 1 to `end` along its axis.

    Samples are uniform in area, so that shorter circles have fewer of them.
    """

    end: float
    length: float

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples."""
        # The density of the radius is proportional to the radius.
        radius = np.sqrt(rng.uniform(self.end**2, 1, size=n_samples))
        angle = rng.uniform(0, 2 * np.pi, size=n_samples)
        height = self.length * (1 - radius) / (1 - self.end)
        X = np.c_[radius[:, None] * ring(angle), height]
        return X, (X,)
