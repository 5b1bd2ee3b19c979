"""Whether half of the samples show the same factors of a sum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from manifactor.factoring.factors.shapes import on_circle
from manifactor.factoring.prediction import (
    EdgeSettings,
    PredictionSettings,
    has_edge,
    predictability,
    thinned,
)
from manifactor.factoring.sums.fitting import (
    Fitted,
    Fitter,
    FittingSettings,
    Reading,
    rest_of,
    share_left,
)
from manifactor.factoring.sums.independence import (
    DirectionSettings,
    IndependenceSettings,
    IndependentPart,
    axes_errors,
    dependence,
    independent_parts,
    is_gaussian,
    main_directions,
    principal_coordinates,
)
from manifactor.factoring.sums.summands import Sum, Summand


@dataclass(frozen=True)
class AgreementSettings:
    """Settings of `agreement`."""

    # Samples whose places on the factors of both are compared.
    samples: int = 1000
    # The other half is not peeled if the first agrees better than this.
    enough: float = 0.9
    prediction: PredictionSettings = field(default_factory=PredictionSettings)


def agreement(
    found: Sum,
    samples: np.ndarray,
    peel: Callable[[np.ndarray], Sum],
    *,
    settings: AgreementSettings = AgreementSettings(),
    rng: np.random.Generator,
) -> float:
    """Return the least R^2 with which half of the samples gives the same places.

    Shapes: samples (n_samples, n_features).
    """
    shown = samples[thinned(len(samples), settings.samples)]
    best = 0.0
    for rows in np.array_split(rng.permutation(len(samples)), 2):
        half = peel(samples[rows])
        best = max(best, _agreed(found, half, shown, settings))
        if best > settings.enough:
            break
    return best


def _agreed(first: Sum, second: Sum, samples: np.ndarray, settings: AgreementSettings) -> float:
    """Least R^2 between the factors of two sums, matched one to one."""
    if len(first.summands) != len(second.summands):
        return 0.0
    ours, theirs = first.explain(samples).places, second.explain(samples).places
    table = np.array([[_alike(a, b, settings) for b in theirs] for a in ours])
    return float(table[linear_sum_assignment(-table)].min())


def _alike(a: np.ndarray, b: np.ndarray, settings: AgreementSettings) -> float:
    """R^2 with which two arrays of places predict each other, the lesser one."""
    there = predictability(a, b, settings=settings.prediction).mean()
    back = predictability(b, a, settings=settings.prediction).mean()
    return float(min(there, back))


# Peeling in sample space: samples as a sum of functions of independent factors.


@dataclass(frozen=True)
class SumSettings:
    """Settings of `peel_samples`."""

    # Samples that the sum is fitted to, drawn where there are more; the others are placed on it.
    samples: int = 3000
    # Share of what is left that a further factor explains at least.
    own_share: float = 0.5
    # Share of the samples' variance below which what is left is the bending of sheets between their
    # nodes.
    floor: float = 1e-4
    # A Gaussian part is no noise if its variance is larger than this, in units of the weakest part
    # that is not Gaussian: a quarter of its width.
    gaussian_share: float = 1 / 16
    # What an edge or a hole of the rest is. The regression leaves noise of its own in many thin
    # directions, which do not count.
    edges: EdgeSettings = field(default_factory=lambda: EdgeSettings(thick=0.04, most_directions=6))
    # Functions of the samples' own spectrum that are computed beside a sum. It needs none; reports
    # show them.
    n_functions: int = 9
    # Directions of a part up to which it is a curve or a surface, but no sum of curves.
    simple_directions: int = 3
    # What curves may leave, in units of the weakest of them, to be preferred to surfaces.
    curves_leave: float = 0.3
    # Two curves are one surface if the mean squared cosine between the directions in which they
    # move samples is larger: any disk is a sum of two circles, with .5.
    curves_cross: float = 0.3
    directions: DirectionSettings = field(default_factory=DirectionSettings)
    independence: IndependenceSettings = field(default_factory=IndependenceSettings)
    fitting: FittingSettings = field(default_factory=FittingSettings)


def peel_samples(
    samples: np.ndarray,
    *,
    max_factors: int,
    n_neighbors: int,
    settings: SumSettings = SumSettings(),
    rng: np.random.Generator,
) -> Sum:
    """Return samples as a sum of one function of each of several factors.

    Shapes: samples (n_samples, n_features).
    """
    n = len(samples)
    rows = np.arange(n)
    if n > settings.samples:
        rows = np.sort(rng.choice(n, settings.samples, replace=False))
    some = samples[rows]
    directions = main_directions(some, settings=settings.directions, rng=rng)
    shown = directions(some)
    fitter = Fitter(n_neighbors, False, settings.fitting, rng)
    factors = _curves_or_surfaces(shown, max_factors, fitter, settings)
    order = sorted(factors, key=lambda factor: -factor.variance)
    return Sum(
        directions=directions,
        summands=tuple(_summand(shown, factor) for factor in order),
        left=share_left(shown, order),
        noise_left=is_noise(rest_of(shown, order), settings=settings),
        axes_error=axes_error(order, settings=settings),
    )


def _curves_or_surfaces(
    samples: np.ndarray, max_factors: int, fitter: Fitter, settings: SumSettings
) -> list[Fitted]:
    """Factors of samples: curves, or also surfaces where curves do not add up.

    Curves do not where they leave too much, depend on each other, or are tangled. A curve that
    fills a surface explains it as well, but only after many fits, not as it was first read.
    """
    first = _first_factors(samples, max_factors, fitter, settings)
    curves = peel(samples, first, max_factors, fitter, settings=settings)
    enough = 1 - settings.fitting.reading.curve_leaves
    add_up = _add_up(samples, curves, settings)
    tangled = any(fitter.tangled(curve) for curve in curves)
    if add_up and not tangled and min(factor.shown for factor in first) > enough:
        return curves
    fill = add_up and min(fitter.shown_anew(samples, curves)) < enough
    # A surface would be taken for several curves: more than there are parts.
    if add_up and not tangled and not fill and len(curves) <= len(first):
        return curves
    fitter = replace(fitter, surfaces=True)
    first = _first_factors(samples, max_factors, fitter, settings)
    if not tangled and all(factor.sheet.topology != "other" for factor in first):
        return curves
    surfaces = peel(samples, first, max_factors, fitter, settings=settings)
    if tangled or fill or not add_up:
        return surfaces
    less = share_left(samples, surfaces) < share_left(samples, curves)
    return surfaces if less and len(surfaces) < len(curves) else curves


def peel(
    samples: np.ndarray,
    factors: list[Fitted],
    max_factors: int,
    fitter: Fitter,
    *,
    settings: SumSettings = SumSettings(),
) -> list[Fitted]:
    """Return the factors of samples, (n, q), given the first of them.

    The strongest independent part of what the factors leave is a further one, until noise is left,
    or something that no further factor explains.
    """
    factors = _pruned(samples, fitter.polish(samples, factors), fitter, settings)
    left = share_left(samples, factors)
    while len(factors) < max_factors:
        rest = rest_of(samples, factors)
        if left < settings.floor or is_noise(rest, settings=settings):
            break
        # Surfaces come next: no further curve would make a curve of one.
        if not fitter.surfaces and any(map(fitter.is_no_curve, factors)):
            break
        part = _parts(rest, settings)[0]
        new = fitter.fit(part, fitter.read(part))
        trial = fitter.polish(samples, [*factors, new])
        less = share_left(samples, trial)
        if less > (1 - settings.own_share) * left:
            break
        factors, left = trial, less
    return factors


def _first_factors(
    samples: np.ndarray, max_factors: int, fitter: Fitter, settings: SumSettings
) -> list[Fitted]:
    """The factors of the independent parts of samples, one of each."""
    parts = _parts(samples, settings)[:max_factors]
    return [_first_reading(part, fitter, settings) for part in parts]


def _first_reading(part: np.ndarray, fitter: Fitter, settings: SumSettings) -> Fitted:
    """The factor of an independent part of samples, (n, q).

    Independent curves that add up in so few directions would be parts of their own, unless the
    samples have more directions than were looked at.
    """
    independence = settings.independence
    strength = np.linalg.svd(part, compute_uv=False)
    n_directions = (strength > independence.rounding * strength[0]).sum()
    few = n_directions <= settings.simple_directions
    if few and part.shape[1] <= independence.most_directions:
        fitter = replace(fitter, surfaces=True)
    return fitter.fit(part, fitter.read(part))


def _pruned(
    samples: np.ndarray, factors: list[Fitted], fitter: Fitter, settings: SumSettings
) -> list[Fitted]:
    """Factors without those that depend on a stronger one.

    Components of one factor may be taken for parts of their own by chance.
    """
    kept: list[Fitted] = []
    for factor in sorted(factors, key=lambda factor: -factor.variance):
        between = cumulant_between([*kept, factor], settings=settings.independence)
        if between < settings.independence.max_cumulant:
            kept.append(factor)
    return factors if len(kept) == len(factors) else fitter.polish(samples, kept)


def _parts(rest: np.ndarray, settings: SumSettings) -> list[np.ndarray]:
    """Independent parts of a rest, (n, q) each, without those that are noise."""
    turned, axes = principal_coordinates(rest - rest.mean(axis=0), settings=settings.independence)
    parts = independent_parts(turned, settings=settings.independence)
    structured = [part.variance for part in parts if not part.gaussian]
    least = settings.gaussian_share * min(structured, default=0.0)

    def is_factor(part: IndependentPart) -> bool:
        # Gaussians of equal variance beside anything else are noise.
        return (
            not part.gaussian
            or not structured
            or (part.n_components == 1 and part.variance > least)
        )

    return [part(turned) @ axes for part in parts if is_factor(part)]


def is_noise(rest: np.ndarray, *, settings: SumSettings = SumSettings()) -> bool:
    """Return whether no main direction of a rest, (n, q), has an edge or a hole."""
    return not has_edge(rest, settings=settings.edges)


def _add_up(samples: np.ndarray, factors: Sequence[Fitted], settings: SumSettings) -> bool:
    """Whether factors explain samples and are independent of each other."""
    rest = rest_of(samples, factors)
    weakest = min(factor.variance for factor in factors)
    if rest.var(axis=0).sum() > settings.curves_leave * weakest:
        return False
    if crossing(factors) > settings.curves_cross:
        return False
    between = cumulant_between(factors, settings=settings.independence)
    return between < settings.independence.max_cumulant


def crossing(factors: Sequence[Fitted]) -> float:
    """Return the largest mean squared cosine between the directions of two factors."""
    pairs = combinations([factor.at.tangents for factor in factors], 2)
    cosines = [np.linalg.norm(a @ b.transpose(0, 2, 1), ord=2, axis=(1, 2)) for a, b in pairs]
    return max((float((c**2).mean()) for c in cosines), default=0.0)


def cumulant_between(
    factors: Sequence[Fitted], *, settings: IndependenceSettings = IndependenceSettings()
) -> float:
    """Return the largest cumulant between places on different factors.

    Places are made even first: on an uneven circle cumulants have large errors.
    """
    white = [_white(_even(factor.reading)) for factor in factors]
    label = np.repeat(np.arange(len(white)), [block.shape[1] for block in white])
    across = label[:, None] != label
    depends = dependence(np.hstack(white), settings=settings)
    return float(depends[across].max(initial=0.0))


def _even(reading: Reading) -> np.ndarray:
    """Places as ranks: even on an interval, around a circle, in each coordinate."""
    places = reading.places
    if reading.topology == "circle":
        angle = 2 * np.pi * _ranks(np.arctan2(places[:, 1], places[:, 0]))
        return on_circle(angle)
    return np.column_stack([_ranks(column) for column in places.T])


def _ranks(values: np.ndarray) -> np.ndarray:
    return values.argsort().argsort() / len(values)


def _white(places: np.ndarray) -> np.ndarray:
    left = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[0]
    return left * np.sqrt(len(left))


def axes_error(factors: Sequence[Fitted], *, settings: SumSettings = SumSettings()) -> float:
    """Return the largest standard error of the axes of Gaussian factors, in radians.

    0 where fewer than two factors are Gaussian.
    """
    variances = [
        factor.variance
        for factor in factors
        if factor.sheet.topology == "interval"
        and is_gaussian(factor.at.places, settings=settings.independence).all()
    ]
    if len(variances) < 2:
        return 0.0
    n_samples = len(factors[0].at.places)
    errors = axes_errors(np.array(variances), n_samples, settings=settings.independence)
    return float(errors.max())


def _summand(samples: np.ndarray, factor: Fitted) -> Summand:
    """A fitted factor without the samples that it was fitted to."""
    start = np.linalg.lstsq(samples, factor.at.means, rcond=None)[0]
    return Summand(factor.sheet, start, factor.variance, factor.sheet.explained)
