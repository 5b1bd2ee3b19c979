"""Shapes that are not products of lengths: irreducible, nearly products, warped, images.

An irreducible shape has one true factor, whose latents are the samples. A near-product has two good
coordinates, but does not fill the product of their ranges: finding them is right, "product" is not.
A conformal map stretches the metric of a rectangle by the same factor in all directions, which
differs from place to place. On a surface of revolution the circles have different lengths. Images
of objects that move independently are sums in the pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import PartSamples, Samples, Sphere, Truth, product, ring, thinned

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
    # Half a turn of the strip for each full turn of the circle glues it with a twist.
    X = np.c_[ring(angle), (height - 0.5)[:, None] * ring(angle / 2)]
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
        X = rng.normal(size=(n_samples, self.n_columns))
        own = np.sqrt(1 - self.correlation**2)
        X[:, 1] = self.correlation * X[:, 0] + own * X[:, 1]
        return X, (X,)


@dataclass(frozen=True)
class Ellipsoid:
    """The surface of an ellipsoid with the given half axes, uniform in area."""

    axes: Sequence[float]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples."""
        axes = np.array(self.axes)

        def density(x: np.ndarray, _) -> np.ndarray:
            # The map from the sphere stretches areas by |x / axes| times a constant.
            return axes.min() * np.linalg.norm(x / axes, axis=1)

        X = axes * thinned(product(Sphere()), density, n_samples, rng)[0]
        return X, (X,)

    def coordinates(self, X: np.ndarray) -> tuple[Truth, Truth]:
        """Return the confocal coordinates of samples: an interval and a circle, in two ways.

        Both are right: along the longest axis and around it, or along the shortest and around it.
        All three axes must differ.
        """
        squares = np.square(self.axes)
        c, b, a = np.sort(squares)
        z_side, y_side, x_side = np.sign(X.T[np.argsort(squares)])
        # A quadric sum x^2 / (squares - k) = 1 passes through a sample for three k: 0, that of the
        # ellipsoid itself, one of c to b and one of b to a, of which sum and product are known.
        mean = (squares.sum() - (X**2).sum(axis=1)) / 2
        square = squares.prod() * (X**2 / squares**2).sum(axis=1)
        apart = np.sqrt(np.maximum(mean**2 - square, 0))
        low, high = np.clip(mean - apart, c, b), np.clip(mean + apart, b, a)
        along, across = np.sqrt((a - high) / (a - b)), np.sqrt((high - b) / (a - b))
        up, aside = np.sqrt((low - c) / (b - c)), np.sqrt((b - low) / (b - c))
        x, z = (x_side * along)[:, None], (z_side * up)[:, None]
        return (x, np.c_[y_side * aside, z]), (z, np.c_[x, y_side * across])


@dataclass(frozen=True)
class SolidEllipsoid:
    """The inside of an ellipsoid with the given half axes, uniform in volume."""

    axes: Sequence[float]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples."""
        direction, _ = Sphere()(n_samples, rng)
        # The cubic root makes the samples uniform in volume.
        radius = np.cbrt(rng.uniform(size=(n_samples, 1)))
        X = np.array(self.axes) * radius * direction
        return X, (X,)


@dataclass(frozen=True)
class Frustum:
    """A cone whose radius falls from 1 to `end` along its axis, with samples uniform in area."""

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


def _unit_square(n_samples: int, rng) -> Samples:
    place = rng.uniform(size=(n_samples, 2))
    return place, tuple(np.hsplit(place, 2))


@dataclass(frozen=True)
class _Carved:
    """The part of a rectangle for which `contains` is true, uniform in area."""

    sides: tuple[float, float]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples and both coordinates, from 0 to 1."""

        def density(place: np.ndarray, _) -> np.ndarray:
            return self.contains(place * self.sides)

        place, truth = thinned(_unit_square, density, n_samples, rng)
        return place * self.sides, truth

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


def _plane(z: np.ndarray) -> np.ndarray:
    return np.c_[z.real, z.imag]


