"""Tests that need places and samples only: the same for every method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.errors import warn_caller
from manifactor._support.threads import map_threads
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.gradients.peeling import Misfit, Peeled, Peeling
from manifactor.factoring.gradients.purity import product_share
from manifactor.factoring.judging.criteria import EvidenceSettings, Test, judges
from manifactor.factoring.judging.evidence import Evidence, SampleWarning
from manifactor.factoring.measures import functions
from manifactor.factoring.measures.density import (
    Evenness,
    EvennessSettings,
    clusters,
    clusters_in_words,
    clusters_of_function,
    evenness,
    gaussian_factors,
)
from manifactor.factoring.measures.dependence import (
    MeasureSettings,
    PlaceTestSettings,
    dependence,
    explained,
    leakage,
    least_explained_part,
)
from manifactor.factoring.measures.metric import crossing, metric_halves, modulation_in_data, skew
from manifactor.factoring.measures.placed_samples import (
    Measurement,
    PlacedSamples,
    along_line,
    place_samples,
    poles,
)
from manifactor.factoring.measures.places import filling, folds
from manifactor.factoring.sums.summands import Sum
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.factoring.triplets.search import Grouping
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.neighbors import chosen
from manifactor.spectral.spectrum import Spectrum

OF_EVERY_LENGTH = ("folds", "filling", "skew", "crossing", "modulation in data")
# What must hold in each sense of a product. Lengths may change with the density in "volume", but
# never vanish; functions that add up need not be orthogonal everywhere in "sum".
TESTS_OF_SENSES: dict[str, tuple[str, ...]] = {
    "geometry": (*OF_EVERY_LENGTH, "identified"),
    "density": (*OF_EVERY_LENGTH, "identified"),
    "volume": ("folds", "filling", "skew", "crossing", "poles", "identified"),
    "sum": ("folds", "filling", "skew", "modulation in data", "identified"),
}


def judge_places(
    factors: Sequence[Factor],
    samples: np.ndarray,
    *,
    inliers: np.ndarray | None = None,
    sense: str = "geometry",
    settings: EvidenceSettings = EvidenceSettings(),
    testing: PlaceTestSettings = PlaceTestSettings(),
) -> tuple[Test, ...]:
    """Return the tests of places on several factors, for one sense of a product.

    Shapes: samples (n, p), inliers (n,).
    """
    placed = place_samples(
        [factor.embedding for factor in factors],
        [factor.dimension for factor in factors],
        samples,
        inliers=inliers,
        settings=testing.placed,
    )
    names = TESTS_OF_SENSES[sense]
    measures = _measures(placed, samples, testing)
    others = [name for name in names if name in measures]
    metric, *rest = map_threads(
        lambda measure: measure(),
        [partial(_of_metric, placed, testing), *(measures[name] for name in others)],
    )
    found = {**metric, **dict(zip(others, rest, strict=True))}
    judge = judges(settings)
    # Limits follow the number of all samples, which places are made from.
    return tuple(
        judge[name](found[name].value, found[name].noise, n_samples=len(samples)) for name in names
    )


def judge_places_of(
    diffusion: Diffusion,
    factors: Sequence[Factor],
    *,
    sense: str,
    settings: EvidenceSettings = EvidenceSettings(),
    testing: PlaceTestSettings = PlaceTestSettings(),
) -> tuple[Test, ...]:
    """Return `judge_places` of a diffusion's samples; () if only distances are known.

    Outliers are left out.
    """
    if diffusion.points is None:
        return ()
    return judge_places(
        factors,
        diffusion.points,
        inliers=~diffusion.graph.outliers,
        sense=sense,
        settings=settings,
        testing=testing,
    )


def _measures(
    placed: PlacedSamples, samples: np.ndarray, testing: PlaceTestSettings
) -> dict[str, Callable[[], Measurement]]:
    """Functions that measure all but the metric, by the name of the test."""
    return {
        "folds": partial(folds, placed, settings=testing.folds),
        "filling": partial(filling, placed, settings=testing.filling),
        "poles": partial(poles, placed.places, placed.samples, settings=testing.poles),
        "identified": partial(gaussian_factors, placed, samples, settings=testing.gaussian),
    }


def _of_metric(placed: PlacedSamples, testing: PlaceTestSettings) -> dict[str, Measurement]:
    """What the metric in two halves of the samples shows, by the name of the test."""
    halves = metric_halves(placed)
    measures = {"skew": skew, "crossing": crossing, "modulation in data": modulation_in_data}
    return {name: measure(halves, settings=testing.metric) for name, measure in measures.items()}


def clusters_of_factors(
    factors: Sequence[Factor], *, settings: EvennessSettings = EvennessSettings()
) -> str:
    """Return a phrase on factors along which samples fall into clusters, or "".

    >>> clusters_of_factors([])
    ''
    """
    phrases = []
    for number, factor in enumerate(factors, start=1):
        shares = _clusters_of(factor, settings)
        if len(shares) > 1:
            phrases.append(f"{clusters_in_words(shares)}, along factor {number}")
    return f"the samples fall into {'; '.join(phrases)}" if phrases else ""


def _clusters_of(factor: Factor, settings: EvennessSettings) -> tuple[float, ...]:
    if factor.coordinate is None:
        return clusters_of_function(factor.functions[:, 0], settings=settings)
    closed = factor.topology == "circle"
    return clusters(factor.coordinate, closed=closed, settings=settings)


# Evidence on one factor: why no other was found.


def weigh_one(
    peeled: Peeled,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
) -> Evidence:
    """Return the evidence on one factor that was found by peeling, and why only one.

    Too few samples, too noisy, in clusters, uneven, irreducible, or a spectrum that is too short:
    the tests are taken in this order up to the first that fails.
    """
    peeling, dimensions = peeled.peeling, peeled.dimensions
    look, split = peeling.looks[0], peeling.splits[0]
    n, noise = len(look.part), noise_of(split)
    judge = judges(settings)
    # Functions whose q is 1 or more are structureless, whatever its noise.
    might_divide = bool((split.q < 1).any())
    shares = _clusters(peeling, measuring.evenness)
    tests = [
        judge["samples"](n),
        judge["uncertainty"](noise if might_divide else 0.0, samples=n),
        judge["clusters"](len(shares), sizes=_sizes(shares)),
    ]
    even = density_of(peeled.diffusion, settings=measuring.evenness)
    if even is not None:
        tests.append(judge["evenness"](even.spread, ratio=even.ratio))
    if peeling.refused is not None:
        share = peeling.refused.product_share
        tests.append(judge["further product"](share))
    lacking = dimensions.data - dimensions.found if dimensions.missing else 0.0
    n_functions = len(look.geometry.eigenvalues)
    tests.append(judge["missing dimensions"](lacking, functions=n_functions))
    tests.append(judge["blocks"](len(look.blocks)))
    _warn_if_unsure(tests, n, even, settings)
    return Evidence(_up_to_first_failure(tests), null=noise, settings=settings)


def weigh_line(
    diffusion: Diffusion,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
) -> Evidence | None:
    """Return the evidence on samples on a straight line; None if they are on none."""
    if diffusion.points is None:
        return None
    along = along_line(diffusion.points, diffusion.graph.distinct)
    if along is None:
        return None
    shares = clusters(along, settings=measuring.evenness)
    gaps = f", and fall into {_sizes(shares)}" if len(shares) > 1 else ""
    return Evidence((judges(settings)["directions"](1, gaps=gaps),), settings=settings)


def noise_of(split: Split) -> float:
    """Return the largest noise of the q that a batch of functions was divided by."""
    return float(split.noise.max(initial=0))


def density_of(
    diffusion: Diffusion, *, settings: EvennessSettings = EvennessSettings()
) -> Evenness | None:
    """Return how even the samples are; None where only distances are known."""
    if diffusion.points is None:
        return None
    samples = chosen(diffusion.points, diffusion.graph.distinct)
    return evenness(np.asarray(samples), diffusion.dimension, settings=settings)


def _clusters(peeling: Peeling, settings: EvennessSettings) -> tuple[float, ...]:
    """Shares of the samples in each cluster, along the function that shows most."""
    functions = peeling.looks[0].geometry.spectrum.functions
    lowest = functions[:, 1 : 1 + settings.functions]
    found = [clusters_of_function(f, settings=settings) for f in lowest.T]
    return max(found, key=len)


def _sizes(shares: tuple[float, ...]) -> str:
    return clusters_in_words(shares) if len(shares) > 1 else ""


def _up_to_first_failure(tests: Sequence[Test]) -> tuple[Test, ...]:
    """Tests up to the first that fails: those after it rest on what it denies."""
    failed = [i for i, test in enumerate(tests) if not test.passed]
    return tuple(tests[: failed[0] + 1])


def _warn_if_unsure(
    tests: Sequence[Test], n_samples: int, even: Evenness | None, settings: EvidenceSettings
) -> None:
    """Warn if the first test, of the number of samples, or the second, of q, fails."""
    enough, certain = tests[:2]
    if not enough.passed:
        warn_of_few_samples(
            # A number to try, well above the least one.
            5 * settings.samples,
            f"{n_samples} distinct samples show little of any manifold",
            even,
            settings=settings,
        )
    elif not certain.passed:
        warn_of_few_samples(
            # Noise falls inversely with the number of samples; aim at half the limit.
            int(n_samples * certain.value / (settings.uncertainty / 2)),
            f"the number of factors is uncertain by {certain.value:.2f} of the range "
            "it is read from",
            even,
            settings=settings,
        )


def warn_of_few_samples(
    enough: int, what: str, even: Evenness | None, *, settings: EvidenceSettings
) -> None:
    """Warn of few or noisy samples, with the number that would help.

    The noise of even samples falls with their number. Uneven samples have tails, where functions
    are peaks on single samples; more samples only show more of the tails.
    """
    remedy = f"About {enough} samples would help."
    if even is not None and even.spread > settings.evenness:
        remedy = (
            f"Their density varies {even.ratio:.2g}-fold, so that more samples of the "
            "same kind may not help."
        )
    warn_caller(
        f"The samples are too few or too noisy for a sure verdict: {what}. {remedy}", SampleWarning
    )


# The evidence on several factors: measures are taken, and judged by the criteria.


def weigh(
    peeled: Peeled,
    factors: Sequence[Factor],
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
    sense: str = "geometry",
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence on several factors that were found by peeling."""
    diffusion, peeling = peeled.diffusion, peeled.peeling
    work = {
        **_of_functions(peeled, factors, measuring),
        **_of_places(diffusion, factors, settings, measuring, rng),
        "places": partial(
            judge_places_of,
            diffusion,
            factors,
            sense=sense,
            settings=settings,
            testing=measuring.places,
        ),
    }
    # One thread for each; only one of them uses `rng`, so that the result does not depend on their
    # order.
    values = map_threads(lambda measure: measure(), list(work.values()))
    found = dict(zip(work, values, strict=True))
    of_factors = sum(factor.dimension for factor in factors)
    misfit = peeled.dimensions.misfit(of_factors, settings.dimensions)
    evidence = Evidence(
        (*_judge(found, misfit, settings), *found["places"]),
        leakage=found["leakage"],
        null=max((noise_of(split) for split in peeling.splits), default=0.0),
        dependence=found["dependence"],
        details=clusters_of_factors(factors, settings=measuring.evenness),
        settings=settings,
        sense=sense,
    )
    if evidence.agreement < settings.agreement:
        _warn_of_halves(peeled, settings, measuring)
    return evidence


