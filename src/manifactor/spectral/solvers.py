"""The largest eigenpairs of a symmetric normalised affinity: a table of solvers with one signature.

Every solver takes ``(matrix, n_pairs, *, tolerance, rng)`` and returns the eigenvalues in descending order and the
orthonormal eigenvectors in their columns. All eigenvalues lie in [-1, 1].
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

DENSE_SAMPLES = 1500  # up to here a full decomposition is as fast as any other, and exact
SINGLE_PRECISION_FLOOR = 1e-5  # residuals that the single-precision filter reaches safely
MAX_SWEEPS = 40


class EigenpairWarning(UserWarning):
    """Some eigenpairs are less accurate than asked for."""


def dense(matrix, n_pairs: int, *, tolerance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Full decomposition by LAPACK."""
    n = matrix.shape[0]
    array = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    values, vectors = eigh(array, subset_by_index=(n - n_pairs, n - 1))
    return values[::-1], vectors[:, ::-1]


def arpack(matrix, n_pairs: int, *, tolerance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Implicitly restarted Lanczos at the largest end; a random start, since ones may be an exact eigenvector.

    Chosen for dense kernels only, whose spectra fall off too fast for the filter: it follows one vector and misses
    copies of eigenvalues that are equal to the last digit, as they are for samples on a regular grid.
    """
    start = rng.standard_normal(matrix.shape[0])
    try:
        values, vectors = eigsh(matrix, k=n_pairs, which="LA", tol=tolerance, v0=start)
    except ArpackNoConvergence as error:
        raise ValueError("ARPACK did not converge on these samples; choose `solver='chebyshev'` or 'dense'.") from error
    return values[::-1], vectors[:, ::-1]


def chebyshev(matrix, n_pairs: int, *, tolerance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Subspace iteration filtered by Chebyshev polynomials (Zhou, Saad et al., 2006).

    A block of vectors somewhat wider than asked for is filtered in single precision, twice as fast, until rounding
    stops it, then in double; Rayleigh-Ritz and residuals are always double. Samples are put in reverse Cuthill-McKee
    order first, so that a product touches memory that is still in the cache.
    """
    n = matrix.shape[0]
    order, ordered = np.arange(n), matrix
    if sp.issparse(matrix):
        order = reverse_cuthill_mckee(sp.csr_matrix(matrix), symmetric_mode=True)
        ordered = sp.csr_array(sp.csr_array(matrix)[order][:, order])
        ordered.sort_indices()
    block = rng.standard_normal((n, min(n, n_pairs + max(16, 2 * n_pairs // 5))))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        double = _Strips(ordered, pool)
        single = _Strips(ordered.astype(np.float32), pool)
        bottom = _lower_bound(ordered, rng)
        cut, degree, active, worst = 0.5, 6, single, np.inf
        for _ in range(MAX_SWEEPS):
            filtered = _filter(active, block, bottom, cut, degree)
            values, block, residuals = _rayleigh_ritz(double, filtered, n_pairs)
            if residuals.max() < tolerance:
                break
            stuck = residuals.max() > worst / 2
            active = single if active is single and residuals.max() > SINGLE_PRECISION_FLOOR and not stuck else double
            worst = residuals.max()
            cut, degree = _next_filter(values, n_pairs, bottom, double=active is double)
    vectors = np.empty((n, n_pairs))
    vectors[order] = block[:, :n_pairs]
    return values[:n_pairs], vectors


SOLVERS: dict[str, Callable] = {"dense": dense, "arpack": arpack, "chebyshev": chebyshev}


def choose_solver(matrix, n_pairs: int) -> str:
    """The fastest solver for this size."""
    n = matrix.shape[0]
    if n <= DENSE_SAMPLES or 3 * n_pairs > n:
        return "dense"
    return "arpack" if isinstance(matrix, np.ndarray) else "chebyshev"


class _Strips:
    """A matrix cut into strips of rows, one for each core, so that products run on all of them."""

    def __init__(self, matrix: sp.csr_array | np.ndarray, pool: ThreadPoolExecutor) -> None:
        parts = max(1, min(os.cpu_count() or 1, matrix.shape[0] // 1000))
        cuts = np.linspace(0, matrix.shape[0], parts + 1).astype(int)
        self.rows = [slice(a, b) for a, b in pairwise(cuts)]
        self.strips = [matrix[rows] for rows in self.rows]
        self.dtype, self.pool = matrix.dtype, pool

    def __matmul__(self, block: np.ndarray) -> np.ndarray:
        return np.concatenate(list(self.pool.map(lambda strip: strip @ block, self.strips)))

    def recur(self, now: np.ndarray, before: np.ndarray, centre: float, forward: float, back: float) -> None:
        """Overwrite `before` with forward * (matrix - centre) @ now - back * before."""
        shift, forward_, back_ = np.array([centre, forward, back], self.dtype)

        def work(rows: slice, strip: sp.csr_array | np.ndarray) -> None:
            after = strip @ now
            after -= shift * now[rows]
            after *= forward_
            before[rows] *= -back_
            before[rows] += after

        list(self.pool.map(work, self.rows, self.strips))


def _lower_bound(matrix: sp.csr_array | np.ndarray, rng: np.random.Generator) -> float:
    """A number below the whole spectrum: the lowest Ritz value of 16 Lanczos steps, and a margin."""
    start = rng.standard_normal(matrix.shape[0])
    lowest = eigsh(matrix, k=1, which="SA", ncv=16, tol=10.0, v0=start, return_eigenvectors=False)[0]
    return max(-1.0, float(lowest) - 0.05)


def _filter(matrix: _Strips, block: np.ndarray, bottom: float, cut: float, degree: int) -> np.ndarray:
    """A Chebyshev polynomial of the matrix on a block: at most 1 on [bottom, cut], growing fast above.

    The recursion is scaled to the value 1 at the eigenvalue 1, which keeps single precision in range.
    """
    centre, half = (cut + bottom) / 2, (cut - bottom) / 2
    top = scale = half / (1 - centre)
    before, now = block.astype(matrix.dtype), np.zeros(block.shape, matrix.dtype)
    matrix.recur(before, now, centre, scale / half, 0.0)
    for _ in range(degree - 1):
        following = 1 / (2 / top - scale)
        matrix.recur(now, before, centre, 2 * following / half, scale * following)
        before, now, scale = now, before, following
    return now.astype(np.float64, copy=False)


def _rayleigh_ritz(matrix: _Strips, block: np.ndarray, n_pairs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ritz values, descending, Ritz vectors and the residuals of the first `n_pairs`, in the span of a block."""
    block = block / np.linalg.norm(block, axis=0)
    image = matrix @ block
    gram, basis = eigh(block.T @ block)
    basis = basis / np.sqrt(np.maximum(gram, 1e-13 * gram[-1]))
    small = basis.T @ (block.T @ image) @ basis
    values, rotation = eigh((small + small.T) / 2)
    values, rotation = values[::-1], basis @ rotation[:, ::-1]
    vectors = block @ rotation
    leading = slice(None, n_pairs)
    residuals = np.linalg.norm(image @ rotation[:, leading] - vectors[:, leading] * values[leading], axis=0)
    return values, vectors, residuals


def _next_filter(values: np.ndarray, n_pairs: int, bottom: float, *, double: bool) -> tuple[float, int]:
    """Cut and degree of the next sweep.

    The last wanted vector is to gain a factor e^10 over the first unwanted one, in double precision e^3; but the first
    may not gain more than a factor e^11 over the last, in double e^25, or the last would drown in rounding errors.
    """
    cut = max(float(values[-1]), bottom + 0.05)
    first, last = np.arccosh(1 + 2 * np.maximum([1 - cut, values[n_pairs - 1] - cut], 1e-6) / (cut - bottom))
    return cut, int(
        np.clip(np.ceil(min((3 if double else 10) / last, (25 if double else 11) / (first - last + 1e-6))), 2, 60)
    )
