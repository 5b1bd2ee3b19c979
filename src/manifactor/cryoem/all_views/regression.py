"""Volumes from images and their features by least squares, and likelihoods back.

The image of a particle is a slice of ``sum_j f_j V_j``, times its CTF, and noise: the
features f describe the particle, the volumes V are common to all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from manifactor._support.threads import map_threads, row_slices
from manifactor.cryoem.all_views.equations import Equations
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

    def of(self, columns: np.ndarray) -> "Features":
        """Return some of the features."""
        return Features(
            self.mean[:, columns], self.products[:, columns[:, None], columns]
        )

    def repeated(self, times: int) -> "Features":
        """Return the features with every particle some times in a row."""
        if times == 1:
            return self
        return self[np.repeat(np.arange(len(self.mean)), times)]


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

    def __getitem__(self, rows) -> "Likelihood":
        return Likelihood(self.linear[rows], self.quadratic[rows])


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
    equations, _ = normal_equations(transforms, features, settings=settings)
    return equations.solved(prior_variance=settings.prior_variance)


def normal_equations(
    transforms: Transforms,
    features: Features,
    *,
    volumes: np.ndarray | None = None,
    settings: RegressionSettings = RegressionSettings(),
) -> tuple[Equations, Equations]:
    """Return the equations of volumes, and those of what they leave.

    Frequencies of the grid are solved for one by one, as if an image showed each at the
    place of the grid. That is exact for what is left of images by volumes that explain
    them well.

    Parameters
    ----------
    transforms : Transforms
    features : Features
    volumes : complex ndarray of shape (n_features, grid.size) or None
        Volumes that explain the images; None for none.
    settings : RegressionSettings

    Returns
    -------
    Equations
        That `volumes_from` solves.
    Equations
        Whose solution is to be added to `volumes`.
    """
    columns = None if volumes is None else _columns(transforms, volumes)

    def summed(rows: slice) -> tuple[np.ndarray, ...]:
        return _summed(transforms[rows], features[rows], columns, settings)

    parts = map_threads(summed, _shares(len(transforms), settings))
    products, images, left = (reduce(np.add, sums) for sums in zip(*parts, strict=True))
    return (
        Equations(transforms.grid, products, images),
        Equations(transforms.grid, products, left),
    )


def _summed(
    transforms: Transforms,
    features: Features,
    columns: np.ndarray | None,
    settings: RegressionSettings,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums over images, a block at a time."""
    count = features.mean.shape[1]
    upper = np.triu_indices(count)
    size = int(transforms.grid.inside.sum())
    products = np.zeros((size, len(upper[0])), np.float32)
    images = np.zeros((size, 2 * count), np.float32)
    rest = images if columns is None else np.zeros_like(images)
    for rows in _blocks(len(transforms), settings.block):
        block = transforms[rows]
        inserted = block.grid.inner_slices(block.rotations).T
        mean = features.mean[rows, None].astype(np.float32)
        pairs = features.products[rows][:, upper[0], upper[1]].astype(np.float32)
        values, transfer = block.weighted
        shown = values[..., None] * mean
        seen = (transfer**2)[..., None] * pairs[:, None]
        images += inserted @ _parts(shown * transfer[..., None])
        products += inserted @ seen.reshape(-1, len(upper[0]))
        if columns is not None:
            shown -= _expected(block, columns, features.products[rows])
            rest += inserted @ _parts(shown * transfer[..., None])
    return products, images, rest


def _parts(values: np.ndarray) -> np.ndarray:
    """Return real and imaginary parts side by side, (n * n_pixels, 2 * n_features)."""
    parts = np.concatenate([values.real, values.imag], axis=2)
    return parts.reshape(-1, parts.shape[2])


def _expected(
    block: Transforms, columns: np.ndarray, products: np.ndarray
) -> np.ndarray:
    """Return the expected features times images, (n, n_pixels, n_features)."""
    shown = _shown(block, columns)
    products = products[:, None].astype(np.float32)
    # Real and imaginary parts are rows of a matrix product.
    real, imaginary = np.moveaxis(shown @ products, 2, 0)
    return real + 1j * imaginary


def _shown(block: Transforms, columns: np.ndarray) -> np.ndarray:
    """Return what images show of volumes, (n, n_pixels, 2, n_features)."""
    values, transfer = block.weighted
    shown = block.grid.slices(block.rotations) @ columns
    shown = shown.reshape(*values.shape, 2, columns.shape[1] // 2)
    return shown * transfer[..., None, None]


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
    values, _ = block.weighted
    n_images, n_pixels = values.shape
    shown = _shown(block, columns)
    shown = shown.reshape(n_images, 2 * n_pixels, shown.shape[-1])
    seen = np.stack([values.real, values.imag], axis=2)
    seen = seen.reshape(n_images, 1, 2 * n_pixels)
    # The noise of a coefficient has variance 1, half of it in each part.
    linear = 2 * (seen @ shown)[:, 0]
    quadratic = 2 * (shown.transpose(0, 2, 1) @ shown)
    return linear, quadratic


def residuals(
    transforms: Transforms,
    volumes: np.ndarray,
    features: np.ndarray,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> np.ndarray:
    """Return the mean square of what volumes leave of images, by frequency, (m,).

    Parameters
    ----------
    transforms : Transforms
        A few thousand: all of them at a time.
    volumes : complex ndarray of shape (n_features, grid.size)
    features : ndarray of shape (n, n_features)
    settings : RegressionSettings
    """
    sharp = transforms.grid.sharpened(volumes).T.astype(np.complex64)
    squares = np.zeros(transforms.values.shape[1])
    for rows in _blocks(len(transforms), settings.block):
        block = transforms[rows]
        shown = block.grid.slices(block.rotations) @ sharp
        shown = shown.reshape(*block.values.shape, -1)
        left = block.values - block.transfer * (shown @ features[rows, :, None])[..., 0]
        squares += (np.abs(left) ** 2).sum(axis=0)
    return squares / len(transforms)


def _shares(n_images: int, settings: RegressionSettings) -> Sequence[slice]:
    """Return a share of the images for each thread."""
    at_least = max(settings.block, n_images // settings.max_threads)
    return row_slices(n_images, n_images, at_least=at_least)


def _blocks(stop: int, size: int, *, start: int = 0) -> list[slice]:
    return [slice(low, min(low + size, stop)) for low in range(start, stop, size)]
