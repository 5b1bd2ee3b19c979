"""Subspace iteration filtered by Chebyshev polynomials (Zhou, Saad et al., 2006).

All eigenvalues of a symmetric normalised affinity lie in [-1, 1]. What counts is their distance
from 1, which becomes an eigenvalue of the Laplacian: a pair is accurate if its residual is below
`tolerance` times that distance.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import LinAlgError, cholesky, eigh, eigh_tridiagonal, solve_triangular

from manifactor._support.errors import Warned
from manifactor._support.values import quotient
from manifactor.operators.engines.blocks import BlockOperator
from manifactor.operators.engines.gpu import cast, columns_of, from_tensor, namespace

# The residual that products in single precision reach. What is left is noise from sample to sample.
SINGLE_PRECISION_RESIDUAL = 3e-6

# Random vectors that show the density of a spectrum. The standard error of a count of eigenvalues
# is about sqrt(2 * count / probes).
PROBES = 8

# Products of the matrix with the block, after which the accurate pairs are returned and the others
# given up.
BUDGET = 4000

# Where a residual below this is asked for, one step of the walk smooths the noise of single
# precision before pairs are read. Saves products at a tolerance of 3e-6.
SMOOTHED_BELOW = 10 * SINGLE_PRECISION_RESIDUAL

# The filter must be bounded on the whole spectrum, so the damped interval is never narrower.
NARROWEST_INTERVAL = 0.05

# Distance from the cut that keeps a plan defined where eigenvalues coincide.
NEAREST_TO_CUT = 1e-7

# Error that a polynomial aims at, over the residual asked for.
AIM = 0.15

# Relative error that a degree adds to orthonormal vectors in single precision.
ORTHONORMAL_ROUNDING = 1e-8


@dataclass(frozen=True)
class Pairs:
    """Eigenpairs in descending order of the eigenvalue."""

    values: np.ndarray  # (n_pairs,)
    vectors: Any  # (n, n_pairs): orthonormal columns
    residuals: np.ndarray  # (n_pairs,): norms of matrix @ vector - value * vector
    products: int = 0  # number of products of the matrix with a block of vectors that filters took
    warned: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class Start:
    """An approximation of the wanted pairs on some of the samples."""

    rows: np.ndarray  # (n_rows,): the samples
    # (n_rows, width): values of the vectors there, more of them than pairs are wanted
    vectors: np.ndarray
    values: np.ndarray  # (width,): their eigenvalues, descending
    first: np.ndarray  # (n,): the first vector on all samples
    n_accurate: int  # vectors that are accurate on `rows`. Half of those beyond are of use.


def required(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the residuals that pairs may have, within what precision reaches."""
    finest = min(tolerance, SINGLE_PRECISION_RESIDUAL)
    return np.maximum(finest, tolerance * (1 - values))


def spectral_density(
    operator: BlockOperator, count: float, *, probes: int = PROBES, steps: int = 40, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return levels, descending, and estimates of how many eigenvalues lie above each.

    The Lanczos process of a random vector is a Gauss quadrature of the spectrum's density (Lin,
    Saad and Yang, 2016). It ends where the density at `count` is resolved, asked every `steps`.
    """
    now = operator.random(probes, rng)
    norm = operator.dots(now, now) ** 0.5
    now *= cast(1 / norm, now.dtype)
    before, beta = 0 * now, 0 * norm
    alphas: list[Any] = []
    betas: list[Any] = []
    while True:
        # Vectors are not orthogonalised again: that multiplies nodes, but leaves the sums of their
        # weights, which are all that counts here.
        for _ in range(steps):
            after = operator.product(now)
            alpha = operator.dots(now, after)
            after -= now * cast(alpha, now.dtype)
            after -= before * cast(beta, now.dtype)
            # An invariant subspace ends a process with a norm of 0.
            beta = operator.dots(after, after).clip(1e-30) ** 0.5
            after *= cast(1 / beta, now.dtype)
            alphas.append(alpha)
            betas.append(beta)
            before, now = now, after
        # One transfer for all of them: each would wait for the device.
        stack = namespace(now).stack
        values, weights = _quadrature(from_tensor(stack(alphas)), from_tensor(stack(betas)))
        # Half of a node's own weight lies above it.
        above = np.cumsum(weights) - weights / 2
        counts = above * operator.n / probes
        # With fewer nodes above the level for each probe the density is not resolved there.
        resolved = (counts < count).sum() >= 6 * probes
        if resolved or len(alphas) >= 200:
            return values, counts


def _quadrature(alphas: np.ndarray, betas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of all Lanczos processes, descending, and their weights."""
    nodes, weights = [], []
    for alpha, beta in zip(alphas.T, betas.T, strict=True):
        # Weights of a Gauss quadrature are squared first components.
        values, vectors = eigh_tridiagonal(alpha, beta[:-1])
        nodes.extend(values)
        weights.extend(vectors[0] ** 2)
    order = np.argsort(-np.array(nodes))
    return np.array(nodes)[order], np.array(weights)[order]


