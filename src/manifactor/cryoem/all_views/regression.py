"""Volumes from images and their features by least squares, and likelihoods of features.

An image is a slice of ``sum_j f_j V_j``, times its CTF, and noise: the features f describe the
particle, the volumes V are common to all. Volumes follow from a small system for each frequency.
Pieces and the order of sums are the same on any number of cores and workers, and so are results.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.threads import map_panels, one_blas_thread, over_cores
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.transforms import Transforms, VolumeGrid
from manifactor.operators.engines.gpu import from_tensor, namespace, sparse_rows, transposed
from manifactor.samples.likelihood import GaussianLikelihood

# Images at a time: their slices take some 10 MB.
BLOCK = 256
# Images whose normal equations a thread sums, of some 25 MB. Adding the sums of 512 takes a
# twentieth of the time that it takes to compute them.
THREAD_IMAGES = 512
# Images of a piece of work: a second or more for one core, in which 9 MB of images and some 10 MB
# of volumes go to a worker. Eight threads share it at most. On a GPU its equations are summed at
# once, in some 2 GB there.
PIECE = 4096

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Equations:
    """Normal equations of volumes, sums over images.

    A real volume's coefficients at opposite frequencies are conjugates, half of which are enough.
    The grid is symmetric: reversed, it holds the opposites.
    """

    grid: VolumeGrid
    # (m, n_features * (n_features + 1) / 2): products of two features, the upper triangle, at the
    # first half of the frequencies ``grid.inside``
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
        products = self.products[:, chosen[first] & chosen[second]]
        return Equations(self.grid, products, self.images[:, np.tile(chosen, 2)])

    @property
    def coverage(self) -> np.ndarray:
        """Sum of squared CTFs at each frequency, (grid.size,), if the first feature is 1."""
        coverage = np.zeros(self.grid.size)
        for half in self._halves:
            coverage[half] = self.products[:, 0]
        return coverage

    @property
    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the first half of the frequencies, and of their opposites."""
        inside = np.flatnonzero(self.grid.inside)
        half = (len(inside) + 1) // 2
        return inside[:half], inside[::-1][:half]

    def solve(
        self, *, prior_variance: np.ndarray | float = 1.0, about: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the volumes, complex, (n_features, grid.size), inside the ball.

        The prior variance of their coefficients, `about` volumes, is in units of the noise of an
        image. A single one matters only at frequencies that hardly any image shows.
        """
        first, opposite = self._halves
        count, shape = self.n_features, (self.n_features, self.grid.size)
        precision = 1 / np.broadcast_to(prior_variance, shape)[:, first].T
        row, column = np.triu_indices(count)
        diagonal = np.arange(count)

        def solve(rows: slice) -> np.ndarray:
            """Return real and imaginary parts at some frequencies, (m, n_features, 2)."""
            right = self.images[rows].reshape(-1, 2, count).transpose(0, 2, 1).astype(float)
            left = np.empty((len(right), count, count))
            left[:, row, column] = left[:, column, row] = self.products[rows]
            left[:, diagonal, diagonal] += precision[rows]
            if about is not None:
                known = about[:, first[rows]].T * precision[rows]
                right -= np.stack([known.real, known.imag], axis=2)
            return np.linalg.solve(left, right)

        # Every system by itself, so that results do not depend on the panels.
        panels = map_panels(solve, len(first), smallest=2000, largest=5000)
        real, imaginary = np.moveaxis(np.concatenate(panels), 2, 0)
        volumes = np.zeros(shape[::-1], complex)
        volumes[first] = real + 1j * imaginary
        volumes[opposite] = real - 1j * imaginary
        return self.grid.bound(volumes.T)


@dataclass(frozen=True)
class FeatureMoments:
    """What is known of the features of particles."""

    mean: np.ndarray  # (n, n_features)
    products: np.ndarray  # (n, n_features, n_features): means of the products of two features

    @classmethod
    def known(cls, values: np.ndarray) -> "FeatureMoments":
        """Return features without uncertainty."""
        return cls(values, values[:, :, None] * values[:, None])

    def __getitem__(self, rows) -> "FeatureMoments":
        return FeatureMoments(self.mean[rows], self.products[rows])

    def of(self, columns: np.ndarray) -> "FeatureMoments":
        """Return some of the features."""
        return FeatureMoments(self.mean[:, columns], self.products[:, columns[:, None], columns])


def volumes_from(
    transforms: Transforms, features: FeatureMoments, workers: Workers = Here()
) -> np.ndarray:
    """Return the volumes, (n_features, grid.size), that explain images best."""
    ((equations, _),) = normal_equations([(transforms, features)], workers=workers)
    return equations.solve()


def normal_equations(
    sets: Sequence[tuple[Transforms, FeatureMoments]],
    volumes: Sequence[np.ndarray] | None = None,
    workers: Workers = Here(),
) -> list[tuple[Equations, Equations]]:
    """Return the equations of volumes, and those of what they leave, of sets of images."""
    # Each set may have volumes of its own. Frequencies are solved for one by one, as if an image
    # showed each exactly on the grid: exact for what good volumes leave of images.
    grid = sets[0][0].grid
    columns = len(sets) * [None] if volumes is None else [*map(grid.columns, volumes)]
    pieces = [list(gen_batches(len(images), PIECE)) for images, _ in sets]
    jobs = [
        (images[rows], features[rows], own)
        for (images, features), parts, own in zip(sets, pieces, columns, strict=True)
        for rows in parts
    ]
    sums = workers.map(_piece_sums, jobs)
    equations = []
    for parts in pieces:
        products, *images = reduce(_add, islice(sums, len(parts)))
        # Without volumes, nothing is explained.
        pair = Equations(grid, products, images[0]), Equations(grid, products, images[-1])
        equations.append(pair)
    return equations


def _add(first: Arrays, second: Arrays) -> Arrays:
    """Return the sums of arrays, in place of the first, which nobody else holds."""
    # Sums of many features take some 300 MB. Arrays of another process may be read-only.
    pairs = zip(first, second, strict=True)
    return tuple(np.add(a, b, out=a if a.flags.writeable else None) for a, b in pairs)


def _piece_sums(
    transforms: Transforms, features: FeatureMoments, columns: np.ndarray | None
) -> Arrays:
    """Return the sums of one piece, a share of the images in each thread."""

    def summed(share: slice) -> Arrays:
        return _share_sums(transforms[share], features[share], columns)

    size = THREAD_IMAGES if transforms.device == "cpu" else PIECE
    with one_blas_thread():
        return reduce(_add, over_cores(summed, list(gen_batches(len(transforms), size))))


def _share_sums(images: Transforms, features: FeatureMoments, columns: np.ndarray | None) -> Arrays:
    """Return sums of products of features, of features times images, and times what is left."""
    first, second = np.triu_indices(features.mean.shape[1])
    there, weights = images.there, images.corners[0]
    numbers, signed, width = images.grid.fold(*images.corners)
    values, transfer = map(there, images.weighted)
    mean, moments = (there(each.astype(np.float32)) for each in (features.mean, features.products))
    xp, n = namespace(mean), len(images)

    def summed(shown, weights, of):
        """Return the sums of features of images, each times what the image shows, (width, F)."""
        entries = (weights * shown.reshape(-1, 1)).reshape(n, -1)
        return transposed(sparse_rows(entries, numbers.reshape(n, -1), width)) @ of

    both = (values.real, weights), (values.imag, signed)
    own = [summed(transfer * part, shares, mean) for part, shares in both]
    sums = [summed(transfer**2, weights, moments[:, first, second]), xp.concatenate(own, axis=1)]
    if columns is not None:
        # Real and imaginary parts are rows of a matrix product.
        expected = images.shown(there(columns)) @ moments[:, None] * transfer[..., None, None]
        parts = expected.swapaxes(1, 2).swapaxes(0, 1).reshape(2, len(numbers), -1)
        inserted = [
            transposed(sparse_rows(shares, numbers, width)) @ part
            for part, (_, shares) in zip(parts, both, strict=True)
        ]
        sums.append(sums[1] - xp.concatenate(inserted, axis=1))
    return tuple(map(from_tensor, sums))


# Likelihoods of the features of images, and functions of them mapped over images: likelihoods of
# all images may take more memory than the images, and are not kept.


@dataclass(frozen=True)
class ImageLikelihood(GaussianLikelihood):
    """What images say of the features of their particles."""

    images: Transforms
    columns: np.ndarray  # of the volumes, see `VolumeGrid.columns`

    def with_pose_errors(
        self, features: np.ndarray, errors: np.ndarray, moved: np.ndarray
    ) -> tuple["ImageLikelihood", np.ndarray]:
        """Return the likelihood if poses are off by normal errors, and these errors, (n, 5).

        Near given features, (n, n_features), and errors `moved`: rotations about three axes and
        shifts along two, over their standard deviations `errors`, in radians and in boxes.
        """
        block, columns = self.images, self.columns
        count, step = features.shape[1], np.radians(1.0)
        of = block.there(features.astype(np.float32)[..., None])
        near = block.turn(errors[0] * moved[:, :3])

        def shown(vector: np.ndarray):
            return near.turn(vector).shown(columns).reshape(len(block), -1, count)

        here = shown(np.zeros(3))
        mean = here @ of
        changes = [errors[0] / step * (shown(axis) @ of - mean) for axis in step * np.eye(3)]
        # A shift multiplies by a phase, which exchanges real and imaginary parts.
        pairs = mean.reshape(len(block), -1, 2)[..., [1, 0]]
        for axis in block.grid.plane.T:
            phases = 2 * np.pi * errors[1] * np.outer(axis, [-1, 1])
            changes.append((pairs * block.there(phases.astype(np.float32))).reshape(mean.shape))
        linear, precision = _compare(block, namespace(mean).concatenate([here, *changes], axis=2))
        across, inner = precision[:, :count, count:], precision[:, count:, count:] + np.eye(5)
        # Shifts were not moved.
        rotated = moved * [1, 1, 1, 0, 0]
        left = linear[:, count:] - rotated
        solved = np.linalg.solve(inner, np.dstack([left, across.swapaxes(1, 2)]))
        taken = across @ solved
        found = solved[..., 0] - (solved[..., 1:] @ features[..., None])[..., 0]
        linear, precision = linear[:, :count] - taken[..., 0], precision[:, :count, :count]
        marginal = ImageLikelihood(linear, precision - taken[..., 1:], block, columns)
        return marginal, found + rotated


def map_likelihoods(
    work: Callable[..., Arrays],
    transforms: Transforms,
    volumes: np.ndarray,
    *more: Any,
    mapped: Callable[..., Iterable[Arrays]] = Here().map,
) -> Arrays:
    """Map `work` over the likelihoods of images, a block at a time, by such as `Workers.map`."""
    columns = transforms.grid.columns(volumes)
    pieces = gen_batches(len(transforms), PIECE)
    jobs = [(work, transforms[rows], columns, *more) for rows in pieces]
    return _join(mapped(likelihood_piece, jobs))


def likelihood_piece(
    work: Callable[..., Arrays], transforms: Transforms, columns: np.ndarray, *more: Any
) -> Arrays:
    """Return what `work` makes of the likelihoods of a piece of the images."""

    def done(rows: slice) -> Arrays:
        block = transforms[rows]
        shown = block.shown(columns).reshape(len(block), -1, columns.shape[1] // 2)
        linear, precision = _compare(block, shown)
        return work(ImageLikelihood(linear, precision, block, columns), *more)

    columns = transforms.there(columns)
    with one_blas_thread():
        return _join(over_cores(done, list(gen_batches(len(transforms), BLOCK))))


def _join(parts: Iterable[Arrays]) -> Arrays:
    """Return arrays of several parts, each joined along the first axis."""
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _compare(block: Transforms, shown) -> Arrays:
    """Return linear part and precision of likelihoods, given what images show of features."""
    values, _ = block.weighted
    seen = np.stack([values.real, values.imag], axis=2).reshape(len(values), 1, -1)
    # The noise of a coefficient has variance 1, half of it in each part.
    linear = 2 * (block.there(seen) @ shown)[:, 0]
    quadratic = 2 * (shown.swapaxes(1, 2) @ shown)
    return from_tensor(linear).astype(float), from_tensor(quadratic).astype(float)