def _warn_of_halves(peeled: Peeled, settings: EvidenceSettings, measuring: MeasureSettings) -> None:
    """Warn that neither half of the samples shows the same factors as all of them."""
    n = len(peeled.peeling.looks[0].part)
    warn_of_few_samples(
        # The halves of twice as many samples are as large as all of these.
        2 * n,
        f"of {n} samples neither half shows the same factors",
        density_of(peeled.diffusion, settings=measuring.evenness),
        settings=settings,
    )


def _of_functions(
    peeled: Peeled, factors: Sequence[Factor], measuring: MeasureSettings
) -> dict[str, Callable[[], Any]]:
    """Functions that measure the factors' functions, by the names of the tests."""
    spectrum, peeling = peeled.diffusion.spectrum, peeled.peeling
    full, *halves = peeling.looks
    return {
        "product": partial(product_share, full.geometry, full.blocks),
        "completeness": partial(functions.completeness, spectrum, factors, settings=measuring),
        "twist": partial(functions.twist, peeling.looks),
        "modulation": partial(functions.modulation, factors, spectrum, settings=measuring),
        "undivided": partial(functions.undivided, peeling.splits),
        "agreement": partial(functions.best_agreement, full, halves, settings=measuring),
    }


def _of_places(
    diffusion: Diffusion,
    factors: Sequence[Factor],
    settings: EvidenceSettings,
    measuring: MeasureSettings,
    rng: np.random.Generator,
) -> dict[str, Callable[[], Any]]:
    """Functions that measure what places tell of samples and of each other, by name."""
    inliers = ~diffusion.graph.outliers
    lowest = diffusion.spectrum.functions[:, 1 : 1 + settings.lowest_functions]
    directions = partial(explained, factors, inliers=inliers, settings=measuring)
    return {
        "explained": partial(directions, diffusion.points),
        "lowest functions": partial(directions, lowest),
        "parts": partial(
            least_explained_part, factors, diffusion.points, inliers, settings=measuring
        ),
        "leakage": partial(leakage, factors, settings=measuring),
        "dependence": partial(dependence, factors, by_ranks=False, settings=measuring, rng=rng),
    }


