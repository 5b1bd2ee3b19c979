"""The paper's Algorithm 1: which functions are products of which, and what that says about pairs of functions."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from manifactor._support.threads import one_blas_thread
from manifactor.spectral.spectrum import Spectrum

BLOCK_BYTES = 4 * 2**20  # of products formed at a time: they stay in the cache


@dataclass(frozen=True)
class Triplets:
    """Functions recognised as products of lower functions, and how similar they are.

    Attributes
    ----------
    products : ndarray of shape (n_triplets,)
        Index of the product function in the spectrum.
    parts : ndarray of shape (n_triplets, max_parts)
        Indices of the functions it is the product of, padded with -1.
    similarity : ndarray of shape (n_triplets,)
        Absolute cosine between the product function and the product of its parts.
    """

    products: np.ndarray
    parts: np.ndarray
    similarity: np.ndarray

    def __len__(self) -> int:
        return len(self.products)

    def separability(
        self, *, exclude: Sequence[int] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """The functions that occur as parts, and the matrix of evidence that two belong to different factors.

        Returns
        -------
        functions : ndarray of shape (n_parts,)
            Ascending indices, without those in `exclude` and those that occur with excluded ones only.
        separability : ndarray of shape (n_parts, n_parts)
            Symmetric; the similarity of the product in which the two occur together, 0 if there is none.
        """
        functions = np.setdiff1d(
            self.parts[self.parts >= 0], np.asarray(exclude, dtype=int)
        )
        size = int(self.parts.max(initial=0)) + 1
        matrix = np.zeros((size, size))
        for a in range(self.parts.shape[1]):
            for b in range(a):
                both = (self.parts[:, a] >= 0) & (self.parts[:, b] >= 0)
                i, j = self.parts[both, a], self.parts[both, b]
                np.maximum.at(matrix, (i, j), self.similarity[both])
        matrix = np.maximum(matrix, matrix.T)
        functions = functions[matrix[np.ix_(functions, functions)].any(axis=1)]
        return functions, matrix[np.ix_(functions, functions)]


def find_triplets(
    spectrum: Spectrum,
    *,
    tolerance: float | np.ndarray,
    threshold: float,
    max_parts: int = 2,
) -> Triplets:
    """For every function the most similar product of 2 to `max_parts` lower ones, if it passes both criteria.

    A function that is itself recognised as a product is never a part.

    Parameters
    ----------
    spectrum : Spectrum
    tolerance : float or ndarray of shape (n_functions,)
        delta: the parts' eigenvalues must add up to the product's within this; an array has one for each product.
    threshold : float
        gamma: the least similarity.
    max_parts : int
        The most functions in a product: the number of factors.

    References
    ----------
    Zhang, Moscovich, Singer, *Product Manifold Learning*, AISTATS 2021, Algorithm 1.
    """
    return _best_of_each(*_candidates(spectrum, tolerance, threshold, max_parts))


def best_similarity(spectrum: Spectrum, *, tolerance: float | np.ndarray) -> float:
    """The largest similarity of any function with a product of two lower ones, 0 if no eigenvalues add up."""
    return float(_candidates(spectrum, tolerance, 0.0, 2)[2].max(initial=0.0))


def _candidates(
    spectrum: Spectrum, tolerance, threshold: float, max_parts: int
) -> tuple[np.ndarray, ...]:
    """All (product, parts, similarity) that pass both criteria, as three arrays."""
    eigenvalues = spectrum.eigenvalues
    tolerance = np.broadcast_to(np.asarray(tolerance, dtype=float), eigenvalues.shape)
    functions = np.ascontiguousarray(
        spectrum.functions.T, dtype=np.float32
    )  # similarities need four digits
    rooted = functions * np.sqrt(spectrum.weights).astype(
        np.float32
    )  # their plain inner products are the weighted ones

    def similar(block: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        total = eigenvalues[block].sum(axis=1)
        band = _band(eigenvalues, total, tolerance)
        similarity = _similarity(functions, rooted, block, band)
        near = np.abs(total[:, None] - eigenvalues[band]) < tolerance[band]
        above = block[:, -1:] < np.arange(len(eigenvalues))[band]
        which, k = np.nonzero((similarity > threshold) & near & above)
        parts = np.full((len(which), max_parts), -1)
        parts[:, : block.shape[1]] = block[which]
        return k + band.start, parts, similarity[which, k]

    with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
        blocks = _blocks(
            eigenvalues, max_parts, (eigenvalues + tolerance).max(), functions.shape[1]
        )
        found = list(pool.map(similar, blocks))
    none = np.empty(0, dtype=int), np.empty((0, max_parts), dtype=int), np.empty(0)
    return tuple(np.concatenate(column) for column in zip(none, *found, strict=True))


def _band(eigenvalues: np.ndarray, total: np.ndarray, tolerance: np.ndarray) -> slice:
    """The products that any of these eigenvalue sums, ascending, can reach."""
    reached = np.flatnonzero(
        (eigenvalues > total[0] - tolerance) & (eigenvalues < total[-1] + tolerance)
    )
    return slice(reached[0], reached[-1] + 1) if len(reached) else slice(0, 0)


def _similarity(
    functions: np.ndarray, rooted: np.ndarray, block: np.ndarray, band: slice
) -> np.ndarray:
    """Absolute cosine between the product of the functions in each row of `block` and each function in `band`."""
    product = rooted[block[:, 0]]
    for column in block.T[1:]:
        product *= functions[column]
    norm = np.sqrt(np.einsum("px,px->p", product, product))
    return (
        np.abs(product @ rooted[band].T) / norm[:, None]
    )  # absolute: eigenfunctions have no sign


def _combinations_below(eigenvalues: np.ndarray, size: int, limit: float) -> np.ndarray:
    """Ascending index tuples of non-constant functions whose eigenvalues sum to less than `limit`, (n, size)."""
    combinations = np.arange(1, len(eigenvalues))[:, None]
    for _ in range(size - 1):
        room = limit - eigenvalues[combinations].sum(axis=1)
        last = combinations[:, -1]
        count = np.maximum(0, np.searchsorted(eigenvalues, room) - last - 1)
        start = np.repeat(last + 1 - (np.cumsum(count) - count), count)
        combinations = np.column_stack(
            [np.repeat(combinations, count, axis=0), start + np.arange(count.sum())]
        )
    return combinations


def _blocks(
    eigenvalues: np.ndarray, max_parts: int, limit: float, n_samples: int
) -> Iterator[np.ndarray]:
    """Combinations in order of their eigenvalue sums, a few at a time: each block meets a narrow band of products."""
    at_once = max(8, BLOCK_BYTES // (4 * n_samples))
    for size in range(2, max_parts + 1):
        combinations = _combinations_below(eigenvalues, size, limit)
        order = np.argsort(eigenvalues[combinations].sum(axis=1), kind="stable")
        for first in range(0, len(order), at_once):
            yield combinations[order[first : first + at_once]]


def _best_of_each(
    products: np.ndarray, parts: np.ndarray, similarity: np.ndarray
) -> Triplets:
    """The best candidate of each product, lowest product first; once matched, a function is a part no more."""
    matched: dict[int, int] = {}
    for candidate in np.lexsort((-similarity, products)):
        k = int(products[candidate])
        if k not in matched and not any(
            int(part) in matched for part in parts[candidate]
        ):
            matched[k] = int(candidate)
    chosen = np.array(list(matched.values()), dtype=int)
    return Triplets(products[chosen], parts[chosen], similarity[chosen])
