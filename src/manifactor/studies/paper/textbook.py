"""The paper's pipeline as one writes it down from the paper: dense kernel, randomised SVD, three nested loops.

It is here to be timed against, and computes nothing that anything else in the package relies on.
"""

from itertools import combinations

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.utils.extmath import randomized_svd


def diffusion_map(
    X: np.ndarray, bandwidth: float, n_functions: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, in the paper's units of lambda/4, and eigenvectors of the random walk on all pairs of samples."""
    kernel = np.exp(-squareform(pdist(X, "sqeuclidean")) / bandwidth)
    root = np.sqrt(kernel.sum(axis=1))
    vectors, values, _ = randomized_svd(
        kernel / np.outer(root, root), n_functions, n_iter=5, random_state=seed
    )
    return -np.log(values) / bandwidth, vectors / vectors[:, :1]


def algorithm_1(
    eigenvalues, functions, delta: float, gamma: float, *, n_factors: int = 2
) -> dict[int, list[int]]:
    """Algorithm 1 line by line, for products of up to n_factors functions: the parts of every product."""
    products = {}
    for k in range(2, len(eigenvalues)):
        best, parts = 0.0, None
        for size in range(2, n_factors + 1):
            for combination in combinations(range(1, k), size):
                indices = list(combination)
                if abs(np.sum(eigenvalues[indices]) - eigenvalues[k]) < delta:
                    similarity = cosine(
                        functions[:, k], np.prod(functions[:, indices], axis=1)
                    )
                    if similarity > best:
                        best, parts = similarity, indices
        if best > gamma and parts is not None:
            products[k] = parts
    return products


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Absolute cosine between two vectors."""
    return float(abs(one @ other) / (np.linalg.norm(one) * np.linalg.norm(other)))
