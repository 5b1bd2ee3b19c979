"""Eigenpairs of a symmetric normalised affinity, and the accuracy asked of them.

All eigenvalues lie in [-1, 1]. What counts is their distance from 1, which becomes an
eigenvalue of the Laplacian: a pair is accurate if its residual is below `tolerance`
times that distance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

# The residual that products in single precision reach. What is left is noise from
# sample to sample. A property of the floating-point format, hence no setting.
SINGLE_PRECISION_RESIDUAL = 3e-6


class EigenpairWarning(UserWarning):
    """Some eigenpairs are less accurate than asked for."""


@dataclass(frozen=True)
class Pairs:
    """Eigenpairs in descending order of the eigenvalue.

    Attributes
    ----------
    values : ndarray of shape (n_pairs,)
    vectors : ndarray or Tensor of shape (n, n_pairs)
        Orthonormal columns.
    residuals : ndarray of shape (n_pairs,)
        Norms of matrix @ vector - value * vector.
    products : int
        Number of products of the matrix with a block of vectors that filters took.
    """

    values: np.ndarray
    vectors: Any
    residuals: np.ndarray
    products: int = 0


@dataclass(frozen=True)
class Start:
    """An approximation of the wanted pairs on some of the samples.

    Attributes
    ----------
    rows : ndarray of int of shape (n_rows,)
        The samples.
    vectors : ndarray of shape (n_rows, width)
        Values of the vectors there, more of them than pairs are wanted.
    values : ndarray of shape (width,)
        Their eigenvalues, descending.
    first : ndarray of shape (n,) or None
        The first vector on all samples, if it is known.
    n_accurate : int
        Vectors that are accurate on `rows`. Of those beyond, half are of use.
    """

    rows: np.ndarray
    vectors: np.ndarray
    values: np.ndarray
    first: np.ndarray | None = None
    n_accurate: int = 0

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
