"""Division of a batch of functions into blocks with orthogonal gradients.

A carre du champ is a symmetric matrix of inner products of gradients at every sample. The matrices
that commute with all of them, the commutant, tell which rotation of the functions makes them
block-diagonal, and how many blocks there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.random import Generator

from manifactor._support.threads import map_threads
from manifactor.operators.geometry import Geometry, beside_constant, carre_du_champ

# Largest q, its noise taken off, that counts as 0: q is 0 for orthogonal blocks and 1 for a sphere
# of any dimension and for structureless noise.
MAX_Q = 0.45
# Largest mean squared cosine between blocks, its noise taken off. Different factors show 0.01 to
# 0.04 at 4,000 samples, functions of one sphere 0.17 to 0.21.
MAX_COSINE = 0.12
# Least share of the products of functions inside the spectrum for their carre du champ to be read
# from it; with less the local regression is the better one.
MIN_CAPTURED = 0.9


def excess_in_halves(
    value: float | np.ndarray, in_halves: Sequence[float | np.ndarray]
) -> np.ndarray:
    """Return the noise of a number that noise raises: what halves of the samples add to it.

    The same kernel between a random half of the samples has the same bias and twice the variance,
    so a half shows about twice the noise of the whole. What the halves add to a number, on average,
    is therefore about the noise in the number itself. Structure, which the halves show as the whole
    does, cancels in the difference. Near 0 the estimate is too large: on a square of 1,500 samples
    q is 0.01, and halves add 0.23 to it.

    The noise is 0 where there are no halves to compare with, and where the halves differ in the
    direction in which noise does not push the number.
    """
    if not len(in_halves):
        return np.zeros_like(value)
    mean = np.mean(np.asarray(in_halves), axis=0)
    return np.maximum(mean - value, 0)


def commutant(champ: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the symmetric matrices that nearly commute with a carre du champ.

    Q(X) = mean |[X, G]|^2 over its mean on traceless X: near 0 where blocks of functions have
    orthogonal gradients everywhere, 1 for a sphere of any dimension and for structureless noise.

    Shapes: champ (n_rows, r, r), weights (n_rows,) -> q (s,), elements (s, r, r) with
    s = r (r + 1) / 2.
    """
    n_rows, r, _ = champ.shape
    # An orthonormal basis of the symmetric matrices.
    i, j = np.triu_indices(r)
    basis = np.zeros((len(i), r, r))
    element = np.arange(len(i))
    basis[element, i, j] = basis[element, j, i] = np.where(i == j, 1.0, 0.5**0.5)
    flat = champ.reshape(n_rows, -1)
    # Q needs G only through its second moments, so its cost does not grow with the rows.
    weighted = flat * weights[:, None]
    moments = (weighted.T @ flat).reshape(r, r, r, r)
    # The matrix of mean |[X, G]|^2 = 2 tr(X X G G) - 2 tr(X G X G).
    square = np.einsum("abbc->ac", moments)
    form = 2 * np.einsum("pab,qbc,ca->pq", basis, basis, square, optimize=True)
    sandwich = np.einsum("pab,bcda->pcd", basis, moments, optimize=True)
    form -= 2 * sandwich.reshape(len(basis), -1) @ basis.reshape(len(basis), -1).T
    q, vectors = np.linalg.eigh((form + form.T) / 2)
    # A unit matrix of trace sqrt(r) is the identity; rounding may hide it among other elements with
    # Q near 0.
    traces = np.abs(np.einsum("pq,paa->q", vectors, basis))
    identity_first = np.argsort(traces < 0.99 * np.sqrt(r), kind="stable")
    q, vectors = q[identity_first], vectors[:, identity_first]
    elements = np.einsum("pq,pab->qab", vectors, basis)
    return q / q[1:].mean(), elements


