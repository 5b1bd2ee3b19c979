"""Eigenpairs of a symmetric normalised affinity, and the accuracy asked of them.

All eigenvalues lie in [-1, 1]. What counts is their distance from 1, which becomes an eigenvalue of
the Laplacian: a pair is accurate if its residual is below `tolerance` times that distance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

# The residual that products in single precision reach. What is left is noise from sample to sample.
# A property of the floating-point format, hence no setting.
SINGLE_PRECISION_RESIDUAL = 3e-6


class EigenpairWarning(UserWarning):
    """Some eigenpairs are less accurate than asked for."""


@dataclass(frozen=True)
class Pairs:
    """Eigenpairs in descending order of the eigenvalue."""

    values: np.ndarray  # (n_pairs,)
    vectors: Any  # (n, n_pairs): orthonormal columns
    residuals: np.ndarray  # (n_pairs,): norms of matrix @ vector - value * vector
    products: int = 0  # number of products of the matrix with a block of vectors that filters took


@dataclass(frozen=True)
class Start:
    """An approximation of the wanted pairs on some of the samples."""

    rows: np.ndarray  # (n_rows,): the samples
    # (n_rows, width): values of the vectors there, more of them than pairs are wanted
    vectors: np.ndarray
    values: np.ndarray  # (width,): their eigenvalues, descending
    first: np.ndarray | None = None  # (n,): the first vector on all samples, if it is known
    n_accurate: int = 0  # vectors that are accurate on `rows`. Of those beyond, half are of use.

    @property
    def n_useful(self) -> int:
        """Number of vectors that show the span of as many eigenvectors."""
        return (self.n_accurate + len(self.values)) // 2


def required(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the residuals that pairs with these eigenvalues may have.

    They are no smaller than what single precision reaches, unless `tolerance` is.
    """
    finest = min(tolerance, SINGLE_PRECISION_RESIDUAL)
    return np.maximum(finest, tolerance * (1 - values))