@dataclass(frozen=True)
class FilterPlan:
    """The interval that a filter damps, and the last eigenvalue that it has to lift.

    Gains are natural logarithms of how much a polynomial amplifies one vector over another; errors
    are those of the last wanted vector, relative to its length.
    """

    bottom: float  # lower end of the damped interval and of the spectrum
    cut: float  # upper end of the damped interval
    last: float  # the last wanted eigenvalue

    @property
    def gain(self) -> float:
        """Gain of the last wanted vector, per degree, over all below the cut."""
        return self._growth(self.last)

    @property
    def first_gain(self) -> float:
        """Gain of the first vector, per degree, over all below the cut."""
        return self._growth(1.0)

    def _growth(self, value: float) -> float:
        # The polynomial is cosh(degree * arccosh(x)) where [bottom, cut] is [-1, 1].
        above = max(value - self.cut, NEAREST_TO_CUT)
        x = 1 + 2 * above / (self.cut - self.bottom)
        return float(np.arccosh(x))

    def faithful_gain(self, *, wide: bool) -> float:
        """Return the gain of the first vector over the last that mixtures stand."""
        # More than that drowns the last vector in rounding errors. Blocks that are wide are taken
        # apart rarely, and risk more.
        return 7.5 if wide else 6.5

    def degree(self, error: float, target: float, limit: float, *, aim: float) -> int:
        """Return the degree that takes an error to its target times `aim`."""
        needed = self.remaining(error, aim * target)
        most = quotient(limit, self.first_gain - self.gain)
        return max(2, int(np.ceil(min(needed, most))))

    def remaining(self, error: float, target: float) -> float:
        """Return the degree, a real number, that takes an error to its target."""
        return np.log(max(error / target, 1.0)) / self.gain

    def error_after(self, error: float, degree: int, *, rounding: float) -> float:
        """Return the error after a polynomial, with the rounding of the first vector."""
        damped = error * np.exp(-degree * self.gain)
        ahead = self.first_gain - self.gain
        return damped + rounding * degree * np.exp(degree * ahead)

    def is_faithful(self, error: float, target: float, *, wide: bool) -> bool:
        """Return whether orthonormal vectors can reach the target in one polynomial."""
        limit = self.faithful_gain(wide=wide)
        degree = self.degree(error, target, limit, aim=AIM)
        # A wide block may need several: only rounding counts there.
        begin = 0.0 if wide else error
        return self.error_after(begin, degree, rounding=ORTHONORMAL_ROUNDING) < 2 * target

    def settled(self, last: float, safe: float) -> "FilterPlan":
        """Return the plan for a last eigenvalue that is known well.

        Ritz values lie below the eigenvalues, so `safe` can only raise the cut.
        """
        cut = min(max(self.cut, safe), last - NEAREST_TO_CUT)
        return replace(self, cut=cut, last=last)

    def lowered(self, last: float, safe: float) -> "FilterPlan":
        """Return the plan after a cut that was too high for anything to converge."""
        cut = max(min(self.cut, safe), self.bottom + NARROWEST_INTERVAL)
        last = max(last, cut + 1e-3)
        return replace(self, cut=cut, last=last)

    def rough(self) -> "list[FilterPlan]":
        """Return the plans that damp what is rough, the roughest first."""
        cuts = [1 - far * (1 - self.cut) for far in (100.0, 10.0)]
        return [replace(self, cut=cut) for cut in cuts if cut >= self.bottom + 0.1]


def block_width(n: int, n_pairs: int, *, wide: int = 0) -> int:
    """Return how many vectors are filtered, with spare ones; `wide` as of a `BlockOperator`."""
    # While blocks are narrow, more spare vectors cost little and save degrees.
    spare = min(int(0.8 * n_pairs), max(80, int(0.4 * n_pairs)))
    # Where wide blocks cost hardly more, the cut lies twice as far from 1 as the last wanted
    # eigenvalue, its farthest with a start.
    spare = max(spare, min(int(1.24 * n_pairs), wide - n_pairs))
    return min(n, n_pairs + max(16, spare))


def safe_count(n_pairs: int, width: int) -> float:
    """Return how many eigenvalues a block surely holds, given the standard error of the density."""
    surely = width - 2.5 * np.sqrt(2 * width / PROBES)
    # Never so few that the cut comes near the last wanted eigenvalue.
    return max(surely, (n_pairs + width) / 2)


