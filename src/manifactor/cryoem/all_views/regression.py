"""Volumes from images and their features by least squares.

The image of a particle is a slice of ``sum_j f_j V_j``, times its CTF, and noise: the features f
describe the particle, the volumes V are common to all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice

import numpy as np

from manifactor._support.threads import one_blas_thread, over_cores
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.equations import Equations, folded_images, folded_products
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.all_views.transforms import Transforms

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of `volumes_from` and of likelihoods.

    Images are divided by numbers that do not depend on the machine, and sums are taken in a fixed
    order: results are the same on any number of cores and workers.
    """

    # Prior variance of a volume's coefficients, in units of the noise of an image. It matters only
    # at frequencies that hardly any image shows.
    prior_variance: float = 1.0
    # Images at a time: their slices take some 10 MB.
    block: int = 256
    # Images whose normal equations a thread sums, of some 25 MB. Adding the sums of 512 takes a
    # twentieth of the time that it takes to compute them.
    share: int = 512
    # Images of a piece of work: a second or more for one core, in which 9 MB of images and some 10
    # MB of volumes go to a worker. Eight threads share it at most.
    piece: int = 4096

    @property
    def max_threads(self) -> int:
        """Threads that sum normal equations at the same time."""
        return self.piece // self.share


@dataclass(frozen=True)
class Features:
    """What is known of the features of particles."""

    mean: np.ndarray  # (n, n_features)
    products: np.ndarray  # (n, n_features, n_features): means of the products of two features

    @classmethod
    def known(cls, values: np.ndarray) -> "Features":
        """Return features without uncertainty."""
        return cls(values, values[:, :, None] * values[:, None])

    def __getitem__(self, rows) -> "Features":
        return Features(self.mean[rows], self.products[rows])

    def of(self, columns: np.ndarray) -> "Features":
        """Return some of the features."""
        return Features(self.mean[:, columns], self.products[:, columns[:, None], columns])

    def repeated(self, times: int) -> "Features":
        """Return the features with every particle some times in a row."""
        if times == 1:
            return self
        return self[np.repeat(np.arange(len(self.mean)), times)]


def volumes_from(
    transforms: Transforms,
    features: Features,
    *,
    workers: Workers = Here(),
    settings: RegressionSettings = RegressionSettings(),
) -> np.ndarray:
    """Compute the volumes that explain images best, given their features.

    Returns (n_features, grid.size).
    """
    ((equations, _),) = normal_equations(
        [(transforms, features)], workers=workers, settings=settings
    )
    return equations.solved(prior_variance=settings.prior_variance)


def normal_equations(
    sets: Sequence[tuple[Transforms, Features]],
    *,
    volumes: np.ndarray | None = None,
    workers: Workers = Here(),
    settings: RegressionSettings = RegressionSettings(),
) -> list[tuple[Equations, Equations]]:
    """Return the equations of volumes, and those of what they leave, of sets of images.

    Frequencies of the grid are solved for one by one, as if an image showed each at the place of
    the grid. That is exact for what is left of images by volumes that explain them well.

    Shapes: volumes (n_features, grid.size).
    """
    grid = sets[0][0].grid
    columns = None if volumes is None else grid.columns(volumes)
    pieces = [image_blocks(len(images), settings.piece) for images, _ in sets]
    jobs = [
        (images[rows], features[rows], columns, settings)
        for (images, features), parts in zip(sets, pieces, strict=True)
        for rows in parts
    ]
    sums = workers.map(_piece_sums, jobs)
    found = [reduce(_sum, islice(sums, len(parts))) for parts in pieces]
    return [_both_equations(grid, *each) for each in found]


def _both_equations(
    grid: VolumeGrid, products: np.ndarray, images: np.ndarray, left: np.ndarray | None = None
) -> tuple[Equations, Equations]:
    whole = Equations(grid, products, images)
    return whole, whole if left is None else Equations(grid, products, left)