def squared_cosine(champ: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """Return the largest mean squared cosine between the gradients of two blocks."""
    n_blocks = labels.max() + 1
    inside = [champ[:, labels == a][:, :, labels == a] for a in range(n_blocks)]
    longest = [np.linalg.eigvalsh(block)[:, -1] for block in inside]
    largest = 0.0
    for b, a in combinations(range(n_blocks), 2):
        across = (champ[:, labels == a][:, :, labels == b] ** 2).sum(axis=(1, 2))
        lengths = weights @ (longest[a] * longest[b])
        largest = max(largest, float(weights @ across / lengths))
    return largest


def unit_energy(champ: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return a carre du champ with mean energy 1 of every function."""
    energy = np.einsum("x,xaa->a", weights, champ)
    scale = np.maximum(energy, 1e-9 * np.abs(energy).max()) ** -0.5
    return champ * scale[:, None] * scale


@dataclass(frozen=True)
class Split:
    """How a batch of functions, pure up to a rotation, fell into blocks."""

    n_blocks: int
    # (n_functions - 1,): the commutant's lowest values beyond the identity's 0; near 0 as often as
    # there are further blocks
    q: np.ndarray
    noise: np.ndarray  # (n_functions - 1,): noise of `q`: what half of the samples adds


@dataclass(frozen=True)
class MeasuredBatch:
    """A batch of functions and the commutant of its carre du champ."""

    functions: np.ndarray  # (n_functions, r): unit columns of coefficients
    champ: np.ndarray  # (n_rows, r, r): carre du champ with mean energy 1 of every function
    weights: np.ndarray  # (n_rows,)
    q: np.ndarray  # (r (r + 1) / 2,)
    elements: np.ndarray  # (r (r + 1) / 2, r, r): the commutant, as `commutant` gives it


def divide(
    geometries: Sequence[Geometry],
    batches: Sequence[np.ndarray],
    *,
    max_blocks: int,
    rng: Generator,
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
    measured = list(map(_measured, geometries, batches))
    in_all, *in_halves = [batch.q[1:size] for batch in measured]
    noise = excess_in_halves(in_all, in_halves)
    # Ascending values: those near 0 come first, and the first that is not ends them.
    near_zero = (in_all - noise < MAX_Q).cumprod()
    most = min(int(near_zero.sum()) + 1, max_blocks)
    for count in range(most, 1, -1):
        found = map_threads(partial(_blocks, count), measured, rng.spawn(len(measured)))
        (cosine, *others), blocks = zip(*found, strict=True)
        # No more than .15 is taken off, so that poor halves cannot excuse any angle.
        if cosine - min(float(excess_in_halves(cosine, others)), 0.15) < MAX_COSINE:
            return list(blocks), Split(count, in_all, noise)
    return undivided, Split(1, in_all, noise)


def _measured(geometry: Geometry, functions: np.ndarray) -> MeasuredBatch:
    """Measure the commutant of a batch."""
    weights = geometry.row_weights
    # The carre du champ is less noisy, but needs a spectrum that reaches to the products.
    if geometry.captured(functions) > MIN_CAPTURED:
        champ = carre_du_champ(geometry.spectrum, beside_constant(functions), geometry.rows)
    else:
        gradients = geometry.gradients @ functions
        champ = gradients.transpose(0, 2, 1) @ gradients
    champ = unit_energy(champ, weights)
    return MeasuredBatch(functions, champ, weights, *commutant(champ, weights))


def _blocks(count: int, batch: MeasuredBatch, rng: Generator) -> tuple[float, list[np.ndarray]]:
    """Return the largest mean squared cosine between `count` blocks of a batch, and the blocks."""
    # A random element has an eigenvalue for each block, but two of them may be close by chance.
    bases = [_random_basis(batch.elements[:count], rng) for _ in range(30)]
    clearest = sorted(bases, key=lambda basis: -basis[0])[:5]
    cosines = [
        squared_cosine(rotation.T @ batch.champ @ rotation, batch.weights, labels)
        for _, rotation, labels in clearest
    ]
    best = int(np.argmin(cosines))
    _, rotation, labels = clearest[best]
    blocks = [batch.functions @ rotation[:, labels == b] for b in range(count)]
    return cosines[best], [block / np.linalg.norm(block, axis=0) for block in blocks]


def _random_basis(kernel: np.ndarray, rng: Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the narrowest gap between blocks of a random element, its basis and their labels."""
    count = len(kernel)
    element = np.einsum("q,qab->ab", rng.normal(size=count), kernel)
    values, vectors = np.linalg.eigh(element)
    gaps = np.diff(values)
    widest = np.sort(np.argsort(-gaps)[: count - 1])
    labels = np.searchsorted(widest, np.arange(len(values)), side="left")
    return gaps[widest].min() / (values[-1] - values[0]), vectors, labels
