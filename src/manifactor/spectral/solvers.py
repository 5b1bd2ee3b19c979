"""The largest eigenpairs of a symmetric normalised affinity, by one of several solvers.

Every solver takes ``(matrix, n_pairs, *, tolerance, rng, settings)`` and returns `Pairs`. Direct
solvers ignore further arguments, such as where to start.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from manifactor._support.parameters import Choice, given
from manifactor._support.threads import one_blas_thread
from manifactor.spectral.chebyshev import filtered
from manifactor.spectral.eigenpairs import Pairs
from manifactor.spectral.filter_plan import FilterSettings
from manifactor.spectral.gpu import DeviceOperator, ResidentMatrix
from manifactor.spectral.operators import HostOperator


@dataclass(frozen=True)
class SolverSettings:
    """Settings of the solvers and of the choice among them."""

    # Up to so many samples a full decomposition is as fast as any other, and exact.
    dense_samples: int = 1500

    # With fewer samples for each pair a full decomposition is faster, however many there are.
    dense_samples_per_pair: int = 3

    # Residual that ARPACK is asked for; it has no notion of a distance from 1.
    arpack_residual: float = 1e-7

    filter: FilterSettings = field(default_factory=FilterSettings)


def dense(matrix, n_pairs: int, **_) -> Pairs:
    """Compute the largest eigenpairs by a full decomposition of LAPACK's."""
    n = matrix.shape[0]
    wanted = (n - n_pairs, n - 1)
    array = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    values, vectors = eigh(array, subset_by_index=wanted)
    return _descending(matrix, values, vectors)


def arpack(
    matrix, n_pairs: int, *, rng: Generator, settings: SolverSettings = SolverSettings(), **_
) -> Pairs:
    """Compute the largest eigenpairs by the implicitly restarted Lanczos method.

    Chosen for dense kernels only, whose spectra fall off too fast for the filter: it follows one
    vector and misses copies of eigenvalues that are equal to the last digit, as they are for
    samples on a regular grid.
    """
    # Random, since a vector of ones may be an exact eigenvector.
    start = rng.standard_normal(matrix.shape[0])
    residual = settings.arpack_residual
    try:
        values, vectors = eigsh(matrix, k=n_pairs, which="LA", tol=residual, v0=start)
    except ArpackNoConvergence as error:
        # Not a NothingFoundError, which a search for factors may pass over.
        raise ValueError(
            "ARPACK did not converge on these samples; choose `solver='chebyshev'` "
            "or 'dense'. A sum is always looked for by ARPACK: if that is what failed, "
            "choose another `sense`, such as 'geometry'."
        ) from error
    return _descending(matrix, values, vectors)


def _descending(matrix, values: np.ndarray, vectors: np.ndarray) -> Pairs:
    """Return ascending pairs in descending order, with their residuals."""
    values = values[::-1]
    vectors = vectors[:, ::-1]
    off = matrix @ vectors - vectors * values
    residuals = np.linalg.norm(off, axis=0)
    return Pairs(values, vectors, residuals)


def chebyshev(
    matrix,
    n_pairs: int,
    *,
    tolerance: float,
    rng: Generator,
    settings: SolverSettings = SolverSettings(),
    **further,
) -> Pairs:
    """Compute the largest eigenpairs by filtered subspace iteration.

    It runs on all cores, or on the device that the matrix lies on. `further` arguments are `start`,
    `spare` and `progress` of `filtered`.
    """
    further |= {"tolerance": tolerance, "rng": rng, "settings": settings.filter}
    if isinstance(matrix, ResidentMatrix):
        with one_blas_thread():  # what is left to this machine is small
            return filtered(DeviceOperator(matrix), n_pairs, **further)
    with HostOperator(matrix) as operator:
        return filtered(operator, n_pairs, **further)


SOLVERS: dict[str, Callable[..., Pairs]] = {
    "dense": dense,
    "arpack": arpack,
    "chebyshev": chebyshev,
}


def choose_solver(
    matrix, n_pairs: int, *, solver: str = "auto", settings: SolverSettings = SolverSettings()
) -> Choice:
    """Return the name of the solver to use: the caller's, or the fastest.

    Shapes: matrix (n, n).
    """
    few = settings.dense_samples
    n = matrix.shape[0]
    if solver != "auto":
        return given(solver)
    if isinstance(matrix, ResidentMatrix):
        return Choice("chebyshev", "filtered subspaces are what runs on a device")
    if n <= few:
        return Choice(
            "dense", f"a full decomposition is exact, and as fast as any up to {few:,} samples"
        )
    if n < settings.dense_samples_per_pair * n_pairs:
        return Choice(
            "dense", f"a full decomposition is fastest for {n_pairs:,} functions of {n:,} samples"
        )
    if isinstance(matrix, np.ndarray):
        return Choice("arpack", "the spectrum of a full kernel falls off too fast for the filter")
    return Choice(
        "chebyshev",
        f"filtered subspaces are fastest beyond {few:,} samples, and miss no repeated eigenvalue",
    )
