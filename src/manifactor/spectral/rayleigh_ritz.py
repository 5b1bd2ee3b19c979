"""Eigenpairs of a matrix inside the span of a block of vectors."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from manifactor.spectral.eigenpairs import Pairs, required
from manifactor.spectral.operators import Operator


@dataclass(frozen=True)
class RitzPairs:
    """Pairs that were read from a block, and those locked before, in one order."""

    values: np.ndarray  # (width,): ritz values, descending
    residuals: np.ndarray  # (width,): infinite for spare vectors
    order: np.ndarray  # (width,): the column of the block that each pair's vector is
    excess: np.ndarray  # (n_pairs,): residuals of the wanted pairs over those asked for

    @property
    def accurate(self) -> np.ndarray:
        """Whether each wanted pair is as accurate as asked for, (n_pairs,)."""
        return self.excess <= 1

    @property
    def worst(self) -> float:
        """Largest excess."""
        return self.excess.max()

    def n_accurate(self) -> int:
        """Return how many pairs are accurate before the first that is not."""
        return int(self.accurate.cumprod().sum())


def rayleigh_ritz(
    operator: Operator, block: Any, locked: Any, n_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Overwrite a block with its Ritz vectors, orthogonal to the locked vectors.

    Returns values (width,), residuals (width,).
    """
    if locked.shape[1]:
        operator.clear(block, locked)
    image = operator.product(block)
    basis = orthonormalizer(operator.inner(block, block))
    small = basis.T @ operator.inner(block, image) @ basis
    values, rotation = eigh((small + small.T) / 2)
    values = values[::-1]
    rotation = basis @ rotation[:, ::-1]
    operator.rotate(block, rotation)
    residuals = np.full(len(values), np.inf)
    # The image is not rotated in place: residuals of the wanted vectors are enough.
    wanted = slice(n_pairs)
    residuals[wanted] = operator.residual_norms(image, block, rotation[:, wanted], values[wanted])
    return values, residuals


def merged(
    locked: Pairs, values: np.ndarray, residuals: np.ndarray, *, n_pairs: int, tolerance: float
) -> RitzPairs:
    """Return locked and new pairs in descending order of their values.

    Columns are counted with the locked vectors first.
    """
    values = np.concatenate([locked.values, values])
    residuals = np.concatenate([locked.residuals, residuals])
    # Stable, so that of equal values those locked before come first, as they did.
    order = np.argsort(-values, kind="stable")
    values, residuals = values[order], residuals[order]
    asked = required(values[:n_pairs], tolerance)
    excess = residuals[:n_pairs] / asked
    return RitzPairs(values, residuals, order, excess)


def orthonormalizer(gram: np.ndarray, *, least_sine: float = 1e-4) -> np.ndarray:
    """Return combinations of vectors with these inner products that are orthonormal.

    Shapes: gram (width, width).
    """
    squares = np.maximum(np.diag(gram), np.finfo(gram.dtype).tiny)
    scale = 1 / np.sqrt(squares)
    gram = gram * scale[:, None] * scale
    # A triangle costs a quarter of a decomposition, but loses the vectors that are nearly
    # dependent; where any is, Cholesky fails or shows a small diagonal.
    with suppress(LinAlgError):
        triangle = cholesky(gram)
        if np.diag(triangle).min() > least_sine:
            inverse = solve_triangular(triangle, np.eye(len(gram)))
            return scale[:, None] * inverse
    values, basis = eigh(gram)
    values = values[::-1]
    basis = basis[:, ::-1]
    # Eigenvalues below rounding stand for directions that the block does not have.
    values = np.maximum(values, 1e-13 * values[0])
    return scale[:, None] * basis / np.sqrt(values)
