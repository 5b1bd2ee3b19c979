"""The largest eigenpairs of a symmetric normalised affinity: a table of solvers with one signature.

Every solver takes ``(matrix, n_pairs, *, tolerance, rng)`` and returns `Pairs`; what else it is told, such as where to
start, direct ones ignore. All eigenvalues lie in [-1, 1], and what counts is their distance from 1: a pair is accurate
if its residual is below `tolerance` times that.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, eigh_tridiagonal, solve_triangular
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from manifactor._support.threads import one_blas_thread
from manifactor.spectral.operators import DeviceOperator, HostOperator, Operator
from manifactor.spectral.resident import ResidentMatrix

DENSE_SAMPLES = (
    1500  # up to here a full decomposition is as fast as any other, and exact
)
FINEST = 1e-7  # residual that ARPACK is asked for
SINGLE_PRECISION = 3e-6  # residual that single precision reaches; what is left is noise from sample to sample
SMOOTHED = (
    10 * SINGLE_PRECISION
)  # residual asked for below which one step of the walk smooths that noise
BUDGET = 4000  # products of the matrix with a block
PROBES, PROBE_STEPS = (
    8,
    40,
)  # random vectors, and steps with each, that the spectrum's density is read from
MOST_PROBE_STEPS = 200
RESOLVED = 6  # values above the cut that each probe must show
SPARE = 0.4  # vectors beyond those wanted, as a share
FEWEST_SPARE, EASY_SPARE = (
    16,
    80,
)  # and at least; while blocks are narrow, more cost little and save steps
SMOOTH, SMOOTHER = (
    10.0,
    4.0,
)  # distance from 1, over the cut's, below which vectors are first damped, and log how far
SURE = 2.5  # standard errors of the spectrum's density by which the cut lies above the last spare vector
FAITHFUL = 6.5  # log of how much the first vector may gain over the last in mixtures of both: rounding drowns that
SORTED, SHARP = (
    5.5,
    12.0,
)  # the same where vectors were taken apart before, and in double precision
WIDE = 4.0  # width of a block, over the entries of a row, from which on it is taken apart only at the end
MOST_STALLS = 3  # times that residuals may come no nearer
SETTLED = 0.3  # error, over the distance from the cut, of eigenvalues that tell more than the density does
MIXED, ORTHONORMAL = (
    4e-7,
    1e-8,
)  # relative error that a degree adds in single precision to blocks of such vectors
INDEPENDENT = 1e-4  # least sine of a vector's angle with those before it that are not nearly dependent
SOON = 16.0  # error, over what is asked for, at which pairs are read: most are accurate then, few are left to do
MARGIN = 0.15  # of the residual asked for that a filter aims at
NEAR, RANDOM = (
    0.02,
    0.12,
)  # error of vectors near the wanted ones, and of random ones for the root of their number


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
        Products of the matrix with a block of vectors that filters have made.
    """

    values: np.ndarray
    vectors: Any
    residuals: np.ndarray
    products: int = 0


@dataclass(frozen=True)
class Start:
    """What some of the samples tell about the wanted pairs.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        The samples.
    vectors : ndarray of shape (n_rows, width)
        Values of the vectors there, more of them than pairs are wanted.
    values : ndarray of shape (width,)
        Their eigenvalues, descending.
    """

    rows: np.ndarray
    vectors: np.ndarray
    values: np.ndarray


