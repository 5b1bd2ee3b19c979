"""Parts of products other than intervals and spheres: a disk, a star, rotations."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Sphere, ring


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
    """Three segments of the given length that meet in a point, 120 degrees apart.

    Its latents are the points of the star with segments of length 1.
    """

    length: float = 1.0

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return np.sqrt(3) * self.length

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points, uniform in length, and their latents."""
        arm = rng.randint(3, size=n_samples)
        x = rng.uniform(size=(n_samples, 1)) * ring(arm * (2 * np.pi / 3))
        return self.length * x, x


@dataclass(frozen=True)
class ProjectivePlane:
    """The projective plane in R^6: the products of two coordinates of a unit vector.

    Opposite vectors have the same products. Mixed products are weighted by sqrt 2, which makes the
    map an isometry up to a common factor of sqrt 2. The latents are the points.
    """

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return np.sqrt(2)

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

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return 2 * np.sqrt(2)

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
