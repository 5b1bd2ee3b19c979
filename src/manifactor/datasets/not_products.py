"""Shapes that are not products of lengths: irreducible ones, near-products and warped metrics.

An irreducible shape has one true factor, whose latents are the samples. A near-product has two good
coordinates, but does not fill the product of their ranges: finding them is right, "product" is not.
A conformal map stretches the metric of a rectangle by the same factor in all directions, which
differs from place to place. On a surface of revolution the circles have different lengths.
"""

from collections.abc import Callable, Sequence
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
    correlation: float

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


@dataclass(frozen=True)
class _Carved:
    """The part of a rectangle for which `contains` is true, uniform in area."""

    sides: tuple[float, float]

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

    leg: float

    def contains(self, x: np.ndarray) -> np.ndarray:
        """Return whether points of the rectangle are not in the corner."""
        from_corner = self.sides - x
        return from_corner.sum(axis=1) > self.leg


@dataclass(frozen=True)
class Hole(_Carved):
    """A rectangle with a round hole in the middle."""

    radius: float

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

    degrees: float
    length: float

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


def exponential(z: np.ndarray) -> np.ndarray:
    """Return points of the plane, (n, 2): strips become sectors of annuli."""
    return _plane(np.exp(z))


def square(z: np.ndarray) -> np.ndarray:
    """Return the squares of complex numbers as points of the plane, (n, 2)."""
    return _plane(z**2)


def bend(z: np.ndarray) -> np.ndarray:
    """Return z + 0.2 z^2 as points of the plane, (n, 2): lines become curves."""
    return _plane(z + 0.2 * z**2)


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
