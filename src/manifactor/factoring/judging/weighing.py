"""The evidence on several factors: measures are taken, and judged by the criteria."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.threads import map_threads
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.dimensions import Misfit, Peeled
from manifactor.factoring.gradients.peeling import PeelingSettings
from manifactor.factoring.gradients.products import product_share
from manifactor.factoring.judging.criteria import judges
from manifactor.factoring.judging.criterion import Test
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.judging.limits import EvidenceSettings
from manifactor.factoring.judging.one_factor import density_of, noise_of, warn_of_few_samples
from manifactor.factoring.judging.places import clusters_of_factors, judge_places_of
from manifactor.factoring.measures import functions
from manifactor.factoring.measures.dependence import dependence, leakage
from manifactor.factoring.measures.explained import explained, least_explained_part
from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.measures.settings import MeasureSettings
from manifactor.factoring.sums.summands import Sum
from manifactor.factoring.triplets.grouping import Grouping
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.spectrum import Spectrum


def weigh(
    peeled: Peeled,
    factors: Sequence[Factor],
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
    peeled_with: PeelingSettings = PeelingSettings(),
    sense: str = "geometry",
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence on several factors that were found by peeling."""
    diffusion, peeling = peeled.diffusion, peeled.peeling
    work = {
        **_of_functions(peeled, factors, measuring, peeled_with),
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
    peeled: Peeled,
    factors: Sequence[Factor],
    measuring: MeasureSettings,
    peeled_with: PeelingSettings,
) -> dict[str, Callable[[], Any]]:
    """Functions that measure the factors' functions, by the names of the tests."""
    spectrum, peeling = peeled.diffusion.spectrum, peeled.peeling
    full, *halves = peeling.looks
    return {
        "product": partial(
            product_share, full.geometry, full.blocks, settings=peeled_with.products
        ),
        "completeness": partial(functions.completeness, spectrum, factors, settings=measuring),
        "twist": partial(functions.twist, peeling.looks),
        "modulation": partial(functions.modulation, factors, spectrum, settings=measuring),
        "undivided": partial(functions.undivided, peeling.splits),
        "agreement": partial(
            functions.best_agreement, full, halves, settings=measuring, purity=peeled_with.purity
        ),
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