def required(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Residuals that are asked for of pairs with these eigenvalues; as a rule single precision will do."""
    return np.maximum(min(tolerance, SINGLE_PRECISION), tolerance * (1 - values))


def dense(
    matrix, n_pairs: int, *, tolerance: float, rng: np.random.Generator, **_
) -> Pairs:
    """Full decomposition by LAPACK."""
    n = matrix.shape[0]
    array = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    values, vectors = eigh(array, subset_by_index=(n - n_pairs, n - 1))
    return _pairs(matrix, values[::-1], vectors[:, ::-1])


def arpack(
    matrix, n_pairs: int, *, tolerance: float, rng: np.random.Generator, **_
) -> Pairs:
    """Implicitly restarted Lanczos at the largest end; a random start, since ones may be an exact eigenvector.

    Chosen for dense kernels only, whose spectra fall off too fast for the filter: it follows one vector and misses
    copies of eigenvalues that are equal to the last digit, as they are for samples on a regular grid.
    """
    start = rng.standard_normal(matrix.shape[0])
    try:
        values, vectors = eigsh(matrix, k=n_pairs, which="LA", tol=FINEST, v0=start)
    except ArpackNoConvergence as error:
        raise ValueError(
            "ARPACK did not converge on these samples; choose `solver='chebyshev'` or 'dense'."
        ) from error
    return _pairs(matrix, values[::-1], vectors[:, ::-1])


def _pairs(matrix, values: np.ndarray, vectors: np.ndarray) -> Pairs:
    return Pairs(
        values, vectors, np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    )


def chebyshev(matrix, n_pairs: int, **settings) -> Pairs:
    """Subspace iteration filtered by Chebyshev polynomials (Zhou, Saad et al., 2006), on all cores or on a device."""
    if isinstance(matrix, ResidentMatrix):
        with one_blas_thread():  # what is left to this machine is small
            return filtered(DeviceOperator(matrix), n_pairs, **settings)
    with HostOperator(matrix) as operator:
        return filtered(operator, n_pairs, **settings)


SOLVERS: dict[str, Callable[..., Pairs]] = {
    "dense": dense,
    "arpack": arpack,
    "chebyshev": chebyshev,
}


def choose_solver(matrix, n_pairs: int) -> str:
    """The fastest solver for this size."""
    n = matrix.shape[0]
    if isinstance(matrix, ResidentMatrix):
        return "chebyshev"
    if n <= DENSE_SAMPLES or 3 * n_pairs > n:
        return "dense"
    return "arpack" if isinstance(matrix, np.ndarray) else "chebyshev"


def filtered(
    operator: Operator,
    n_pairs: int,
    *,
    tolerance: float,
    rng: np.random.Generator,
    start: Start | None = None,
    spare: bool = False,
    budget: int = BUDGET,
    progress: Callable[[float], None] | None = None,
) -> Pairs:
    """The largest eigenpairs by filtering a block of vectors, somewhat wider than asked for.

    Where the wanted eigenvalues end is read from the spectrum's density, so that the first polynomial is already the
    right one. Vectors are filtered in single precision, twice as fast, as long as that is accurate enough; pairs are
    read from them in double precision, and those that are accurate are filtered no more.

    Parameters
    ----------
    start : Start or None
        What is known beforehand.
    spare : bool
        Return the spare vectors too, which are less accurate.
    budget : int
        Products of the matrix with the block; when they are used up, the lowest accurate pairs are returned.
    progress : callable or None
        Told the share of the work that is done.
    """
    width = block_width(operator.n, n_pairs)
    if start is not None and start.vectors.shape[1] < width:
        start = None
    plan = _plan(operator, n_pairs, width, rng, start)
    block = (
        operator.random(width, rng)
        if start is None
        else operator.filled(start.rows, start.vectors[:, :width])
    )
    block, error = (
        _smoothed(operator, block, plan),
        NEAR if start else RANDOM * np.sqrt(width),
    )
    kept, spent, stalled, worst = (
        Pairs(np.empty(0), operator.columns(block, np.arange(0)), np.empty(0)),
        0,
        0,
        np.inf,
    )
    rounding, precise, wide = (
        0.0 if start else MIXED,
        False,
        width > WIDE * operator.entries,
    )
    while True:
        target = plan.target(tolerance)
        single = not precise and max(target, error / 20) >= SINGLE_PRECISION
        limit = (FAITHFUL + wide if rounding else SORTED) if single else SHARP
        degree = plan.degree(
            error, max(target, SINGLE_PRECISION) if single else target, limit
        )
        block = _filter(operator, operator.cast(block, single=single), plan, degree)
        spent, error = (
            spent + degree,
            plan.error_after(error, degree, rounding=rounding * single),
        )
        if progress is not None:
            progress(min(0.99, spent / (spent + plan.remaining(error, target))))
        if (
            error > SOON * target
            and spent < budget
            and plan.is_faithful(error, target, wide=wide)
        ):
            operator.rotate(block, _orthonormal(operator.inner(block, block)))
            rounding = ORTHONORMAL
            continue
        block = operator.cast(block, single=False)
        if single and target < SMOOTHED:
            block = _step(operator, block, plan)
        values, residuals, order = _sorted_together(
            kept, *_rayleigh_ritz(operator, block, kept.vectors, n_pairs)
        )
        block = operator.beside(kept.vectors, block)
        del kept  # whose vectors are in the block now
        excess = residuals[:n_pairs] / required(values[:n_pairs], tolerance)
        stuck, worst = excess.max() > worst / 2, excess.max()
        stalled += stuck
        if excess.max() <= 1 or spent >= budget or stalled > MOST_STALLS:
            count = width if spare else max(2, int((excess <= 1).cumprod().sum()))
            return Pairs(
                values[:count],
                operator.vectors(block, order[:count]),
                residuals[:count],
                spent,
            )
        fine = np.flatnonzero(excess <= 1)
        kept = Pairs(
            values[fine], operator.columns(block, order[fine]), residuals[fine]
        )
        block = operator.columns(block, np.delete(order, fine))
        error, rounding = 2 * float(excess.max() * target), 0.0
        plan, known = plan.refined(values, n_pairs, error, stuck=stuck)
        precise = precise or (stuck and known)


@dataclass(frozen=True)
class _Plan:
    """Where a spectrum ends at the bottom, where the filter is to cut, and the last wanted eigenvalue."""

    bottom: float
    cut: float
    last: float

    @property
    def gain(self) -> float:
        """Log of what a degree of the polynomial adds to the last wanted vector over all below the cut."""
        return self._growth(self.last)

    @property
    def first(self) -> float:
        """The same of the first vector."""
        return self._growth(1.0)

    def _growth(self, value: float) -> float:
        return float(
            np.arccosh(1 + 2 * max(value - self.cut, 1e-7) / (self.cut - self.bottom))
        )

    def target(self, tolerance: float) -> float:
        """Residual that is asked for of the last wanted pair."""
        return float(required(np.array(self.last), tolerance))

    def degree(self, error: float, target: float, limit: float) -> int:
        """Degree that takes an error below its target; the first vector may gain so much over the last."""
        most = limit / max(self.first - self.gain, 1e-9)
        return max(2, int(np.ceil(min(self.remaining(error, MARGIN * target), most))))

    def remaining(self, error: float, target: float) -> float:
        """Degree that takes an error to its target."""
        return np.log(max(error / target, 1.0)) / self.gain

    def error_after(self, error: float, degree: int, *, rounding: float) -> float:
        """Error of the last wanted vector after a polynomial; rounding errors of the first vector count too."""
        return error * np.exp(-degree * self.gain) + rounding * degree * np.exp(
            degree * (self.first - self.gain)
        )

    def is_faithful(self, error: float, target: float, *, wide: bool) -> bool:
        """Whether orthonormal vectors can go the rest of the way in one polynomial, a wide block in several."""
        degree = self.degree(error, target, FAITHFUL + wide)
        return (
            self.error_after(0.0 if wide else error, degree, rounding=ORTHONORMAL)
            < 2 * target
        )

    def refined(
        self, values: np.ndarray, n_pairs: int, error: float, *, stuck: bool
    ) -> "tuple[_Plan, bool]":
        """The plan after eigenvalues have been seen, descending, and whether they are known well.

        They lie below the true ones. If they are not known and come no nearer, the cut was too high.
        """
        safe, last = (
            float(values[int(_safe(n_pairs, len(values))) - 1]),
            float(values[n_pairs - 1]),
        )
        if error < SETTLED * (last - self.cut):
            return _Plan(self.bottom, min(max(self.cut, safe), last - 1e-7), last), True
        if not stuck:
            return self, False
        cut = max(min(self.cut, safe), self.bottom + 0.05)
        return _Plan(self.bottom, cut, max(last, cut + 1e-3)), False


def _plan(
    operator: Operator,
    n_pairs: int,
    width: int,
    rng: np.random.Generator,
    start: Start | None,
) -> _Plan:
    """The plan that the spectrum's density asks for, or the eigenvalues that some of the samples show."""
    safe = _safe(n_pairs, width)
    values, counts = spectral_density(operator, np.inf if start else safe, rng)
    if start is None:
        last, cut = np.interp([n_pairs, safe], counts, values)
    else:
        last = start.values[
            n_pairs - 1
        ]  # what lies beyond is less accurate: the cut is as far off as it is far in
        cut = last**2 / start.values[max(0, 2 * n_pairs - int(safe))]
    bottom = max(-1.0, float(values[-1]) - 0.02)
    last = min(float(last), 1 - 1e-9)
    cut = min(max(float(cut), bottom + 0.05), last - 1e-6)
    return _Plan(bottom, cut, last)


def block_width(n: int, n_pairs: int) -> int:
    """Vectors that are filtered: those wanted and some to spare."""
    spare = max(
        FEWEST_SPARE,
        min(int(2 * SPARE * n_pairs), max(EASY_SPARE, int(SPARE * n_pairs))),
    )
    return min(n, n_pairs + spare)


def _smoothed(operator: Operator, block, plan: _Plan):
    """A block without what lies far below the cut, nearly all of a random vector: a few steps are enough for that."""
    cut = 1 - SMOOTH * (1 - plan.cut)
    if cut < plan.bottom + 0.1:
        return block
    rough = _Plan(plan.bottom, cut, plan.last)
    return _filter(operator, block, rough, max(2, int(np.ceil(SMOOTHER / rough.gain))))


def _step(operator: Operator, block, plan: _Plan):
    """The matrix, less the bottom of its spectrum, times a block: what lies lower comes out smaller."""
    out = 0 * block
    operator.recur(block, out, plan.bottom, 1.0, 0.0)
    return out


def _safe(n_pairs: int, width: int) -> float:
    """How many eigenvalues are to lie above the cut: as many as a block surely holds."""
    return max(width - SURE * np.sqrt(2 * width / PROBES), (n_pairs + width) / 2)


def spectral_density(
    operator: Operator, count: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Values, descending, and how many eigenvalues lie above each, resolved where `count` of them do.

    Every random vector's Lanczos process is a Gauss quadrature of the spectrum's density (Lin, Saad and Yang, 2016).
    """
    now = operator.random(PROBES, rng)
    norm = operator.dots(now, now) ** 0.5
    operator.scale(now, 1 / norm)
    before, beta, alphas, betas = 0 * now, 0 * norm, [], []
    while True:
        for _ in range(PROBE_STEPS):
            after = operator.product(now)
            alphas.append(operator.dots(now, after))
            operator.add(after, now, -alphas[-1])
            operator.add(after, before, -beta)
            beta = operator.dots(after, after).clip(1e-30) ** 0.5
            operator.scale(after, 1 / beta)
            betas.append(beta)
            before, now = now, after
        values, weights = _quadrature(
            operator.stacked(alphas), operator.stacked(betas)[:-1]
        )
        counts = (np.cumsum(weights) - weights / 2) * operator.n / PROBES
        if (counts < count).sum() >= RESOLVED * PROBES or len(
            alphas
        ) >= MOST_PROBE_STEPS:
            return values, counts


def _quadrature(alphas: np.ndarray, betas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, descending, and weights of all probes' tridiagonal matrices."""
    nodes, weights = [], []
    for alpha, beta in zip(alphas.T, betas.T, strict=True):
        values, vectors = eigh_tridiagonal(alpha, beta)
        nodes.append(values)
        weights.append(vectors[0] ** 2)
    order = np.argsort(-np.concatenate(nodes))
    return np.concatenate(nodes)[order], np.concatenate(weights)[order]


def _filter(operator: Operator, block, plan: _Plan, degree: int):
    """A Chebyshev polynomial of the matrix on a block: at most 1 on [bottom, cut], growing fast above.

    The recursion is scaled to the value 1 at the eigenvalue 1, which keeps single precision in range.
    """
    centre, half = (plan.cut + plan.bottom) / 2, (plan.cut - plan.bottom) / 2
    top = scale = half / (1 - centre)
    before, now = block, 0 * block
    operator.recur(before, now, centre, scale / half, 0.0)
    for _ in range(degree - 1):
        following = 1 / (2 / top - scale)
        operator.recur(now, before, centre, 2 * following / half, scale * following)
        before, now, scale = now, before, following
    return now


def _rayleigh_ritz(
    operator: Operator, block, known, n_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values beside known vectors, descending, and their residuals; the block becomes the Ritz vectors.

    Residuals beyond the first `n_pairs`, of spare vectors, are infinite.
    """
    if known.shape[1]:
        operator.clear(block, known)
    image = operator.product(block)
    basis = _orthonormal(operator.inner(block, block))
    small = basis.T @ operator.inner(block, image) @ basis
    values, rotation = eigh((small + small.T) / 2)
    values, rotation = values[::-1], basis @ rotation[:, ::-1]
    operator.rotate(block, rotation)
    residuals = np.full(len(values), np.inf)
    residuals[:n_pairs] = operator.off(
        image, block, rotation[:, :n_pairs], values[:n_pairs]
    )
    return values, residuals


def _sorted_together(
    kept: Pairs, values: np.ndarray, residuals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, descending, and residuals of kept and of new pairs, and the order that this puts them in."""
    values, residuals = np.r_[kept.values, values], np.r_[kept.residuals, residuals]
    order = np.argsort(-values, kind="stable")
    return values[order], residuals[order], order


def _orthonormal(gram: np.ndarray) -> np.ndarray:
    """Combinations of vectors with these inner products that are orthonormal.

    A triangle will do, at a quarter of the cost, unless the vectors are nearly dependent.
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    gram = gram * scale[:, None] * scale
    with suppress(LinAlgError):
        triangle = cholesky(gram)
        if np.diag(triangle).min() > INDEPENDENT:
            return scale[:, None] * solve_triangular(triangle, np.eye(len(gram)))
    values, basis = eigh(gram)
    return (
        scale[:, None]
        * basis[:, ::-1]
        / np.sqrt(np.maximum(values[::-1], 1e-13 * values[-1]))
    )
