"""Products of parts: intervals, circles and spheres with exact Laplacian spectra, and others.

A shape is a function ``(n_samples, rng) -> (X, truth)``. `truth` has one array for each true
factor: one column for an interval, cosine and sine for a circle, the coordinates for a sphere.
Samples are uniform in the latents, unless a part has its own density.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import comb
from typing import Protocol

import numpy as np

Truth = tuple[np.ndarray, ...]
Samples = tuple[np.ndarray, Truth]
Shape = Callable[..., Samples]


class Part(Protocol):
    """One factor of a product."""

    @property
    def extent(self) -> float:
        """The largest distance between two points, or between almost all of them."""

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points, (n_samples, n_columns), and their latents."""


def ring(angle: np.ndarray) -> np.ndarray:
    """Return points of the unit circle, (n_samples, 2)."""
    return np.c_[np.cos(angle), np.sin(angle)]


@dataclass(frozen=True)
class Interval:
    """An interval of the given length, with Neumann spectrum (k pi / length)^2."""

    length: float = 1.0

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return self.length

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return uniform points and their latents in [0, 1]."""
        t = rng.uniform(size=(n_samples, 1))
        return self.length * t, t

    def eigenvalues(self, n: int) -> np.ndarray:
        """Return the n lowest eigenvalues of the Laplacian."""
        return (np.pi * np.arange(n) / self.length) ** 2


@dataclass(frozen=True)
class Sphere:
    """A sphere of the given radius in R^ambient; a circle for ``ambient=2``.

    Its spectrum is l (l + ambient - 2) / radius^2.
    """

    radius: float = 1.0
    ambient: int = 3

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return 2 * self.radius

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return uniform points and their unit vectors."""
        # The normal distribution has no preferred direction.
        x = rng.normal(size=(n_samples, self.ambient))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return self.radius * x, x

    def eigenvalues(self, n: int) -> np.ndarray:
        """Return the n lowest eigenvalues of the Laplacian with multiplicity."""
        values: list[float] = []
        dimension = self.ambient - 1
        degree = 0
        while len(values) < n:
            value = degree * (degree + dimension - 1) / self.radius**2
            values += [value] * self._multiplicity(degree)
            degree += 1
        return np.array(values[:n])

    def _multiplicity(self, degree: int) -> int:
        """Return the number of independent spherical harmonics of this degree."""
        dimension = self.ambient - 1
        polynomials = comb(degree + dimension, dimension)
        if degree < 2:
            return polynomials
        # On the sphere |x|^2 = 1, so |x|^2 times a polynomial of two degrees lower is no new
        # function.
        return polynomials - comb(degree + dimension - 2, dimension)


def circle(radius: float = 1.0) -> Sphere:
    """Return the circle of the given radius."""
    return Sphere(radius, ambient=2)


@dataclass(frozen=True)
class Disk:
    """A disk of the given radius. Its latents are the points of the unit disk."""

    radius: float = 1.0

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return 2 * self.radius

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points, uniform in area, and their latents."""
        angle = rng.uniform(0, 2 * np.pi, size=n_samples)
        # The square root makes the samples uniform in area.
        radius = np.sqrt(rng.uniform(size=n_samples))
        x = radius[:, None] * ring(angle)
        return self.radius * x, x


@dataclass(frozen=True)
class Star:
    """Three segments of length 1 that meet in a point, 120 degrees apart, also as latents."""

    extent = np.sqrt(3)

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points, uniform in length, twice."""
        arm = rng.randint(3, size=n_samples)
        x = rng.uniform(size=(n_samples, 1)) * ring(arm * (2 * np.pi / 3))
        return x, x


@dataclass(frozen=True)
class ProjectivePlane:
    """The projective plane in R^6: the products of two coordinates of a unit vector.

    Opposite vectors have the same products. Mixed products are weighted by sqrt 2, which makes the
    map an isometry up to a common factor of sqrt 2. The latents are the points.
    """

    extent = np.sqrt(2)

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return uniform points, twice."""
        vectors, _ = Sphere().draw(n_samples, rng)
        x, y, z = vectors.T
        mixed = np.sqrt(2) * np.c_[x * y, y * z, z * x]
        points = np.hstack([vectors**2, mixed])
        return points, points


@dataclass(frozen=True)
class Rotations:
    """The rotations of space in R^9: the entries of their matrices, also as latents."""

    extent = 2 * np.sqrt(2)

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return uniform rotations, twice."""
        # Unit quaternions, uniform on their sphere, are uniform rotations.
        quaternion, _ = Sphere(ambient=4).draw(n_samples, rng)
        w, x, y, z = quaternion.T
        # The rows of the matrix, one below the other.
        points = np.c_[
            np.c_[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            np.c_[2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            np.c_[2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        return points, points


@dataclass(frozen=True)
class Independent:
    """Parts drawn independently, side by side in the columns of X."""

    parts: tuple[Part, ...]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples and the latents of every part."""
        drawn = [part.draw(n_samples, rng) for part in self.parts]
        X = np.hstack([points for points, _ in drawn])
        truth = tuple(latents for _, latents in drawn)
        return X, truth


@dataclass(frozen=True)
class Product(Independent):
    """The product of intervals and spheres, whose spectrum is exact."""

    parts: tuple[Interval | Sphere, ...]

    def eigenvalues(self, n: int) -> np.ndarray:
        """Return the n lowest eigenvalues: sums of one eigenvalue of each part."""

        # The n lowest sums contain only the n lowest of each part, so that the list can be cut to n
        # after every part.
        def lowest_sums(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            sums = first[:, None] + second
            return np.sort(sums.ravel())[:n]

        return reduce(lowest_sums, (part.eigenvalues(n) for part in self.parts))


def product(*parts: Interval | Sphere) -> Product:
    """Return the product of intervals, circles and spheres."""
    return Product(parts)


def independent(*parts: Part) -> Independent:
    """Return the product of any parts, also of those with a density of their own."""
    return Independent(parts)
