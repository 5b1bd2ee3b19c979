"""The density of a matrix's spectrum, from Lanczos processes of random vectors."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh_tridiagonal

from manifactor._support.values import quotient
from manifactor.spectral.eigenpairs import SINGLE_PRECISION_RESIDUAL, Start, required
from manifactor.spectral.operators import Operator


@dataclass(frozen=True)
class DensitySettings:
    """Settings of `spectral_density`."""

    # Random vectors. The standard error of a count of eigenvalues is about sqrt(2 * count /
    # probes).
    probes: int = 8

    # Lanczos steps with each vector, before the density is looked at for the first time and every
    # further time, and in all.
    steps: int = 40
    most_steps: int = 200

    # Quadrature nodes above the level in question that each probe must have on average; with fewer
    # the density is not resolved there.
    resolved_nodes: int = 6


def spectral_density(
    operator: Operator,
    count: float,
    *,
    rng: Generator,
    settings: DensitySettings = DensitySettings(),
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate how many eigenvalues lie above a level.

    Every random vector's Lanczos process is a Gauss quadrature of the spectrum's density (Lin, Saad
    and Yang, 2016).

    Returns values (n_nodes,), counts (n_nodes,).
    """
    process = _Lanczos.started(operator, settings.probes, rng)
    while True:
        process.advance(settings.steps)
        values, weights = process.quadrature()
        # Half of a node's own weight lies above it.
        above = np.cumsum(weights) - weights / 2
        counts = above * operator.n / settings.probes
        n_nodes = (counts < count).sum()
        resolved = n_nodes >= settings.resolved_nodes * settings.probes
        if resolved or process.n_steps >= settings.most_steps:
            return values, counts


class _Lanczos:
    """Lanczos processes of several vectors, one beside the other.

    Vectors are not orthogonalised again: that multiplies nodes, but leaves the sums of their
    weights, which are all that counts here.
    """

    def __init__(self, operator: Operator, block: Any, norm: Any) -> None:
        self.operator = operator
        self.now, self.before = block, 0 * block
        self.beta = 0 * norm
        self.alphas: list[Any] = []
        self.betas: list[Any] = []

    @classmethod
    def started(cls, operator: Operator, width: int, rng: Generator) -> "_Lanczos":
        """Start from random unit vectors."""
        block = operator.random(width, rng)
        norm = operator.dots(block, block) ** 0.5
        operator.scale(block, 1 / norm)
        return cls(operator, block, norm)

    @property
    def n_steps(self) -> int:
        """Number of steps taken."""
        return len(self.alphas)

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


