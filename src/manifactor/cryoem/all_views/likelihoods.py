"""Likelihoods of the features of images, and functions of them mapped over images.

Likelihoods of all images may take more memory than the images: what a function makes of those of
some images is kept, and they are not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifactor._support.threads import one_blas_thread, over_cores
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.regression import Arrays, RegressionSettings, image_blocks
from manifactor.cryoem.all_views.transforms import Transforms


@dataclass(frozen=True)
class Likelihood:
    """The log-likelihood ``linear @ f - f @ quadratic @ f / 2`` of features f."""

    linear: np.ndarray  # (n, n_features)
    # (n, n_features, n_features): it depends on the view and on the CTF, not on the image
    quadratic: np.ndarray

    def __getitem__(self, rows) -> "Likelihood":
        return Likelihood(self.linear[rows], self.quadratic[rows])


def likelihood(
    transforms: Transforms,
    volumes: np.ndarray,
    *,
    settings: RegressionSettings = RegressionSettings(),
) -> Likelihood:
    """Return the log-likelihood of the features of every image.

    Shapes: volumes (n_features, grid.size).
    """
    return Likelihood(*map_likelihoods(_both_terms, transforms, volumes, settings=settings))


def _both_terms(terms: Likelihood) -> Arrays:
    return terms.linear, terms.quadratic


def map_likelihoods(
    work: Callable[..., Arrays],
    transforms: Transforms,
    volumes: np.ndarray,
    *more: Any,
    workers: Workers = Here(),
    settings: RegressionSettings = RegressionSettings(),
) -> Arrays:
    """Map `work` over the likelihoods of images, a block at a time.

    Shapes: volumes (n_features, grid.size).
    """
    jobs = likelihood_jobs(work, transforms, volumes, *more, settings=settings)
    return joined(workers.map(likelihood_piece, jobs))


def likelihood_jobs(
    work: Callable[..., Arrays],
    transforms: Transforms,
    volumes: np.ndarray,
    *more: Any,
    settings: RegressionSettings = RegressionSettings(),
) -> list[tuple]:
    """Return arguments of `likelihood_piece`; see `map_likelihoods`."""
    columns = transforms.grid.columns(volumes)
    return [
        (work, transforms[rows], columns, more, settings)
        for rows in image_blocks(len(transforms), settings.piece)
    ]


def likelihood_piece(
    work: Callable[..., Arrays],
    transforms: Transforms,
    columns: np.ndarray,
    more: tuple,
    settings: RegressionSettings,
) -> Arrays:
    """Return what `work` makes of the likelihoods of a piece of the images."""

    def done(rows: slice) -> Arrays:
        return work(_compared(transforms[rows], columns), *more)

    with one_blas_thread():
        blocks = image_blocks(len(transforms), settings.block)
        return joined(over_cores(done, blocks))


def joined(parts: Iterable[Arrays]) -> Arrays:
    """Return arrays of several parts, each joined along the first axis."""
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _compared(block: Transforms, columns: np.ndarray) -> Likelihood:
    """Return the likelihood of a block of images."""
    values, _ = block.weighted
    n_images, n_pixels = values.shape
    shown = block.shown(columns)
    shown = shown.reshape(n_images, 2 * n_pixels, shown.shape[-1])
    seen = np.stack([values.real, values.imag], axis=2)
    seen = seen.reshape(n_images, 1, 2 * n_pixels)
    # The noise of a coefficient has variance 1, half of it in each part.
    linear = 2 * (seen @ shown)[:, 0]
    quadratic = 2 * (shown.transpose(0, 2, 1) @ shown)
    return Likelihood(linear.astype(float), quadratic.astype(float))