def first_plan(
    operator: BlockOperator, n_pairs: int, width: int, *, start: Start | None, rng: Generator
) -> FilterPlan:
    """Return the plan from the spectrum's density, or from the start's eigenvalues."""
    safe = safe_count(n_pairs, width)
    if start is None:
        values, counts = spectral_density(operator, safe, rng=rng)
        last, cut = np.interp([n_pairs, safe], counts, values)
    else:
        # Only the bottom of the spectrum is to be known: any probe shows it.
        values, _ = spectral_density(operator, np.inf, probes=4, steps=20, rng=rng)
        safe = max(safe, min(width, (start.n_accurate + len(start.values)) // 2))
        last = start.values[n_pairs - 1]
        # What lies beyond the wanted eigenvalues is less accurate in a start, so the cut is put as
        # far beyond the last one as `safe` of them lie within.
        within = max(0, 2 * n_pairs - int(safe))
        cut = last**2 / start.values[within]
    # The probes' lowest node lies inside the spectrum; the interval goes on below that node.
    bottom = max(-1.0, float(values[-1]) - 0.02)
    # A plan stays defined where eigenvalues coincide. The first cut is a rough one.
    last = min(float(last), 1 - 1e-9)
    cut = min(max(float(cut), bottom + NARROWEST_INTERVAL), last - 1e-6)
    return FilterPlan(bottom, cut, last)


def chebyshev_filter(operator: BlockOperator, block: Any, plan: FilterPlan, degree: int) -> Any:
    """Apply a Chebyshev polynomial of the matrix to a block, which is overwritten.

    It is at most 1 on [bottom, cut], and scaled to 1 at the eigenvalue 1.
    """
    centre = (plan.cut + plan.bottom) / 2
    half = (plan.cut - plan.bottom) / 2
    top = scale = half / (1 - centre)
    # Two blocks take turns, so that the filter needs no third.
    before, now = block, 0 * block
    operator.recur(before, now, centre, scale / half, 0.0)
    for _ in range(degree - 1):
        following = 1 / (2 / top - scale)
        forward, back = 2 * following / half, scale * following
        operator.recur(now, before, centre, forward, back)
        before, now, scale = now, before, following
    return now


def first_block(
    operator: BlockOperator, width: int, plan: FilterPlan, *, start: Start | None, rng: Generator
) -> Any:
    """Return random vectors, or those of the start, without what is rough in them."""
    block = operator.random(width, rng) if start is None else _extended(operator, start, width)
    # A random vector is nearly all rough; damping by this gain takes a few degrees only.
    for rough in plan.rough():
        block = chebyshev_filter(operator, block, rough, max(2, int(np.ceil(4 / rough.gain))))
    return block


def _extended(operator: BlockOperator, start: Start, width: int) -> Any:
    """Return vectors that are known on some samples as vectors on all of them.

    Steps of the walk sum the values around each sample; over those of the first vector, they are
    means.
    """
    block = operator.filled(start.rows, start.vectors[:, :width])
    around = operator.entries * len(start.rows) / operator.n
    # The walk reaches 8 known samples around each one; three or six times as many are no better.
    for _ in range(int(np.ceil(8 / around))):
        block = operator.product(block)
    found = from_tensor(operator.vectors(block, np.arange(1)))[:, 0]
    # Out of reach of all known samples, vectors stay 0.
    reached = np.abs(found) > np.finfo(np.float32).tiny
    factors = np.divide(start.first, found, out=np.zeros(operator.n), where=reached)
    operator.scale_rows(block, factors)
    return block


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


def rayleigh_ritz(
    operator: BlockOperator, block: Any, locked: Any, n_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Overwrite a block with its Ritz vectors; return values and residuals, (width,)."""
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
    """Return locked and new pairs in descending order of their values."""
    values = np.concatenate([locked.values, values])
    residuals = np.concatenate([locked.residuals, residuals])
    # Stable, so that of equal values those locked before come first, as they did.
    order = np.argsort(-values, kind="stable")
    values, residuals = values[order], residuals[order]
    excess = residuals[:n_pairs] / required(values[:n_pairs], tolerance)
    return RitzPairs(values, residuals, order, excess)


def orthonormalizer(gram: np.ndarray) -> np.ndarray:
    """Return orthonormal combinations of vectors with these inner products."""
    squares = np.maximum(np.diag(gram), np.finfo(gram.dtype).tiny)
    scale = 1 / np.sqrt(squares)
    gram = gram * scale[:, None] * scale
    # A triangle costs a quarter of a decomposition, but loses the vectors that are nearly
    # dependent; where any is, Cholesky fails or shows a small diagonal.
    with suppress(LinAlgError):
        triangle = cholesky(gram)
        if np.diag(triangle).min() > 1e-4:
            return scale[:, None] * solve_triangular(triangle, np.eye(len(gram)))
    values, basis = eigh(gram)
    values = values[::-1]
    basis = basis[:, ::-1]
    # Eigenvalues below rounding stand for directions that the block does not have.
    values = np.maximum(values, 1e-13 * values[0])
    return scale[:, None] * basis / np.sqrt(values)


def filtered(
    operator: BlockOperator,
    n_pairs: int,
    *,
    tolerance: float,
    rng: Generator,
    start: Start | None = None,
    spare: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Pairs:
    """Compute the largest eigenpairs by filtering a block of vectors.

    Where the wanted eigenvalues end is read from the spectrum's density. Vectors are filtered in
    single precision, twice as fast, as long as that is accurate enough. Pairs are read from them in
    double precision; those that are accurate are locked and filtered no more.
    """
    width = block_width(operator.n, n_pairs, wide=operator.wide)
    if start is not None and start.vectors.shape[1] < width:
        start = None
    plan = first_plan(operator, n_pairs, width, start=start, rng=rng)
    block = first_block(operator, width, plan, start=start, rng=rng)
    if start is None:
        # The relative error that a degree adds to mixtures in single precision is 4e-7.
        error, rounding, refined_aim = 0.12 * np.sqrt(width), 4e-7, AIM
    else:
        # Vectors of a start are nearly eigenvectors, not mixtures, and residuals are known after
        # pairs were read. What is left of them lies near the cut, and is the sampling error: with
        # 12,500 of 100,000 samples and 37,500 of 300,000 residuals came out at half of those asked
        # for.
        error, rounding, refined_aim = 6 * (1 - plan.cut) / np.sqrt(len(start.rows)), 0.0, 0.5
    iteration = _Iteration(
        operator,
        n_pairs,
        tolerance,
        # From this width on taking the block apart is done at the end only.
        wide=width > 4 * operator.entries,
        plan=plan,
        block=block,
        locked=_no_pairs(block),
        error=error,
        rounding=rounding,
        aim=AIM,
        refined_aim=refined_aim,
    )
    del block  # the iteration replaces its block, and this name would keep the first
    return iteration.pairs(spare, progress)


def _no_pairs(block: Any) -> Pairs:
    """Return an empty set of pairs of the block's kind."""
    none = np.empty(0)
    return Pairs(none, block[:, :0], none)


@dataclass
class _Iteration:
    """State of the subspace iteration, in place: no step may keep a block that was replaced."""

    operator: BlockOperator
    n_pairs: int
    tolerance: float
    wide: bool  # whether taking the block apart costs more than filtering it
    plan: FilterPlan
    block: Any
    locked: Pairs  # pairs that are accurate
    error: float  # estimated error of the last wanted vector
    rounding: float  # relative error that a degree adds in single precision
    aim: float  # error that the next polynomial aims at, over the residual asked for
    refined_aim: float  # the same after pairs were read
    products: int = 0  # products of the matrix with the block so far
    stalls: int = 0  # how often residuals came no nearer
    stalled: bool = False  # whether they came no nearer the last time
    worst: float = np.inf  # largest excess of a residual the last time
    double_only: bool = False  # whether single precision was found to be too coarse
    single: bool = True  # whether the last polynomial was applied in single precision

    @property
    def target(self) -> float:
        """Residual asked of the last wanted pair."""
        return float(required(np.array(self.plan.last), self.tolerance))

    def pairs(self, spare: bool, progress: Callable[[float], None] | None) -> Pairs:
        """Return the pairs after as many polynomials as they need."""
        while True:
            self.filter_block()
            if progress is not None:
                progress(self.share_done())
            if self.needs_more_filtering():
                self.orthonormalize()
                continue
            pairs = self.read_pairs()
            # A polynomial aims at far less than half of what there was.
            self.stalled = bool(pairs.worst > self.worst / 2)
            self.stalls += self.stalled
            self.worst = pairs.worst
            # All are accurate, or no more products are worth it.
            if pairs.worst <= 1 or self.products >= BUDGET or self.stalls > 3:
                return self.result(pairs, spare=spare)
            self.lock(pairs)
            self.refine(pairs)

    def filter_block(self) -> None:
        """Apply the polynomial that the plan asks for, as far as rounding allows."""
        # Far from the target single precision is enough, whatever the target: rounding is small
        # beside the error that there is.
        nearest = max(self.target, self.error / 20)
        self.single = not self.double_only and nearest >= SINGLE_PRECISION_RESIDUAL
        degree = self._degree()
        array = namespace(self.block)
        block = cast(self.block, array.float32 if self.single else array.float64)
        self.block = chebyshev_filter(self.operator, block, self.plan, degree)
        rounding = self.rounding if self.single else 0.0
        self.products += degree
        self.error = self.plan.error_after(self.error, degree, rounding=rounding)

    def _degree(self) -> int:
        """Return the degree of the next polynomial."""
        if not self.single:
            return self.plan.degree(self.error, self.target, 12.0, aim=self.aim)
        # The smaller gain is that of vectors that were taken apart before.
        gain = self.plan.faithful_gain(wide=self.wide) if self.rounding else 5.5
        target = max(self.target, SINGLE_PRECISION_RESIDUAL)
        return self.plan.degree(self.error, target, gain, aim=self.aim)

    def share_done(self) -> float:
        """Return the share of all degrees that is done, as far as can be foreseen."""
        share = self.products / (self.products + self.plan.remaining(self.error, self.target))
        # Pairs are still to be read, even if no degree remains.
        return min(0.99, share)

    def needs_more_filtering(self) -> bool:
        """Return whether reading pairs now would find few that are accurate."""
        target = self.target
        # At this error most pairs are accurate, and few are left to do.
        if self.error <= 16 * target or self.products >= BUDGET:
            return False
        # If rounding forbids long polynomials, Ritz vectors are the better basis.
        return self.plan.is_faithful(self.error, target, wide=self.wide)

    def orthonormalize(self) -> None:
        """Take the vectors of the block apart, so that rounding does not mix them."""
        gram = self.operator.inner(self.block, self.block)
        self.operator.rotate(self.block, orthonormalizer(gram))
        self.rounding = ORTHONORMAL_ROUNDING

    def read_pairs(self) -> RitzPairs:
        """Turn the block into the vectors of all pairs, locked ones first."""
        operator = self.operator
        self.block = cast(self.block, namespace(self.block).float64)
        if self.single and self.target < SMOOTHED_BELOW:
            # What lies lower comes out smaller: the noise of single precision is spread over the
            # whole spectrum.
            smooth = 0 * self.block
            operator.recur(self.block, smooth, self.plan.bottom, 1.0, 0.0)
            self.block = smooth
            del smooth
        known = self.locked.vectors
        values, residuals = rayleigh_ritz(operator, self.block, known, self.n_pairs)
        pairs = merged(
            self.locked, values, residuals, n_pairs=self.n_pairs, tolerance=self.tolerance
        )
        if known.shape[1]:
            self.block = namespace(known).concatenate([known, self.block], axis=1)
        # Their vectors are in the block now, and are not to be there twice.
        self.locked = _no_pairs(self.block)
        return pairs

    def result(self, pairs: RitzPairs, *, spare: bool) -> Pairs:
        """Return the pairs up to the first that is not accurate, or all of them."""
        # A pair beyond the constant one is returned, accurate or not: the caller warns of its
        # residual.
        before_first = int(pairs.accurate.cumprod().sum())
        count = len(pairs.values) if spare else max(2, before_first)
        return Pairs(
            pairs.values[:count],
            self.operator.vectors(self.block, pairs.order[:count]),
            pairs.residuals[:count],
            self.products,
        )

    def lock(self, pairs: RitzPairs) -> None:
        """Set the accurate pairs aside; the others stay in the block."""
        accurate = np.flatnonzero(pairs.accurate)
        self.locked = Pairs(
            pairs.values[accurate],
            columns_of(self.block, pairs.order[accurate]),
            pairs.residuals[accurate],
        )
        # Spare vectors stay with them: they hold what is still missing.
        self.block = columns_of(self.block, np.delete(pairs.order, accurate))

    def refine(self, pairs: RitzPairs) -> None:
        """Adapt the plan to the Ritz values."""
        self.error = 2 * float(pairs.worst * self.target)
        self.aim = self.refined_aim
        # Ritz vectors are not mixtures.
        self.rounding = 0.0
        n_safe = int(safe_count(self.n_pairs, len(pairs.values)))
        safe = float(pairs.values[n_safe - 1])
        last = float(pairs.values[self.n_pairs - 1])
        # A Ritz value with this error tells more than the density.
        if self.error < 0.3 * (last - self.plan.cut):
            self.plan = self.plan.settled(last, safe)
            self.double_only |= self.stalled
        elif self.stalled:  # the cut was too high
            self.plan = self.plan.lowered(last, safe)
