"""All pairs of functions: how similar their products are to another function, and how far eigenvalues miss the sum."""

import numpy as np

from manifactor.spectral.spectrum import Spectrum
from manifactor.studies.paper.cases import PAPER_UNIT


def pair_scores(
    spectrum: Spectrum, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of all pairs i < j < k: similarity of their product with function k, eigenvalue error (lambda/4), the pairs."""
    lower = spectrum.functions[:, 1:k]
    weights = spectrum.weights[:, None]
    inner = (lower * (weights * spectrum.functions[:, [k]])).T @ lower
    norms = np.sqrt((lower**2 * weights).T @ lower**2)
    i, j = np.triu_indices(k - 1, 1)
    error = (
        np.abs(
            spectrum.eigenvalues[1 + i]
            + spectrum.eigenvalues[1 + j]
            - spectrum.eigenvalues[k]
        )
        / PAPER_UNIT
    )
    return np.abs(inner[i, j]) / norms[i, j], error, np.column_stack([1 + i, 1 + j])


def best_similarities(spectrum: Spectrum, delta: float) -> np.ndarray:
    """The best similarity of every function with a product of two lower ones whose eigenvalues add up, (N - 3,)."""
    best = []
    for k in range(3, len(spectrum.eigenvalues)):
        similarity, error, _ = pair_scores(spectrum, k)
        best.append(similarity[error < delta].max(initial=0.0))
    return np.array(best)
