"""Plan of a filtered subspace iteration: eigenpairs, density of the spectrum, Chebyshev filter.

All eigenvalues of a symmetric normalised affinity lie in [-1, 1]. What counts is their distance
from 1, which becomes an eigenvalue of the Laplacian: a pair is accurate if its residual is below
`tolerance` times that distance.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh_tridiagonal

from manifactor._support.values import quotient
from manifactor.spectral.gpu import DeviceOperator
from manifactor.spectral.operators import HostOperator

Operator = HostOperator | DeviceOperator

# The residual that products in single precision reach. What is left is noise from sample to sample.
SINGLE_PRECISION_RESIDUAL = 3e-6

# Random vectors that show the density of a spectrum. The standard error of a count of eigenvalues
# is about sqrt(2 * count / probes).
PROBES = 8

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
    """Return the residuals that pairs with these eigenvalues may have.

    They are not smaller than what single precision reaches, unless `tolerance` is.
    """
    finest = min(tolerance, SINGLE_PRECISION_RESIDUAL)
    return np.maximum(finest, tolerance * (1 - values))


# The density of a matrix's spectrum, from Lanczos processes of random vectors.


def spectral_density(
    operator: Operator, count: float, *, probes: int = PROBES, steps: int = 40, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate how many eigenvalues lie above a level.

    The density is looked at after every `steps` Lanczos steps with each of `probes` random vectors.

    Every random vector's Lanczos process is a Gauss quadrature of the spectrum's density (Lin, Saad
    and Yang, 2016).

    Returns values (n_nodes,), counts (n_nodes,).
    """
    process = _Lanczos(operator, probes, rng)
    while True:
        process.advance(steps)
        values, weights = process.quadrature()
        # Half of a node's own weight lies above it.
        above = np.cumsum(weights) - weights / 2
        counts = above * operator.n / probes
        # With fewer nodes above the level for each probe the density is not resolved there.
        resolved = (counts < count).sum() >= 6 * probes
        if resolved or len(process.alphas) >= 200:
            return values, counts