@dataclass(frozen=True)
class FilterSettings:
    """Settings of `filtered`.

    Gains are natural logarithms of how much a polynomial amplifies one vector over another; errors
    are those of the last wanted vector, relative to its length.
    """

    # Products of the matrix with the block, after which the accurate pairs are returned and the
    # others given up.
    budget: int = 4000

    # Spare vectors beyond those wanted, as a share of them. While blocks are narrow, more of them
    # cost little and save degrees: up to twice the share, or `easy_spare`.
    spare_share: float = 0.4
    fewest_spare: int = 16
    easy_spare: int = 80
    # The same on an operator to which wide blocks cost hardly more: the cut then lies twice as far
    # from 1 as the last wanted eigenvalue, its farthest with a start.
    wide_spare: float = 1.24

    density: DensitySettings = field(default_factory=DensitySettings)

    # The same where only the bottom of the spectrum is to be known.
    bottom: DensitySettings = field(default_factory=lambda: DensitySettings(probes=4, steps=20))

    # Standard errors of the spectrum's density by which the cut lies above the last spare vector:
    # the block surely holds whatever lies above the cut.
    cut_deviations: float = 2.5

    # The probes' lowest node lies inside the spectrum; the filter must be bounded on all of it, so
    # the interval goes on below that node.
    bottom_margin: float = 0.02
    narrowest_interval: float = 0.05

    # Distances that keep a plan defined where eigenvalues coincide: of the last wanted one from 1,
    # from the cut, and from the first cut, which is a rough one.
    nearest_to_one: float = 1e-9
    nearest_to_cut: float = 1e-7
    nearest_to_first_cut: float = 1e-6

    # A random vector is nearly all rough. What lies farther from 1 than the cut by these factors is
    # first damped by this gain, the roughest first, which takes a few degrees only.
    rough_distances: tuple[float, ...] = (100.0, 10.0)
    rough_gain: float = 4.0
    narrowest_rough_interval: float = 0.1

    # How much the first vector may gain over the last in one polynomial. In mixtures of both more
    # than that drowns the last one in rounding errors. Blocks that are wide are taken apart rarely,
    # and risk more.
    mixed_gain: float = 6.5
    wide_gain: float = 7.5
    # The same where vectors were taken apart before, and in double precision.
    separate_gain: float = 5.5
    double_gain: float = 12.0

    # Width of a block, over the entries in a row of the matrix, from which on taking it apart costs
    # more than filtering, and is done at the end only.
    wide_block: float = 4.0

    # Errors to begin with: of random vectors, over the root of their number, and of vectors that
    # are known on some of the samples. What is left of those lies near the cut, and is the sampling
    # error: this over the root of the number of those samples, times the distance of the cut from
    # 1. With 12,500 of 100,000 samples and 37,500 of 300,000 residuals came out at half of those
    # asked for.
    random_error: float = 0.12
    start_error: float = 6.0

    # Samples around each one, on average, at which the vectors of a start are known: so many steps
    # of the walk reach as far. Three or six times as many are no better.
    known_around: float = 8.0

    # Relative error that a degree adds in single precision, to mixtures and to orthonormal vectors.
    mixed_rounding: float = 4e-7
    orthonormal_rounding: float = 1e-8

    # Single precision is used while the error is more than so many times the residual that it
    # reaches, even if the target lies below that.
    double_within: float = 20.0

    # Where a residual below this is asked for, one step of the walk smooths the noise of single
    # precision before pairs are read. Saves products at a tolerance of 3e-6.
    smoothed_below: float = 10 * SINGLE_PRECISION_RESIDUAL

    # Error that a polynomial aims at, over the residual asked for.
    aim: float = 0.15
    # The same after pairs were read, if there was a start: residuals are known then.
    refined_aim: float = 0.5

    # Error, over what is asked for, at which pairs are read: most are accurate then, and few are
    # left to do.
    read_within: float = 16.0

    # Factor by which the worst residual is multiplied to estimate the error after pairs were read.
    error_margin: float = 2.0

    # Number of times that residuals may fail to halve before the iteration ends.
    most_stalls: int = 3

    # Error, over the distance from the cut, below which Ritz values tell more about the spectrum
    # than its density does.
    settled_error: float = 0.3


