"""Division of a batch of functions into blocks with orthogonal gradients."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from manifactor._support.threads import map_threads
from manifactor.factoring.gradients.commutant import commutant, squared_cosine, unit_energy
from manifactor.factoring.gradients.geometry import Geometry
from manifactor.factoring.gradients.noise import excess_in_halves


@dataclass(frozen=True)
class DivisionSettings:
    """Settings of `divide`."""

    # Largest q, its noise taken off, that counts as 0: q is 0 for orthogonal blocks and 1 for a
    # sphere of any dimension and for structureless noise.
    max_q: float = 0.45
    # Largest mean squared cosine between blocks, its noise taken off. Different factors show 0.01
    # to 0.04 at 4,000 samples, functions of one sphere 0.17 to 0.21.
    max_cosine: float = 0.12
    # Most that is taken off a squared cosine as noise, so that poor halves cannot excuse any angle.
    max_cosine_noise: float = 0.15
    # Least share of the products of functions inside the spectrum for their carre du champ to be
    # read from it; with less the local regression is the better one.
    min_captured: float = 0.9
    # Random elements of the commutant's kernel: one has an eigenvalue for each block, but two of
    # them may be close by chance.
    n_draws: int = 30
    # How many of those with the clearest gaps are compared by the angles they lead to.
    n_compared: int = 5


@dataclass(frozen=True)
class Split:
    """How a batch of functions, pure up to a rotation, fell into blocks."""

    n_blocks: int
    # (n_functions - 1,): the commutant's lowest values beyond the identity's 0; near 0 as often as
    # there are further blocks
    q: np.ndarray
    noise: np.ndarray  # (n_functions - 1,): noise of `q`: what half of the samples adds


@dataclass(frozen=True)
class Batch:
    """A batch of functions and the commutant of its carre du champ."""

    functions: np.ndarray  # (n_functions, r): unit columns of coefficients
    champ: np.ndarray  # (n_rows, r, r): carre du champ with mean energy 1 of every function
    weights: np.ndarray  # (n_rows,)
    q: np.ndarray  # (r (r + 1)
    elements: np.ndarray  # (r (r + 1): the commutant, as `commutant` gives it


@dataclass(frozen=True)
class BlockBasis:
    """A basis of a batch and the block that each of its functions belongs to."""

    rotation: np.ndarray  # (r, r): columns are the basis
    labels: np.ndarray  # (r,)
    # Narrowest gap between blocks in the eigenvalues that the blocks were read from, as a share of
    # their range
    clearness: float

    def cosine(self, batch: Batch) -> float:
        """Return the largest mean squared cosine between two blocks of the batch."""
        champ = self.rotation.T @ batch.champ @ self.rotation
        return squared_cosine(champ, batch.weights, self.labels)

    def blocks(self, batch: Batch) -> list[np.ndarray]:
        """Return the blocks of the batch, unit columns of coefficients."""
        count = self.labels.max() + 1
        columns = [self.rotation[:, self.labels == b] for b in range(count)]
        return [_unit(batch.functions @ block) for block in columns]


def divide(
    geometries: Sequence[Geometry],
    batches: Sequence[np.ndarray],
    *,
    max_blocks: int,
    settings: DivisionSettings = DivisionSettings(),
    rng: np.random.Generator,
) -> tuple[list[list[np.ndarray]], Split]:
    """Divide a batch of functions into blocks with orthogonal gradients.

    The largest number of blocks is taken that the commutant allows and whose gradients are
    orthogonal, both after their noise is taken off.

    Shapes: batches (n_functions, r).
    """
    undivided = [[functions] for functions in batches]
    size = batches[0].shape[1]
    if size == 1:
        return undivided, Split(1, np.empty(0), np.empty(0))
    measure = partial(_measured, settings=settings)
    measured = list(map(measure, geometries, batches))
    in_all, *in_halves = [batch.q[1:size] for batch in measured]
    noise = excess_in_halves(in_all, in_halves)
    # Ascending values: those near 0 come first, and the first that is not ends them.
    near_zero = (in_all - noise < settings.max_q).cumprod()
    most = min(int(near_zero.sum()) + 1, max_blocks)
    for count in range(most, 1, -1):
        find_basis = partial(_block_basis, count, settings=settings)
        bases = map_threads(find_basis, measured, rng.spawn(len(measured)))
        if _orthogonal(measured, bases, settings):
            blocks = list(map(BlockBasis.blocks, bases, measured))
            return blocks, Split(count, in_all, noise)
    return undivided, Split(1, in_all, noise)


def _measured(geometry: Geometry, functions: np.ndarray, settings: DivisionSettings) -> Batch:
    """Measure the commutant of a batch."""
    weights = geometry.row_weights
    champ = unit_energy(_inner_products(geometry, functions, settings), weights)
    return Batch(functions, champ, weights, *commutant(champ, weights))


def _inner_products(
    geometry: Geometry, functions: np.ndarray, settings: DivisionSettings
) -> np.ndarray:
    """Return the inner products of gradients at the rows, (n_rows, r, r).

    The carre du champ is less noisy, but needs a spectrum that reaches to the products; else they
    are those of the gradients by local regression.
    """
    if geometry.captured(functions) > settings.min_captured:
        return geometry.champ(functions)
    gradients = geometry.gradients @ functions
    return gradients.transpose(0, 2, 1) @ gradients


def _orthogonal(
    batches: Sequence[Batch], bases: Sequence[BlockBasis], settings: DivisionSettings
) -> bool:
    """Return whether the blocks' gradients are orthogonal, up to their noise."""
    in_all, *in_halves = map(BlockBasis.cosine, bases, batches)
    noise = float(excess_in_halves(in_all, in_halves))
    return in_all - min(noise, settings.max_cosine_noise) < settings.max_cosine


def _block_basis(
    count: int, batch: Batch, rng: np.random.Generator, *, settings: DivisionSettings
) -> BlockBasis:
    """Find the basis in which the commutant's lowest elements are diagonal.

    Of many random elements the clearest are compared, and of those the basis with the most
    orthogonal blocks wins.
    """
    kernel = batch.elements[:count]
    bases = [_random_basis(kernel, rng) for _ in range(settings.n_draws)]
    bases.sort(key=lambda basis: -basis.clearness)
    clearest = bases[: settings.n_compared]
    return min(clearest, key=lambda basis: basis.cosine(batch))


def _random_basis(kernel: np.ndarray, rng: np.random.Generator) -> BlockBasis:
    """Read blocks from a random element, which has one eigenvalue for each block."""
    count = len(kernel)
    element = np.einsum("q,qab->ab", rng.normal(size=count), kernel)
    values, vectors = np.linalg.eigh(element)
    gaps = np.diff(values)
    widest = np.sort(np.argsort(-gaps)[: count - 1])
    extent = values[-1] - values[0]
    clearness = gaps[widest].min() / extent
    labels = np.searchsorted(widest, np.arange(len(values)), side="left")
    return BlockBasis(vectors, labels, clearness)


def _unit(functions: np.ndarray) -> np.ndarray:
    return functions / np.linalg.norm(functions, axis=0)