def _judge(found: dict[str, Any], misfit: Misfit, settings: EvidenceSettings) -> tuple[Test, ...]:
    """Tests of measured numbers; all of them, also after the first that fails."""
    judge = judges(settings)
    return (
        judge["product"](found["product"]),
        judge["completeness"](found["completeness"]),
        _judged(judge["twist"], found["twist"]),
        judge["modulation"](found["modulation"]),
        _judged(judge["undivided"], found["undivided"]),
        judge["explained"](found["explained"]),
        judge["lowest functions"](found["lowest functions"]),
        judge["parts"](found["parts"]),
        judge["leakage"](np.nanmax(found["leakage"])),
        judge["agreement"](found["agreement"]),
        judge["dimensions"](misfit.dimensions, difference=misfit.difference),
    )


def weigh_sum(
    found: Sum,
    factors: Sequence[Factor],
    *,
    agreed: float,
    of_places: Sequence[Test],
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence on factors whose functions add up to the samples.

    A parallelogram and a cone are sums, too, exactly or nearly: only the tests of places tell them
    from products.
    """
    judge = judges(settings)
    if len(factors) == 1:
        return Evidence((judge["terms"](1),), settings=settings)
    leaks = leakage(factors, settings=measuring)
    p = dependence(factors, settings=measuring, rng=rng)
    tests = (
        judge["sum"](1 - found.left),
        judge["own share"](found.own_share),
        judge["structured rest"](found.structured_rest),
        judge["axes"](np.sin(found.axes_error) ** 2),
        judge["agreement"](agreed),
        judge["leakage"](np.nanmax(leaks)),
        judge["independence"](p),
        *of_places,
    )
    return Evidence(tests, leakage=leaks, dependence=p, settings=settings)


def weigh_groups(
    spectrum: Spectrum,
    factors: Sequence[Factor],
    grouping: Grouping,
    *,
    n_asked: int | None,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
) -> Evidence:
    """Return the evidence on factors that were found by triplets."""
    judge = judges(settings)
    found, asked = len(factors), n_asked or len(factors)
    complete = functions.completeness(spectrum, factors, settings=measuring)
    leaks = leakage(factors, settings=measuring)
    tests = (
        judge["connected"](grouping.n_pieces),
        judge["groups"](found / asked, found=found, asked=asked),
        judge["completeness"](complete),
        judge["leakage"](np.nanmax(leaks)),
    )
    assert grouping.cut is not None
    details = f"the cut that made the groups is {_quality(grouping.cut)}"
    return Evidence(tests, leakage=leaks, details=details, settings=settings)


def _quality(cut: Cut) -> str:
    """How far a cut may lie below the best one, in words."""
    if cut.gap < 1e-6:  # rounding of the bound
        return "the best there is"
    return f"at most {cut.gap:.1%} below the best"


def weigh_no_groups(
    grouping: Grouping, *, settings: EvidenceSettings = EvidenceSettings()
) -> Evidence:
    """Return the evidence where no triplet separates functions."""
    test = judges(settings)["triplets"](0, why=grouping.why_none)
    return Evidence((test,), settings=settings)


def weigh_asked(*, settings: EvidenceSettings = EvidenceSettings()) -> Evidence:
    """Return the evidence where the caller asked for one factor."""
    return Evidence((judges(settings)["factors asked for"](1),), settings=settings)


def weigh_noise(
    evidence: Evidence, shares: Sequence[float], *, settings: EvidenceSettings = EvidenceSettings()
) -> Evidence:
    """Return the evidence with a test of what noise of known size leaves."""
    if evidence.verdict == "none":
        return evidence
    # Noise may move places by more than they spread.
    worst = int(np.argmin(shares))
    share = max(0.0, float(shares[worst]))
    test = judges(settings)["reliability"](share, noise_share=1 - share, factor=worst + 1)
    return evidence.with_test(test)


def _judged(judge: Callable[..., Test], measured: Measurement) -> Test:
    return judge(measured.value, measured.noise)


# The evidence on a sum some of whose terms have several factors.


def weigh_terms(of_sum: Evidence, inside: Mapping[int, Evidence]) -> Evidence:
    """Return the evidence on all factors of a sum with divided terms.

    A test that fails anywhere makes the verdict "partial".

    >>> between = np.array([[np.nan, 0.1], [0.2, np.nan]])
    >>> inner = Evidence((), leakage=np.array([[np.nan, 0.3], [0.4, np.nan]]))
    >>> found = weigh_terms(Evidence((), leakage=between), {0: inner})
    >>> found.terms
    ((1, 2), (3,))
    >>> found.leakage
    array([[nan, 0.3, 0.1],
           [0.4, nan, 0.1],
           [0.2, 0.2, nan]])
    """
    sizes = [inside[term].n_factors if term in inside else 1 for term in range(of_sum.n_factors)]
    tests = [test.of_term(term + 1) for term, each in inside.items() for test in each.tests]
    both = [of_sum, *inside.values()]
    return replace(
        of_sum,
        tests=(*of_sum.tests, *tests),
        leakage=_leakage(of_sum.leakage, sizes, inside),
        # Numbers that were not measured are nan, and do not count.
        null=float(np.fmax.reduce([each.null for each in both])),
        dependence=float(np.fmin.reduce([each.dependence for each in both])),
        terms=_numbers(sizes),
    )


def _numbers(sizes: list[int]) -> tuple[tuple[int, ...], ...]:
    """Numbers of the factors of each term, from 1."""
    ends = np.cumsum(sizes).tolist()
    return tuple(
        tuple(range(end - size + 1, end + 1)) for size, end in zip(sizes, ends, strict=True)
    )


def _leakage(between: np.ndarray, sizes: list[int], inside: Mapping[int, Evidence]) -> np.ndarray:
    """Leakage between all factors: that between terms, and inside each term."""
    leakage = np.repeat(np.repeat(between, sizes, axis=0), sizes, axis=1)
    ends = np.cumsum(sizes)
    for term, each in inside.items():
        own = slice(ends[term] - sizes[term], ends[term])
        leakage[own, own] = each.leakage
    return leakage