class _Lanczos:
    """Lanczos processes of several vectors, one beside the other.

    Vectors are not orthogonalised again: that multiplies nodes, but leaves the sums of their
    weights, which are all that counts here.
    """

    def __init__(self, operator: Operator, width: int, rng: Generator) -> None:
        """Start from random unit vectors."""
        self.operator = operator
        self.now = operator.random(width, rng)
        norm = operator.dots(self.now, self.now) ** 0.5
        operator.scale(self.now, 1 / norm)
        self.before, self.beta = 0 * self.now, 0 * norm
        self.alphas: list[Any] = []
        self.betas: list[Any] = []

    def advance(self, steps: int) -> None:
        """Take some steps of the three-term recurrence."""
        operator = self.operator
        for _ in range(steps):
            after = operator.product(self.now)
            alpha = operator.dots(self.now, after)
            operator.add(after, self.now, -alpha)
            operator.add(after, self.before, -self.beta)
            # An invariant subspace ends a process with a norm of 0.
            square = operator.dots(after, after)
            self.beta = square.clip(1e-30) ** 0.5
            operator.scale(after, 1 / self.beta)
            self.alphas.append(alpha)
            self.betas.append(self.beta)
            self.before, self.now = self.now, after

    def quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes of all processes, descending, and their weights."""
        diagonals = self.operator.stacked(self.alphas)
        beside = self.operator.stacked(self.betas)[:-1]
        nodes, weights = [], []
        for alpha, beta in zip(diagonals.T, beside.T, strict=True):
            # Weights of a Gauss quadrature are squared first components.
            values, vectors = eigh_tridiagonal(alpha, beta)
            nodes.append(values)
            weights.append(vectors[0] ** 2)
        all_nodes = np.concatenate(nodes)
        all_weights = np.concatenate(weights)
        order = np.argsort(-all_nodes)
        return all_nodes[order], all_weights[order]


# A Chebyshev filter: its interval, its degree, the error that it leaves.
#
# Gains are natural logarithms of how much a polynomial amplifies one vector over another; errors
# are those of the last wanted vector, relative to its length.


@dataclass(frozen=True)
class FilterPlan:
    """The interval that a filter damps, and the last eigenvalue that it has to lift."""

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

    def target(self, tolerance: float) -> float:
        """Return the residual that is asked of the last wanted pair."""
        return float(required(np.array(self.last), tolerance))

    def faithful_gain(self, *, wide: bool) -> float:
        """Return the gain of the first vector over the last that mixtures stand."""
        # More than that drowns the last vector in rounding errors. Blocks that are wide are taken
        # apart rarely, and risk more.
        return 7.5 if wide else 6.5

    def degree(self, error: float, target: float, limit: float, *, aim: float) -> int:
        """Return the degree that takes an error to its target times `aim`.

        The first vector gains no more than `limit` over the last.
        """
        needed = self.remaining(error, aim * target)
        most = quotient(limit, self.first_gain - self.gain)
        degree = int(np.ceil(min(needed, most)))
        return max(2, degree)

    def remaining(self, error: float, target: float) -> float:
        """Return the degree, a real number, that takes an error to its target."""
        ratio = max(error / target, 1.0)
        return np.log(ratio) / self.gain

    def error_after(self, error: float, degree: int, *, rounding: float) -> float:
        """Return the error of the last wanted vector after a polynomial.

        Rounding errors of the first vector, which grows fastest, count too.
        """
        damped = error * np.exp(-degree * self.gain)
        ahead = self.first_gain - self.gain
        return damped + rounding * degree * np.exp(degree * ahead)

    def is_faithful(self, error: float, target: float, *, wide: bool) -> bool:
        """Return whether orthonormal vectors can reach the target in one polynomial.

        A wide block may need several: only rounding counts there.
        """
        limit = self.faithful_gain(wide=wide)
        degree = self.degree(error, target, limit, aim=AIM)
        begin = 0.0 if wide else error
        after = self.error_after(begin, degree, rounding=ORTHONORMAL_ROUNDING)
        return after < 2 * target

    def knows_last(self, last: float, error: float) -> bool:
        """Return whether a Ritz value with this error tells more than the density."""
        return error < 0.3 * (last - self.cut)

    def settled(self, last: float, safe: float) -> "FilterPlan":
        """Return the plan for a last eigenvalue that is known well.

        Ritz values lie below the eigenvalues, so `safe`, that of the last vector which surely
        belongs to the block, can only raise the cut.
        """
        cut = min(max(self.cut, safe), last - NEAREST_TO_CUT)
        return replace(self, cut=cut, last=last)

    def lowered(self, last: float, safe: float) -> "FilterPlan":
        """Return the plan after a cut that was too high for anything to converge."""
        cut = max(min(self.cut, safe), self.bottom + NARROWEST_INTERVAL)
        last = max(last, cut + 1e-3)
        return replace(self, cut=cut, last=last)

    def start_error(self, n_known: int) -> float:
        """Return the error of vectors that are known on `n_known` samples.

        What is left of them lies near the cut, and is the sampling error.
        """
        # With 12,500 of 100,000 samples and 37,500 of 300,000 residuals came out at half of those
        # asked for.
        return 6 * (1 - self.cut) / np.sqrt(n_known)

    def rough(self) -> "list[FilterPlan]":
        """Return the plans that damp what is rough, the roughest first."""
        # What lies farther from 1 than the cut by these factors.
        cuts = [1 - far * (1 - self.cut) for far in (100.0, 10.0)]
        return [replace(self, cut=cut) for cut in cuts if cut >= self.bottom + 0.1]


def block_width(n: int, n_pairs: int, *, wide: int = 0) -> int:
    """Return the number of vectors that are filtered: those wanted and spare ones.

    `wide` is that of an `Operator`.
    """
    # While blocks are narrow, more spare vectors cost little and save degrees.
    spare = min(int(0.8 * n_pairs), max(80, int(0.4 * n_pairs)))
    # Where wide blocks cost hardly more, the cut lies twice as far from 1 as the last wanted
    # eigenvalue, its farthest with a start.
    spare = max(spare, min(int(1.24 * n_pairs), wide - n_pairs))
    return min(n, n_pairs + max(16, spare))


def safe_count(n_pairs: int, width: int) -> float:
    """Return how many eigenvalues may lie above the cut.

    As many as the block surely holds, given the standard error of the density.
    """
    surely = width - 2.5 * np.sqrt(2 * width / PROBES)
    # Never so few that the cut comes near the last wanted eigenvalue.
    return max(surely, (n_pairs + width) / 2)


def first_plan(
    operator: Operator, n_pairs: int, width: int, *, start: Start | None, rng: Generator
) -> FilterPlan:
    """Return the plan from the spectrum's density, or from the start's eigenvalues."""
    safe = safe_count(n_pairs, width)
    if start is None:
        values, counts = spectral_density(operator, safe, rng=rng)
        last, cut = np.interp([n_pairs, safe], counts, values)
    else:
        # Only the bottom of the spectrum is to be known: any probe shows it.
        values, _ = spectral_density(operator, np.inf, probes=4, steps=20, rng=rng)
        useful = (start.n_accurate + len(start.values)) // 2
        safe = max(safe, min(width, useful))
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


def chebyshev_filter(operator: Operator, block: Any, plan: FilterPlan, degree: int) -> Any:
    """Apply a Chebyshev polynomial of the matrix to a block, which is overwritten.

    The polynomial is at most 1 on [bottom, cut] and grows fast above. The recurrence is scaled to
    the value 1 at the eigenvalue 1, which keeps single precision in range.
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
