"""Volumes from images and their features by least squares, and likelihoods back.

The image of a particle is a slice of ``sum_j f_j V_j``, times its CTF, and noise: the
features f describe the particle, the volumes V are common to all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from manifactor._support.threads import map_threads, row_slices
from manifactor.cryoem.all_views.transforms import Transforms


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of `volumes_from` and `likelihood`."""

    # Prior variance of a volume's coefficients, in units of the noise of an image. It
    # matters only at frequencies that hardly any image shows.
    prior_variance: float = 1.0
    # Images at a time: their slices take some 10 MB.
    block: int = 256
    # Images whose likelihoods are held at a time: 20 MB for 12 features, where those of
    # all images may take more memory than the images themselves.
    batch: int = 16_384
    # Threads: each sums its own normal equations, of some 25 MB.
    max_threads: int = 8


@dataclass(frozen=True)
class Features:
    """What is known of the features of particles.

    Attributes
    ----------
    mean : ndarray of shape (n, n_features)
    products : ndarray of shape (n, n_features, n_features)
        Means of the products of two features.
    """

    mean: np.ndarray
    products: np.ndarray

    @classmethod
    def known(cls, values: np.ndarray) -> "Features":
        """Return features without uncertainty."""
        return cls(values, values[:, :, None] * values[:, None])

    def __getitem__(self, rows) -> "Features":
        return Features(self.mean[rows], self.products[rows])


@dataclass(frozen=True)
class Likelihood:
    """The log-likelihood ``linear @ f - f @ quadratic @ f / 2`` of features f.

    Attributes
    ----------
    linear : ndarray of shape (n, n_features)
    quadratic : ndarray of shape (n, n_features, n_features)
        It depends on the view and on the CTF, not on the image.
    """

    linear: np.ndarray
    quadratic: np.ndarray


