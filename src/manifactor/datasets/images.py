"""Images of objects that move independently: sums in the pixels, and no isometric product.

Pixels have coordinates from -1 to 1. An object is a few blurred spots that turn about a centre (a
circle) or move along a line (an interval).
"""

from collections.abc import Callable, Sequence

import numpy as np

from manifactor.datasets.products import PartSamples, Samples, family, ring

# Radius, angle and weight, all unequal: an object with a symmetry would look the same after less
# than a full turn.
TURNED_SPOTS = [(0.55, 0.0, 1.0), (0.4, 2.0, 0.7), (0.3, 4.0, 0.5)]
# Offset and weight; the second spot gives the object a front and a back.
SHIFTED_SPOTS = [((0.0, 0.0), 1.0), ((0.18, 0.23), 0.5)]

# Two objects beside each other, and nearer, so that their images overlap.
APART = ((-0.5, 0.0), (0.5, 0.0))
OVERLAPPING = ((-0.25, 0.0), (0.25, 0.0))
# Three smaller objects.
THREE_CENTRES = ((-0.55, -0.5), (0.55, -0.5), (0.0, 0.5))

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


@family
def scene(
    n_samples: int,
    rng,
    *,
    motions: Sequence[Motion],
    ratio: float,
    centres: Sequence[tuple[float, float]] | None = None,
    size: float | None = None,
    occluding: bool = False,
    noise: float = 0.0,
) -> Samples:
    """Draw images of several objects, the brightest first, flattened, and the place of each.

    The ratio is the variance of the first object's images over that of the last one's; those
    between have equal ratios. An occluding first object covers the others; else it adds to them.
    Noise in each pixel is relative to the root mean square of all pixels' standard deviations.
    """
    centres = centres or (APART if len(motions) == 2 else THREE_CENTRES)
    size = size or (0.7 if len(motions) == 2 else 0.5)
    pixels = _pixels(np.linspace(-1, 1, 24), np.linspace(-1, 1, 24))
    places = [(pixels - centre) / size for centre in centres]
    drawn = [move(n_samples, at, rng) for move, at in zip(motions, places, strict=True)]
    variances = np.geomspace(1, 1 / ratio, len(drawn))
    front, *others = (
        np.sqrt(variance) * images for variance, (images, _) in zip(variances, drawn, strict=True)
    )
    # Opaque where the first object has half of its brightness or more.
    visible = 1 - np.clip(2 * front / front.max(), 0, 1) if occluding else 1.0
    X = front + visible * sum(others)
    if noise:
        X = X + rng.normal(scale=noise * np.sqrt(X.var(axis=0).mean()), size=X.shape)
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
