"""Normal equations of volumes, one small system for each frequency."""

from dataclasses import dataclass

import numpy as np

from manifactor._support.threads import map_panels
from manifactor.cryoem.all_views.slices import VolumeGrid


@dataclass(frozen=True)
class Equations:
    """Normal equations of volumes at every frequency, sums over images.

    A real volume's coefficients at opposite frequencies are conjugates, and the grid is symmetric:
    reversed, it holds the opposites. Half of the frequencies are enough.
    """

    grid: VolumeGrid
    # (m, n_features * (n_features + 1): of two features, the upper triangle, at the first half of
    # the frequencies ``grid.inside``
    products: np.ndarray
    # (m, 2 * n_features): features times images, real parts and then imaginary parts
    images: np.ndarray

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.images.shape[1] // 2

    def __add__(self, other: "Equations") -> "Equations":
        return Equations(self.grid, self.products + other.products, self.images + other.images)

    def of(self, columns: np.ndarray) -> "Equations":
        """Return the equations of some of the features, ascending."""
        chosen = np.isin(np.arange(self.n_features), columns)
        first, second = np.triu_indices(self.n_features)
        return Equations(
            self.grid,
            self.products[:, chosen[first] & chosen[second]],
            self.images[:, np.tile(chosen, 2)],
        )

    @property
    def coverage(self) -> np.ndarray:
        """Sum of the squared CTFs of images that show each frequency, (grid.size,).

        The first feature must be the constant 1.
        """
        seen = self.products[:, 0]
        first, opposite = self._halves
        coverage = np.zeros(self.grid.size)
        coverage[first] = seen
        coverage[opposite] = seen
        return coverage

    @property
    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the first half of the frequencies, and of their opposites."""
        inside = np.flatnonzero(self.grid.inside)
        half = (len(inside) + 1) // 2
        return inside[:half], inside[::-1][:half]

    def solved(
        self, *, prior_variance: np.ndarray | float, about: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the volumes, complex, (n_features, grid.size), inside the ball.

        Shapes: prior_variance (n_features, grid.size), about (n_features, grid.size).
        """
        grid, count = self.grid, self.n_features
        first, opposite = self._halves
        spread = np.broadcast_to(prior_variance, (count, grid.size))
        precision = 1 / spread[:, first].T
        known = None if about is None else about[:, first].T

        def solve(rows: slice) -> np.ndarray:
            return self._solution(rows, precision[rows], None if known is None else known[rows])

        # Every system by itself, so that results do not depend on the panels.
        panels = map_panels(solve, len(first), smallest=2000, largest=5000)
        real, imaginary = np.moveaxis(np.concatenate(panels), 2, 0)
        volumes = np.zeros((grid.size, count), complex)
        volumes[first] = real + 1j * imaginary
        volumes[opposite] = real - 1j * imaginary
        return grid.bounded(volumes.T)

    def _solution(self, rows: slice, precision: np.ndarray, about: np.ndarray | None) -> np.ndarray:
        """Return real and imaginary parts at some frequencies, (m, n_features, 2)."""
        count = self.n_features
        products, images = self.products[rows], self.images[rows]
        right = images.reshape(-1, 2, count).transpose(0, 2, 1).astype(float)
        left = np.empty((len(products), count, count))
        first, second = np.triu_indices(count)
        left[:, first, second] = products
        left[:, second, first] = products
        left[:, np.arange(count), np.arange(count)] += precision
        if about is not None:
            known = about * precision
            right -= np.stack([known.real, known.imag], axis=2)
        return np.linalg.solve(left, right)


def folded_products(sums: np.ndarray) -> np.ndarray:
    """Return products of `Equations`, given sums at all frequencies ``grid.inside``."""
    half = (len(sums) + 1) // 2
    return sums[:half] + sums[::-1][:half]


def folded_images(sums: np.ndarray) -> np.ndarray:
    """Return images of `Equations`, given sums at all frequencies ``grid.inside``."""
    half, count = (len(sums) + 1) // 2, sums.shape[1] // 2
    # The imaginary part of a conjugate has the opposite sign.
    sign = np.repeat(np.array([1, -1], sums.dtype), count)
    return sums[:half] + sign * sums[::-1][:half]
