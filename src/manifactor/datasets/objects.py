"""Images of objects that move independently: sums in the pixels, no isometric product.

Pixels have coordinates from -1 to 1. An object is a few blurred spots that turn about a centre (a
circle) or move along a line (an interval).
"""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples, ring

# Unequal in radius, angle and weight: an object with a symmetry would look the same after less than
# a full turn.
TURNED_SPOTS = [(0.55, 0.0, 1.0), (0.4, 2.0, 0.7), (0.3, 4.0, 0.5)]
# Offset and weight; the second spot gives the object a front and a back.
SHIFTED_SPOTS = [((0.0, 0.0), 1.0), ((0.18, 0.23), 0.5)]


@dataclass(frozen=True)
class Turning:
    """An object that turns about its centre."""

    centre: tuple[float, float]
    size: float

    def draw(self, n_samples: int, pixels: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return images, (n_samples, n_pixels), and cosine and sine of the angle."""
        angle = rng.uniform(0, 2 * np.pi, size=n_samples)
        return _turned((pixels - self.centre) / self.size, angle), ring(angle)


@dataclass(frozen=True)
class Shifting:
    """An object that moves up and down by as much as its size."""

    centre: tuple[float, float]
    size: float

    def draw(self, n_samples: int, pixels: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return images, (n_samples, n_pixels), and the place from 0 to 1."""
        place = rng.uniform(size=(n_samples, 1))
        path = np.c_[np.zeros(n_samples), place[:, 0] - 0.5]
        local = (pixels - self.centre) / self.size
        images = np.zeros((n_samples, len(pixels)))
        for offset, weight in SHIFTED_SPOTS:
            images = images + _spot(local, path + offset, weight)
        return images, place


@dataclass(frozen=True)
class Scene:
    """Images of several objects, flattened."""

    objects: tuple[Turning | Shifting, ...]  # the brightest first
    # Variance of the first object's images over that of the last one's. Those between have equal
    # ratios.
    variance_ratio: float
    occluding: bool = False  # whether the first object covers the others, or adds to them
    # Standard deviation of the noise in each pixel, relative to the root mean square of all pixels'
    # standard deviations
    noise: float = 0.0

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw images and the place of each object."""
        pixels = _pixels(np.linspace(-1, 1, 24))
        drawn = [one.draw(n_samples, pixels, rng) for one in self.objects]
        variances = np.geomspace(1, 1 / self.variance_ratio, len(drawn))
        front, *others = (
            np.sqrt(variance) * _of_variance_one(images)
            for variance, (images, _) in zip(variances, drawn, strict=True)
        )
        X = front + self._visible(front) * sum(others)
        if self.noise:
            deviation = self.noise * np.sqrt(X.var(axis=0).mean())
            X = X + rng.normal(scale=deviation, size=X.shape)
        return X, tuple(latents for _, latents in drawn)

    def _visible(self, front: np.ndarray) -> np.ndarray | float:
        """Return the share of what lies behind the first object that is seen."""
        if not self.occluding:
            return 1.0
        # Opaque where the object has half of its brightness or more.
        return 1 - np.clip(2 * front / front.max(), 0, 1)


def turning_objects(n_samples: int, rng) -> Samples:
    """Draw wide images of two objects that turn independently: additive, not a product.

    The first object has 5 times the variance of the second.
    """
    angles = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    pixels = _pixels(np.linspace(-1.5, 1.5, 24), np.linspace(-1, 1, 16))
    first = _of_variance_one(_turned(pixels - [-0.6, 0], angles[0]))
    second = _of_variance_one(_turned(pixels - [0.6, 0], angles[1]))
    return first + second / np.sqrt(5), tuple(ring(angle) for angle in angles)


def _turned(pixels: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return images of three spots turned about the origin, (n_samples, n_pixels)."""
    images = np.zeros((len(angle), len(pixels)))
    for radius, start, weight in TURNED_SPOTS:
        images = images + _spot(pixels, radius * ring(angle + start), weight)
    return images


def _spot(pixels: np.ndarray, centres: np.ndarray, weight: float) -> np.ndarray:
    """Return images of a blurred spot, (n_samples, n_pixels)."""
    squared = ((pixels - centres[:, None]) ** 2).sum(axis=2)
    return weight * np.exp(-squared / 0.08)


def _pixels(columns: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Return the coordinates of the pixels of an image, (n_pixels, 2), row by row."""
    rows = columns if rows is None else rows
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)


def _of_variance_one(images: np.ndarray) -> np.ndarray:
    """Return images whose variances in all pixels add up to 1."""
    return images / np.sqrt(images.var(axis=0).sum())