def _sum(first: Arrays, second: Arrays) -> Arrays:
    # Arrays of another process may be read-only.
    return tuple(map(np.add, first, second))


def _added(first: Arrays, second: Arrays) -> Arrays:
    """Return the sums of arrays, in place of the first, which nobody else holds."""
    # Sums of many features take some 300 MB.
    return tuple(np.add(a, b, out=a) for a, b in zip(first, second, strict=True))


def _piece_sums(
    transforms: Transforms,
    features: Features,
    columns: np.ndarray | None,
    settings: RegressionSettings,
) -> Arrays:
    """Return the sums of one piece, a share of the images in each thread."""

    def summed(rows: slice) -> Arrays:
        return _share_sums(transforms[rows], features[rows], columns, settings)

    with one_blas_thread():
        shares = over_cores(summed, image_blocks(len(transforms), settings.share))
        return reduce(_added, shares)


def _share_sums(
    transforms: Transforms,
    features: Features,
    columns: np.ndarray | None,
    settings: RegressionSettings,
) -> Arrays:
    """Return the sums of a share of the images, a block at a time."""
    blocks = (
        _block_sums(transforms[rows], features[rows], columns)
        for rows in image_blocks(len(transforms), settings.block)
    )
    products, *images = reduce(_added, blocks)
    return folded_products(products), *map(folded_images, images)


def _block_sums(block: Transforms, features: Features, columns: np.ndarray | None) -> Arrays:
    """Return sums over a block of images at the frequencies ``grid.inside``.

    Products of features, features times images, and the same of what volumes leave of the images,
    unless there are none.
    """
    first, second = np.triu_indices(features.mean.shape[1])
    inserted = block.grid.inner_slices(block.rotations).T
    mean = features.mean[:, None].astype(np.float32)
    pairs = features.products[:, first, second].astype(np.float32)
    values, transfer = block.weighted
    shown = values[..., None] * mean
    seen = (transfer**2)[..., None] * pairs[:, None]
    products = inserted @ seen.reshape(-1, len(first))
    images = inserted @ _parts(shown * transfer[..., None])
    if columns is None:
        return products, images
    left = shown - _expected(block, columns, features.products)
    return products, images, inserted @ _parts(left * transfer[..., None])


def _parts(values: np.ndarray) -> np.ndarray:
    """Return real and imaginary parts side by side, (n * n_pixels, 2 * n_features)."""
    parts = np.concatenate([values.real, values.imag], axis=2)
    return parts.reshape(-1, parts.shape[2])


def _expected(block: Transforms, columns: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the expected features times images, (n, n_pixels, n_features)."""
    shown = block.shown(columns)
    products = products[:, None].astype(np.float32)
    # Real and imaginary parts are rows of a matrix product.
    real, imaginary = np.moveaxis(shown @ products, 2, 0)
    return real + 1j * imaginary


def residuals(
    transforms: Transforms,
    volumes: np.ndarray,
    features: np.ndarray,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> np.ndarray:
    """Return the mean square of what volumes leave of images, by frequency, (m,).

    Shapes: volumes (n_features, grid.size), features (n, n_features).
    """
    sharp = transforms.grid.sharpened(volumes).T.astype(np.complex64)
    squares = np.zeros(transforms.values.shape[1])
    for rows in image_blocks(len(transforms), settings.block):
        block = transforms[rows]
        shown = block.grid.slices(block.rotations) @ sharp
        shown = shown.reshape(*block.values.shape, -1)
        left = block.values - block.transfer * (shown @ features[rows, :, None])[..., 0]
        squares += (np.abs(left) ** 2).sum(axis=0)
    return squares / len(transforms)


def image_blocks(n_images: int, size: int) -> list[slice]:
    """Divide images into blocks of this size, and a smaller last one.

    >>> image_blocks(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    # No images are one block of none.
    starts = range(0, max(n_images, 1), size)
    return [slice(start, min(start + size, n_images)) for start in starts]
