"""Normal equations of volumes, one small system for each frequency."""

from dataclasses import dataclass

import numpy as np

from manifactor.cryoem.all_views.slices import VolumeGrid


@dataclass(frozen=True)
class Equations:
    """Normal equations of volumes at every frequency, sums over images.

    Attributes
    ----------
    grid : VolumeGrid
    products : float32 ndarray of shape (m, n_features * (n_features + 1) / 2)
        Of two features, the upper triangle, at the frequencies ``grid.inside``.
    images : float32 ndarray of shape (m, 2 * n_features)
        Features times images, real parts and then imaginary parts.
    """

    grid: VolumeGrid
    products: np.ndarray
    images: np.ndarray

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.images.shape[1] // 2

    def __add__(self, other: "Equations") -> "Equations":
        return Equations(
            self.grid, self.products + other.products, self.images + other.images
        )

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
        coverage = np.zeros(self.grid.size)
        coverage[self.grid.inside] = seen + seen[::-1]
        return coverage

    def solved(
        self, *, prior_variance: np.ndarray | float, about: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the volumes, complex, (n_features, grid.size), inside the ball.

        Parameters
        ----------
        prior_variance : float or ndarray of shape (n_features, grid.size)
            Of the coefficients, in units of the noise of an image.
        about : complex ndarray of shape (n_features, grid.size) or None
            Volumes that the result is added to. The prior is that of their sum.
        """
        grid, count = self.grid, self.n_features
        # A real volume's coefficients at opposite frequencies are conjugates, and the
        # grid is symmetric: reversed, it holds the opposites. Half of them are enough.
        inside = np.flatnonzero(grid.inside)
        half = (len(inside) + 1) // 2
        products = self.products[:half] + self.products[::-1][:half]
        images, opposite = self.images[:half], self.images[::-1][:half]
        right = np.empty((half, count, 2))
        right[..., 0] = images[:, :count] + opposite[:, :count]
        right[..., 1] = images[:, count:] - opposite[:, count:]
        left = np.empty((half, count, count))
        rows, columns = np.triu_indices(count)
        left[:, rows, columns] = products
        left[:, columns, rows] = products
        spread = np.broadcast_to(prior_variance, (count, grid.size))
        precision = 1 / spread[:, inside[:half]].T
        left[:, np.arange(count), np.arange(count)] += precision
        if about is not None:
            known = about[:, inside[:half]].T * precision
            right -= np.stack([known.real, known.imag], axis=2)
        real, imaginary = np.moveaxis(np.linalg.solve(left, right), 2, 0)
        volumes = np.zeros((grid.size, count), complex)
        volumes[inside[:half]] = real + 1j * imaginary
        volumes[inside[::-1][:half]] = real - 1j * imaginary
        return grid.bounded(volumes.T)
