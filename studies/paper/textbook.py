"""The paper's pipeline as its text says: dense kernel, randomised SVD, nested loops.

It serves as the reference for running times. Nothing else in the package uses it.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.utils.extmath import randomized_svd


def diffusion_map(
    X: np.ndarray, bandwidth: float, n_functions: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of the random walk on all pairs of samples.

    The eigenvalues are in the paper's units of lambda/4.
    """
    kernel = np.exp(-squareform(pdist(X, "sqeuclidean")) / bandwidth)
    # The symmetric conjugate of the walk: an SVD needs it, and has its eigenvalues.
    root = np.sqrt(kernel.sum(axis=1))
    symmetric = kernel / np.outer(root, root)
    vectors, values, _ = randomized_svd(symmetric, n_functions, n_iter=5, random_state=seed)
    # Divided by the first eigenvector, the conjugate's vectors become the walk's.
    return -np.log(values) / bandwidth, vectors / vectors[:, :1]


def algorithm_1(
    eigenvalues, functions, delta: float, gamma: float, *, n_factors: int = 2
) -> dict[int, list[int]]:
    """Return the parts of every product, found by Algorithm 1 line by line.

    Products of up to n_factors functions are considered.
    """
    products = {}
    for k in range(2, len(eigenvalues)):
        best, parts = 0.0, None
        for indices in _candidates(k, n_factors):
            # Only sums within delta are multiplied out, as the paper does: the products take nearly
            # all of the time.
            if abs(np.sum(eigenvalues[indices]) - eigenvalues[k]) < delta:
                product = np.prod(functions[:, indices], axis=1)
                similarity = cosine(functions[:, k], product)
                if similarity > best:
                    best, parts = similarity, indices
        if best > gamma and parts is not None:
            products[k] = parts
    return products


def _candidates(k: int, n_factors: int) -> Iterator[list[int]]:
    """Yield all sets of 2 to n_factors functions below function k."""
    for size in range(2, n_factors + 1):
        for combination in combinations(range(1, k), size):
            yield list(combination)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Return the absolute cosine between two vectors."""
    return float(abs(one @ other) / (np.linalg.norm(one) * np.linalg.norm(other)))
