"""Both criteria of the paper, similarity and eigenvalue sum, for all pairs."""

from dataclasses import dataclass

import numpy as np

from manifactor.operators.laplacian import Spectrum
from studies.paper.cases import PAPER_UNIT


@dataclass(frozen=True)
class PairScores:
    """All pairs i < j of the functions below one function, as candidates for it."""

    # (n_pairs,): absolute cosine between the pair's product and the function
    similarity: np.ndarray
    # (n_pairs,): distance of the pair's eigenvalue sum from the eigenvalue, in units of lambda/4
    error: np.ndarray
    pairs: np.ndarray  # (n_pairs, 2)


def pair_scores(spectrum: Spectrum, k: int) -> PairScores:
    """Return both criteria of all pairs of functions below function k."""
    # The constant function 0 is no part of a product.
    lower = spectrum.functions[:, 1:k]
    weights = spectrum.weights[:, None]
    # Matrix products give the cosines of all pairs at once, without forming a product.
    inner = (lower * (weights * spectrum.functions[:, [k]])).T @ lower
    norms = np.sqrt((lower**2 * weights).T @ lower**2)
    # Each pair once, and no function with itself.
    i, j = np.triu_indices(k - 1, 1)
    similarity = np.abs(inner[i, j]) / norms[i, j]
    pairs = np.column_stack([1 + i, 1 + j])
    eigenvalues = spectrum.eigenvalues
    sums = eigenvalues[1 + i] + eigenvalues[1 + j]
    error = np.abs(sums - eigenvalues[k]) / PAPER_UNIT
    return PairScores(similarity, error, pairs)


def best_similarities(spectrum: Spectrum, delta: float) -> np.ndarray:
    """Return the best similarity of each function with a product of two lower ones.

    Only pairs whose eigenvalues add up to within delta count. The result has the shape (N - 3,):
    function 3 is the lowest with a pair below it.
    """
    best = []
    for k in range(3, len(spectrum.eigenvalues)):
        scores = pair_scores(spectrum, k)
        inside = scores.error < delta
        best.append(scores.similarity[inside].max(initial=0.0))
    return np.array(best)