def stereographic(z: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere, (n, 3)."""
    squared = np.abs(z) ** 2
    return np.c_[2 * z.real, 2 * z.imag, 1 - squared] / (1 + squared)[:, None]


# Conformal maps from complex numbers to points of the plane, (n, 2), or of space, (n, 3).
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    # Strips become sectors of annuli.
    "exponential": lambda z: _plane(np.exp(z)),
    "square": lambda z: _plane(z**2),
    # Lines become curves.
    "bend": lambda z: _plane(z + 0.2 * z**2),
    "stereographic": stereographic,
    # The imaginary part is an angle: on the unit sphere, and on a catenoid.
    "mercator": lambda z: np.c_[ring(z.imag) / np.cosh(z.real)[:, None], np.tanh(z.real)],
    "catenoid": lambda z: np.c_[ring(z.imag) * np.cosh(z.real)[:, None], z.real],
}


@dataclass(frozen=True)
class Conformal:
    """A rectangle of the complex plane under a conformal map, uniform before it."""

    mapping: str  # a key of `MAPS`
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
        return MAPS[self.mapping](z), (u[:, None], second)


def _between(ends: tuple[float, float], share: np.ndarray) -> np.ndarray:
    low, high = ends
    return low + (high - low) * share


# Radii along an axis, from 0 to 1, between 1 and a ratio.
PROFILES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "bulge": lambda t, ratio: 1 + (ratio - 1) * np.sin(np.pi * t) ** 2,
    "waist": lambda t, ratio: 1 + (ratio - 1) * np.cos(np.pi * t) ** 2,
    "horn": lambda t, ratio: ratio**t,
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


# Images of objects that move independently: sums in the pixels, no isometric product. Pixels have
# coordinates from -1 to 1. An object is a few blurred spots that turn about a centre (a circle) or
# move along a line (an interval).

# Radius, angle and weight, all unequal: an object with a symmetry would look the same after less
# than a full turn.
TURNED_SPOTS = [(0.55, 0.0, 1.0), (0.4, 2.0, 0.7), (0.3, 4.0, 0.5)]
# Offset and weight; the second spot gives the object a front and a back.
SHIFTED_SPOTS = [((0.0, 0.0), 1.0), ((0.18, 0.23), 0.5)]

# From the number of samples, the places of pixels about an object's centre in units of its size,
# and a generator to images, (n_samples, n_pixels), and latents.
Motion = Callable[..., PartSamples]


def turning(n_samples: int, pixels: np.ndarray, rng) -> PartSamples:
    """Draw an object that turns about its centre, and cosine and sine of the angle."""
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    paths = [(radius * ring(angle + start), weight) for radius, start, weight in TURNED_SPOTS]
    return _spots(pixels, paths), ring(angle)


def shifting(n_samples: int, pixels: np.ndarray, rng) -> PartSamples:
    """Draw an object that moves up and down by its size, and the place from 0 to 1."""
    place = rng.uniform(size=(n_samples, 1))
    path = np.c_[np.zeros(n_samples), place - 0.5]
    return _spots(pixels, [(path + offset, weight) for offset, weight in SHIFTED_SPOTS]), place


def _spots(pixels: np.ndarray, paths: Sequence[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return images of blurred spots with centres, (n_samples, 2), and weights."""
    images = np.zeros((len(paths[0][0]), len(pixels)))
    for centres, weight in paths:
        squared = ((pixels - centres[:, None]) ** 2).sum(axis=2)
        images = images + weight * np.exp(-squared / 0.08)
    # Of variance 1 in all pixels together.
    return images / np.sqrt(images.var(axis=0).sum())


@dataclass(frozen=True)
class Scene:
    """Images of several objects, flattened."""

    # Motion, centre and size; the brightest first
    objects: Sequence[tuple[Motion, tuple[float, float], float]]
    # Variance of the first object's images over that of the last one's. Those between have equal
    # ratios.
    variance_ratio: float
    occluding: bool = False  # whether the first object covers the others, or adds to them
    # Standard deviation of the noise in each pixel, relative to the root mean square of all pixels'
    # standard deviations
    noise: float = 0.0

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw images and the place of each object."""
        pixels = _pixels(np.linspace(-1, 1, 24), np.linspace(-1, 1, 24))
        drawn = [
            move(n_samples, (pixels - centre) / size, rng) for move, centre, size in self.objects
        ]
        variances = np.geomspace(1, 1 / self.variance_ratio, len(drawn))
        front, *others = (
            np.sqrt(variance) * images
            for variance, (images, _) in zip(variances, drawn, strict=True)
        )
        visible = 1.0
        if self.occluding:
            # Opaque where the first object has half of its brightness or more.
            visible = 1 - np.clip(2 * front / front.max(), 0, 1)
        X = front + visible * sum(others)
        if self.noise:
            deviation = self.noise * np.sqrt(X.var(axis=0).mean())
            X = X + rng.normal(scale=deviation, size=X.shape)
        return X, tuple(latents for _, latents in drawn)


def turning_objects(n_samples: int, rng) -> Samples:
    """Draw wide images of two objects that turn independently, with variances of 5 to 1: a sum."""
    pixels = _pixels(np.linspace(-1.5, 1.5, 24), np.linspace(-1, 1, 16))
    first, left = turning(n_samples, pixels - [-0.6, 0], rng)
    second, right = turning(n_samples, pixels - [0.6, 0], rng)
    return first + second / np.sqrt(5), (left, right)


def _pixels(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the coordinates of the pixels of an image, (n_pixels, 2), row by row."""
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
