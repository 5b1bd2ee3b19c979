"""Peeling in sample space: samples as a sum of functions of independent factors."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from manifactor.factoring.prediction import has_edge, predictability, thinned, whitened
from manifactor.factoring.shapes import on_circle
from manifactor.factoring.sums.fitting import CURVE_LEAVES, Fitted, Fitter, rest_of, share_left
from manifactor.factoring.sums.independence import (
    MAX_CUMULANT,
    MOST_COMPONENTS,
    axes_errors,
    dependence,
    independent_parts,
    is_gaussian,
    main_directions,
    principal_coordinates,
)
from manifactor.factoring.sums.summands import Sum, Summand


def peel_samples(
    samples: np.ndarray, *, max_factors: int, n_neighbors: int, rng: np.random.Generator
) -> Sum:
    """Return samples as a sum of one function of each of several factors.

    Shapes: samples (n_samples, n_features).
    """
    # The sum is fitted to at most 3,000 samples; the others are placed on it.
    if len(samples) > 3000:
        samples = samples[np.sort(rng.choice(len(samples), 3000, replace=False))]
    directions = main_directions(samples, rng=rng)
    shown = directions(samples)
    factors = _curves_or_surfaces(shown, max_factors, Fitter(n_neighbors, False, rng))
    order = sorted(factors, key=lambda factor: -factor.variance)
    return Sum(
        directions=directions,
        summands=tuple(_summand(shown, factor) for factor in order),
        left=share_left(shown, order),
        noise_left=is_noise(rest_of(shown, order)),
        axes_error=axes_error(order),
    )


def _curves_or_surfaces(samples: np.ndarray, max_factors: int, fitter: Fitter) -> list[Fitted]:
    """Factors of samples: curves, or also surfaces where curves do not add up.

    Curves do not add up where they leave too much, depend on each other, or are tangled. A curve
    that fills a surface explains it as well, but only after many fits, not as it was first read.
    """
    first = _first_factors(samples, max_factors, fitter)
    curves = peel(samples, first, max_factors, fitter)
    enough = 1 - CURVE_LEAVES
    add_up = _add_up(samples, curves)
    tangled = any(curve.sheet.tangled() for curve in curves)
    if add_up and not tangled and min(factor.shown for factor in first) > enough:
        return curves
    fill = add_up and min(fitter.shown_anew(samples, curves)) < enough
    # More curves than parts may be a surface that was taken for several curves.
    if add_up and not tangled and not fill and len(curves) <= len(first):
        return curves
    fitter = replace(fitter, surfaces=True)
    first = _first_factors(samples, max_factors, fitter)
    if not tangled and all(factor.sheet.topology != "other" for factor in first):
        return curves
    surfaces = peel(samples, first, max_factors, fitter)
    if tangled or fill or not add_up:
        return surfaces
    less = share_left(samples, surfaces) < share_left(samples, curves)
    return surfaces if less and len(surfaces) < len(curves) else curves


def peel(
    samples: np.ndarray, factors: list[Fitted], max_factors: int, fitter: Fitter
) -> list[Fitted]:
    """Return the factors of samples, (n, q), given the first of them.

    The strongest independent part of what the factors leave is a further one, until noise is left,
    or something that no further factor explains.
    """
    factors = _pruned(samples, fitter.polish(samples, factors), fitter)
    left = share_left(samples, factors)
    while len(factors) < max_factors:
        rest = rest_of(samples, factors)
        # So small a rest is the bending of sheets between their nodes.
        if left < 1e-4 or is_noise(rest):
            break
        # One factor is a surface; adding curves would not help, so surfaces are tried next.
        if not fitter.surfaces and any(factor.is_no_curve for factor in factors):
            break
        part = _parts(rest)[0]
        new = fitter.fit(part, fitter.read(part))
        trial = fitter.polish(samples, [*factors, new])
        less = share_left(samples, trial)
        # A further factor must explain half of what is left.
        if less > 0.5 * left:
            break
        factors, left = trial, less
    return factors


def _first_factors(samples: np.ndarray, max_factors: int, fitter: Fitter) -> list[Fitted]:
    """The factors of the independent parts of samples, one of each."""
    return [_first_reading(part, fitter) for part in _parts(samples)[:max_factors]]


def _first_reading(part: np.ndarray, fitter: Fitter) -> Fitted:
    """The factor of an independent part of samples, (n, q).

    A part in up to three directions is a curve or a surface: independent curves that add up in
    three directions would be parts of their own, unless the samples have more directions than were
    looked at.
    """
    _, axes = principal_coordinates(part)
    if len(axes) <= 3 and part.shape[1] <= MOST_COMPONENTS:
        fitter = replace(fitter, surfaces=True)
    return fitter.fit(part, fitter.read(part))


def _pruned(samples: np.ndarray, factors: list[Fitted], fitter: Fitter) -> list[Fitted]:
    """Factors without those that depend on a stronger one.

    Components of one factor may be taken for parts of their own by chance.
    """
    kept: list[Fitted] = []
    for factor in sorted(factors, key=lambda factor: -factor.variance):
        if cumulant_between([*kept, factor]) < MAX_CUMULANT:
            kept.append(factor)
    return factors if len(kept) == len(factors) else fitter.polish(samples, kept)


def _parts(rest: np.ndarray) -> list[np.ndarray]:
    """Independent parts of a rest, (n, q) each, without those that are noise."""
    turned, axes = principal_coordinates(rest - rest.mean(axis=0))
    parts = independent_parts(turned)
    structured = [part.variance for part in parts if not part.gaussian]
    # A Gaussian part is not noise if it is wider than a quarter of the weakest other part.
    least = min(structured, default=0.0) / 16
    # Gaussians of equal variance beside anything else are noise.
    return [
        part(turned) @ axes
        for part in parts
        if not part.gaussian or not structured or (part.n_components == 1 and part.variance > least)
    ]


def is_noise(rest: np.ndarray) -> bool:
    """Return whether no main direction of a rest, (n, q), has an edge or a hole.

    The regression leaves noise of its own in many thin directions, which do not count.
    """
    return not has_edge(rest, thick=0.04, most_directions=6)


def _add_up(samples: np.ndarray, factors: Sequence[Fitted]) -> bool:
    """Whether factors explain samples and are independent of each other."""
    rest = rest_of(samples, factors)
    weakest = min(factor.variance for factor in factors)
    # Any disk is a sum of two circles, with a squared cosine of .5.
    if rest.var(axis=0).sum() > 0.3 * weakest or crossing(factors) > 0.3:
        return False
    return cumulant_between(factors) < MAX_CUMULANT


def crossing(factors: Sequence[Fitted]) -> float:
    """Return the largest mean squared cosine between the directions of two factors."""
    pairs = combinations([factor.at.tangents for factor in factors], 2)
    cosines = [np.linalg.norm(a @ b.transpose(0, 2, 1), ord=2, axis=(1, 2)) for a, b in pairs]
    return max((float((c**2).mean()) for c in cosines), default=0.0)


def cumulant_between(factors: Sequence[Fitted]) -> float:
    """Return the largest cumulant between places on different factors.

    Places are made even first: on an uneven circle cumulants have large errors.
    """
    white = [whitened(_even(factor))[0] for factor in factors]
    label = np.repeat(np.arange(len(white)), [block.shape[1] for block in white])
    across = label[:, None] != label
    return float(dependence(np.hstack(white))[across].max(initial=0.0))


def _even(factor: Fitted) -> np.ndarray:
    """Places as ranks: even on an interval, around a circle, in each coordinate."""
    places = factor.at.places
    if factor.sheet.topology == "circle":
        return on_circle(2 * np.pi * _ranks(np.arctan2(places[:, 1], places[:, 0])))
    return np.column_stack([_ranks(column) for column in places.T])


def _ranks(values: np.ndarray) -> np.ndarray:
    return values.argsort().argsort() / len(values)


def axes_error(factors: Sequence[Fitted]) -> float:
    """Return the largest standard error of the axes of Gaussian factors, in radians.

    0 where fewer than two factors are Gaussian.
    """
    variances = [
        factor.variance
        for factor in factors
        if factor.sheet.topology == "interval" and is_gaussian(factor.at.places).all()
    ]
    if len(variances) < 2:
        return 0.0
    return float(axes_errors(np.array(variances), len(factors[0].at.places)).max())


def _summand(samples: np.ndarray, factor: Fitted) -> Summand:
    """A fitted factor without the samples that it was fitted to."""
    start = np.linalg.lstsq(samples, factor.at.means, rcond=None)[0]
    return Summand(factor.sheet, start, factor.variance, factor.sheet.explained)


def agreement(
    found: Sum, samples: np.ndarray, peel: Callable[[np.ndarray], Sum], *, rng: np.random.Generator
) -> float:
    """Return the least R^2 with which half of the samples gives the same places.

    Shapes: samples (n_samples, n_features).
    """
    shown = samples[thinned(len(samples), 1000)]
    best = 0.0
    for rows in np.array_split(rng.permutation(len(samples)), 2):
        best = max(best, _agreed(found, peel(samples[rows]), shown))
        # The other half is not peeled if the first agrees well.
        if best > 0.9:
            break
    return best


def _agreed(first: Sum, second: Sum, samples: np.ndarray) -> float:
    """Least R^2 between the factors of two sums, matched one to one."""
    if len(first.summands) != len(second.summands):
        return 0.0
    ours, theirs = first.explain(samples).places, second.explain(samples).places
    table = np.array(
        [
            [min(predictability(a, b).mean(), predictability(b, a).mean()) for b in theirs]
            for a in ours
        ]
    )
    return float(table[linear_sum_assignment(-table)].min())
