"""The largest eigenpairs of a symmetric normalised affinity, by the solver that suits it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import ArpackError, eigsh

from manifactor._support.errors import NothingFoundError, Warned, first_sentence
from manifactor._support.memory import available_memory
from manifactor._support.parameters import Choice, given
from manifactor._support.threads import one_blas_thread
from manifactor.operators.engines.blocks import DeviceOperator, HostOperator
from manifactor.operators.engines.chebyshev import Pairs, filtered, required
from manifactor.operators.engines.gpu import ResidentMatrix

# Up to this number of samples a full decomposition is as fast as any other, and exact.
DENSE_SAMPLES = 1500

# Eigenvalue of the walk below which it cannot see a function: at new samples the function would be
# all residual.
SMALLEST_RESOLVED = 1e-6


class EigenpairWarning(UserWarning):
    """Some eigenpairs are less accurate than asked for."""


def lowest(
    matrix, n_pairs: int, *, solver: str = "auto", tolerance: float, **options: Any
) -> tuple[Pairs, Choice]:
    """Return the pairs of the lowest functions that the walk resolves, and the solver."""
    chosen = choose_solver(matrix, n_pairs, solver=solver)
    try:
        pairs = SOLVERS[chosen.value](matrix, n_pairs, tolerance=tolerance, **options)
    except (ArpackError, LinAlgError) as error:
        chosen = _instead(chosen.value, matrix.shape[0], error)
        pairs = dense(matrix, n_pairs)
    count = int((pairs.values > SMALLEST_RESOLVED).sum())
    values, residuals = pairs.values[:count], pairs.residuals[:count]
    asked = required(values[:n_pairs], tolerance)
    warned = (*_left_out(pairs, n_pairs), *_inaccurate(residuals, asked, chosen.value))
    resolved = Pairs(values, pairs.vectors[:, :count], residuals, pairs.products, warned)
    return resolved, chosen


def choose_solver(matrix, n_pairs: int, *, solver: str = "auto") -> Choice:
    """Return the name of the solver to use: the caller's, or the fastest."""
    few, n = DENSE_SAMPLES, matrix.shape[0]
    if solver != "auto":
        return given(solver)
    if isinstance(matrix, ResidentMatrix):
        return Choice("chebyshev", "filtered subspaces are what runs on a device")
    full = "a full decomposition is"
    if n <= few:
        return Choice("dense", f"{full} exact, and as fast as any up to {few:,} samples")
    if n < 3 * n_pairs:
        return Choice("dense", f"{full} fastest for {n_pairs:,} functions of {n:,} samples")
    if isinstance(matrix, np.ndarray):
        return Choice("arpack", "the spectrum of a full kernel falls off too fast for the filter")
    why = f"filtered subspaces are fastest beyond {few:,} samples, and miss no repeated eigenvalue"
    return Choice("chebyshev", why)


def _instead(failed: str, n: int, error: Exception) -> Choice:
    """Return a full decomposition in place of a solver that failed, if it fits into memory."""
    # The matrix, its tridiagonal form and the vectors.
    if failed == "dense" or 3 * 8 * n**2 > available_memory():
        raise NothingFoundError(
            f"the solver {failed!r} found no eigenfunctions of these {n:,} samples "
            f"({first_sentence(error)}). Choose another `solver`, raise `n_neighbors`, or remove "
            "samples that differ by rounding only."
        ) from error
    return Choice("dense", f"a full decomposition, as {failed} failed: {first_sentence(error)}")


def dense(matrix, n_pairs: int, **_) -> Pairs:
    """Compute the largest eigenpairs by a full decomposition of LAPACK's."""
    n = matrix.shape[0]
    array = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return _descending(matrix, *eigh(array, subset_by_index=(n - n_pairs, n - 1)))


def arpack(matrix, n_pairs: int, *, rng: Generator, **_) -> Pairs:
    """Compute the largest eigenpairs by the implicitly restarted Lanczos method.

    Chosen for dense kernels, whose spectra fall off too fast for the filter, and for the few
    functions of a term of a sum. It follows one vector and misses copies of eigenvalues that are
    equal to the last digit, as they are for samples on a regular grid.
    """
    # Random, since a vector of ones may be an exact eigenvector.
    start = rng.standard_normal(matrix.shape[0])
    # ARPACK has no notion of a distance from 1: all pairs get the same tolerance.
    return _descending(matrix, *eigsh(matrix, k=n_pairs, which="LA", tol=1e-7, v0=start))


def _descending(matrix, values: np.ndarray, vectors: np.ndarray) -> Pairs:
    """Return ascending pairs in descending order, with their residuals."""
    values, vectors = values[::-1], vectors[:, ::-1]
    return Pairs(values, vectors, np.linalg.norm(matrix @ vectors - vectors * values, axis=0))


def chebyshev(matrix, n_pairs: int, **options) -> Pairs:
    """Compute the largest eigenpairs by `filtered`, on all cores or the device of the matrix."""
    if isinstance(matrix, ResidentMatrix):
        with one_blas_thread():  # what is left to this machine is small
            return filtered(DeviceOperator(matrix), n_pairs, **options)
    with HostOperator(matrix) as operator:
        return filtered(operator, n_pairs, **options)


SOLVERS: dict[str, Callable[..., Pairs]] = {f.__name__: f for f in (dense, arpack, chebyshev)}


def _left_out(pairs: Pairs, n_pairs: int) -> tuple[Warned, ...]:
    """Return a warning if there are fewer pairs than asked for."""
    if len(pairs.values) >= n_pairs:
        return ()
    message = (
        f"{len(pairs.values)} of {n_pairs} eigenpairs are accurate after {pairs.products} "
        "products of the matrix with all vectors; the others did not converge and were left out. "
        "Ask for fewer functions, or raise `n_neighbors`."
    )
    return (Warned(message, EigenpairWarning),)


def _inaccurate(residuals: np.ndarray, asked: np.ndarray, solver: str) -> tuple[Warned, ...]:
    """Return a warning if residuals, but of spare pairs, are larger than asked for."""
    residuals = residuals[: len(asked)]
    large = residuals > 10 * asked
    if not large.any():
        return ()
    message = (
        f"{large.sum()} of {len(residuals)} eigenpairs have residuals more than 10 times as large "
        f"as asked for, the largest {residuals[large].max():.1e} (solver {solver!r}). Try another "
        "`solver` or fewer functions."
    )
    return (Warned(message, EigenpairWarning),)