@dataclass(frozen=True)
class FilterPlan:
    """The interval that a filter damps, and the last eigenvalue that it has to lift."""

    bottom: float  # the damped interval, from the lower end of the spectrum
    cut: float  # the damped interval, from the lower end of the spectrum
    last: float  # the last wanted eigenvalue
    settings: FilterSettings

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
        above = max(value - self.cut, self.settings.nearest_to_cut)
        x = 1 + 2 * above / (self.cut - self.bottom)
        return float(np.arccosh(x))

    def target(self, tolerance: float) -> float:
        """Return the residual that is asked of the last wanted pair."""
        return float(required(np.array(self.last), tolerance))

    def faithful_gain(self, *, wide: bool) -> float:
        """Return the gain of the first vector over the last that mixtures stand."""
        return self.settings.wide_gain if wide else self.settings.mixed_gain

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
        degree = self.degree(error, target, limit, aim=self.settings.aim)
        rounding = self.settings.orthonormal_rounding
        begin = 0.0 if wide else error
        after = self.error_after(begin, degree, rounding=rounding)
        return after < 2 * target

    def knows_last(self, last: float, error: float) -> bool:
        """Return whether a Ritz value with this error tells more than the density."""
        return error < self.settings.settled_error * (last - self.cut)

    def settled(self, last: float, safe: float) -> "FilterPlan":
        """Return the plan for a last eigenvalue that is known well.

        Ritz values lie below the eigenvalues, so `safe`, that of the last vector which surely
        belongs to the block, can only raise the cut.
        """
        cut = min(max(self.cut, safe), last - self.settings.nearest_to_cut)
        return replace(self, cut=cut, last=last)

    def lowered(self, last: float, safe: float) -> "FilterPlan":
        """Return the plan after a cut that was too high for anything to converge."""
        lowest = self.bottom + self.settings.narrowest_interval
        cut = max(min(self.cut, safe), lowest)
        last = max(last, cut + 1e-3)
        return replace(self, cut=cut, last=last)

    def start_error(self, n_known: int) -> float:
        """Return the error of vectors that are known on so many samples."""
        return self.settings.start_error * (1 - self.cut) / np.sqrt(n_known)

    def rough(self) -> "list[FilterPlan]":
        """Return the plans that damp what is rough, the roughest first."""
        cuts = [1 - far * (1 - self.cut) for far in self.settings.rough_distances]
        lowest = self.bottom + self.settings.narrowest_rough_interval
        return [replace(self, cut=cut) for cut in cuts if cut >= lowest]


def block_width(
    n: int, n_pairs: int, *, wide: int = 0, settings: FilterSettings = FilterSettings()
) -> int:
    """Return the number of vectors that are filtered: those wanted and spare ones.

    `wide` is that of an `Operator`.
    """
    usual = int(settings.spare_share * n_pairs)
    most = int(2 * settings.spare_share * n_pairs)
    spare = min(most, max(settings.easy_spare, usual))
    spare = max(spare, min(int(settings.wide_spare * n_pairs), wide - n_pairs))
    return min(n, n_pairs + max(settings.fewest_spare, spare))


def safe_count(n_pairs: int, width: int, settings: FilterSettings) -> float:
    """Return how many eigenvalues may lie above the cut.

    As many as the block surely holds, given the standard error of the density.
    """
    deviation = np.sqrt(2 * width / settings.density.probes)
    surely = width - settings.cut_deviations * deviation
    # Never so few that the cut comes near the last wanted eigenvalue.
    return max(surely, (n_pairs + width) / 2)


def first_plan(
    operator: Operator,
    n_pairs: int,
    width: int,
    *,
    start: Start | None,
    rng: Generator,
    settings: FilterSettings,
) -> FilterPlan:
    """Return the plan from the spectrum's density, or from the start's eigenvalues."""
    safe = safe_count(n_pairs, width, settings)
    density, count = settings.density, safe
    if start is not None:
        # Only the bottom of the spectrum is to be known: any probe shows it.
        density, count = settings.bottom, np.inf
        safe = max(safe, min(width, start.n_useful))
    values, counts = spectral_density(operator, count, rng=rng, settings=density)
    if start is None:
        last, cut = np.interp([n_pairs, safe], counts, values)
    else:
        last = start.values[n_pairs - 1]
        # What lies beyond the wanted eigenvalues is less accurate in a start, so the cut is put as
        # far beyond the last one as `safe` of them lie within.
        within = max(0, 2 * n_pairs - int(safe))
        cut = last**2 / start.values[within]
    lowest_node = float(values[-1])
    bottom = max(-1.0, lowest_node - settings.bottom_margin)
    last = min(float(last), 1 - settings.nearest_to_one)
    lowest = bottom + settings.narrowest_interval
    cut = min(max(float(cut), lowest), last - settings.nearest_to_first_cut)
    return FilterPlan(bottom, cut, last, settings)


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
