"""Camera images of a robot arm with two joints."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples, ring


@dataclass(frozen=True)
class ArmImages:
    """Images of a planar arm whose two links take any direction, flattened.

    The truth is the direction of each link. The angle of the second joint is their
    difference. Pixels have coordinates from -1 to 1, and the shoulder is at 0.

    Attributes
    ----------
    lengths : tuple of float
        Of the upper arm and the forearm.
    width : float
        Standard deviation of the blur of a link.
    n_pixels : int
        Width of an image.
    noise : float
        Standard deviation in each pixel, in units of the brightness of a link.
    """

    lengths: tuple[float, float] = (0.5, 0.4)
    width: float = 0.12
    n_pixels: int = 24
    noise: float = 0.05

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw images and the directions of both links."""
        angles = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
        upper, fore = (ring(angle) for angle in angles)
        elbow = self.lengths[0] * upper
        hand = elbow + self.lengths[1] * fore
        shoulder = np.zeros_like(elbow)
        # The brighter of both: where links cover each other, they do not add up.
        images = np.maximum(self._link(shoulder, elbow), self._link(elbow, hand))
        X = images + rng.normal(scale=self.noise, size=images.shape)
        return X, (upper, fore)

    def _link(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return images of the segments between points, (n_samples, n_pixels^2)."""
        grid = np.linspace(-1, 1, self.n_pixels)
        pixels = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        along = end - start
        offset = pixels - start[:, None]
        share = np.einsum("npc,nc->np", offset, along) / (along**2).sum(axis=1)[:, None]
        nearest = np.clip(share, 0, 1)[..., None] * along[:, None]
        squared = ((offset - nearest) ** 2).sum(axis=2)
        return np.exp(-squared / (2 * self.width**2))