def volumes_from(
    transforms: Transforms,
    features: Features,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> np.ndarray:
    """Compute the volumes that explain images best, given their features.

    Parameters
    ----------
    transforms : Transforms
    features : Features
    settings : RegressionSettings

    Returns
    -------
    complex ndarray of shape (n_features, grid.size)
    """

    def summed(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        return _normal_equations(transforms[rows], features[rows], settings)

    parts = map_threads(summed, _shares(len(transforms), settings))
    matrices, images = (reduce(np.add, sums) for sums in zip(*parts, strict=True))
    return _solved(transforms, matrices, images, settings)


def _normal_equations(
    transforms: Transforms, features: Features, settings: RegressionSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of products of features, and of features times images.

    They are of the frequencies ``grid.inside``.
    """
    count = features.mean.shape[1]
    upper = np.triu_indices(count)
    size = int(transforms.grid.inside.sum())
    matrices = np.zeros((size, len(upper[0])), np.float32)
    images = np.zeros((size, 2 * count), np.float32)
    for rows in _blocks(len(transforms), settings.block):
        block = transforms[rows]
        inserted = block.grid.inner_slices(block.rotations).T
        mean = features.mean[rows, None].astype(np.float32)
        products = features.products[rows][:, upper[0], upper[1]].astype(np.float32)
        shown = (block.values * block.transfer)[..., None] * mean
        parts = np.concatenate([shown.real, shown.imag], axis=2)
        seen = (block.transfer**2)[..., None] * products[:, None]
        images += inserted @ parts.reshape(-1, 2 * count)
        matrices += inserted @ seen.reshape(-1, len(upper[0]))
    return matrices, images


def _solved(
    transforms: Transforms,
    matrices: np.ndarray,
    images: np.ndarray,
    settings: RegressionSettings,
) -> np.ndarray:
    """Solve the normal equations of every frequency below the cut."""
    grid = transforms.grid
    count = images.shape[1] // 2
    # A real volume's coefficients at opposite frequencies are conjugates, and the grid
    # is symmetric: reversed, it holds the opposites. Half of them are enough.
    inside = np.flatnonzero(grid.inside)
    half = (len(inside) + 1) // 2
    sums = matrices[:half] + matrices[::-1][:half]
    # Real and imaginary parts side by side: the matrices are real.
    parts = images.reshape(-1, 2, count).transpose(0, 2, 1)
    right = parts[:half] + parts[::-1][:half] * [1.0, -1.0]
    left = np.empty((half, count, count))
    rows, columns = np.triu_indices(count)
    left[:, rows, columns] = sums
    left[:, columns, rows] = sums
    left += np.eye(count) / settings.prior_variance
    real, imaginary = np.moveaxis(np.linalg.solve(left, right), 2, 0)
    solved = real + 1j * imaginary
    volumes = np.zeros((grid.size, count), complex)
    volumes[inside[:half]] = solved
    volumes[inside[::-1][:half]] = solved.conj()
    return grid.bounded(volumes.T)


def likelihood(
    transforms: Transforms,
    volumes: np.ndarray,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> Likelihood:
    """Return the log-likelihood of the features of every image.

    Parameters
    ----------
    transforms : Transforms
    volumes : complex ndarray of shape (n_features, grid.size)
    settings : RegressionSettings
    """
    return _likelihood(transforms, _columns(transforms, volumes), settings)


def likelihoods(
    transforms: Transforms,
    volumes: np.ndarray,
    *,
    report: Callable[[float], None] = lambda fraction: None,
    settings: RegressionSettings = RegressionSettings(),
) -> Iterator[Likelihood]:
    """Yield the log-likelihoods of all images in order, a batch at a time.

    Parameters
    ----------
    transforms : Transforms
    volumes : complex ndarray of shape (n_features, grid.size)
    report : callable
        Called with the fraction that is done.
    settings : RegressionSettings
    """
    columns = _columns(transforms, volumes)
    for rows in _blocks(len(transforms), settings.batch):
        yield _likelihood(transforms[rows], columns, settings)
        report(rows.stop / len(transforms))


def _columns(transforms: Transforms, volumes: np.ndarray) -> np.ndarray:
    """Return real and imaginary parts of volumes to interpolate, as columns."""
    sharp = transforms.grid.sharpened(volumes)
    return np.concatenate([sharp.real, sharp.imag]).T.astype(np.float32)


def _likelihood(
    transforms: Transforms, columns: np.ndarray, settings: RegressionSettings
) -> Likelihood:
    count, n_images = columns.shape[1] // 2, len(transforms)
    linear = np.empty((n_images, count))
    quadratic = np.empty((n_images, count, count))

    def compare(share: slice) -> None:
        for rows in _blocks(share.stop, settings.block, start=share.start):
            linear[rows], quadratic[rows] = _compared(transforms[rows], columns)

    map_threads(compare, _shares(n_images, settings))
    return Likelihood(linear, quadratic)


def _compared(block: Transforms, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the linear and quadratic terms of a block of images."""
    n_images, n_pixels = block.values.shape
    count = columns.shape[1] // 2
    shown = block.grid.slices(block.rotations) @ columns
    shown = shown.reshape(n_images, n_pixels, 2, count)
    shown = shown * block.transfer[..., None, None]
    shown = shown.reshape(n_images, 2 * n_pixels, count)
    seen = np.stack([block.values.real, block.values.imag], axis=2)
    seen = seen.reshape(n_images, 1, 2 * n_pixels)
    # The noise of a coefficient has variance 1, half of it in each part.
    linear = 2 * (seen @ shown)[:, 0]
    quadratic = 2 * (shown.transpose(0, 2, 1) @ shown)
    return linear, quadratic


def _shares(n_images: int, settings: RegressionSettings) -> Sequence[slice]:
    """Return a share of the images for each thread."""
    at_least = max(settings.block, n_images // settings.max_threads)
    return row_slices(n_images, n_images, at_least=at_least)


def _blocks(stop: int, size: int, *, start: int = 0) -> list[slice]:
    return [slice(low, min(low + size, stop)) for low in range(start, stop, size)]
