"""Measures of a factorization, judged: the evidence that each method gives."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.threads import map_threads
from manifactor.factoring import measures
from manifactor.factoring.blocks import Dimensions, Misfit
from manifactor.factoring.criteria import EvidenceSettings, criteria
from manifactor.factoring.division import Split
from manifactor.factoring.evidence import Evidence, SampleWarning
from manifactor.factoring.factor import Factor
from manifactor.factoring.grouping import Grouping
from manifactor.factoring.judging import Measurement, Test
from manifactor.factoring.maxcut import Cut
from manifactor.factoring.measures import MeasureSettings
from manifactor.factoring.peeling import Peeling, PeelingSettings
from manifactor.factoring.products import product_share
from manifactor.factoring.sums.placing import Sum
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.spectrum import Spectrum

SECOND_OPINION = (
    "for images of independently moving parts, and for factors of very different "
    "sizes, method='sum' gives a second opinion"
)


def weigh(
    diffusion: Diffusion,
    factors: Sequence[Factor],
    peeling: Peeling,
    dimensions: Dimensions,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
    peeled_with: PeelingSettings = PeelingSettings(),
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence on several factors that were found by peeling."""
    found = _measure(diffusion, factors, peeling, settings, measuring, peeled_with, rng)
    misfit = dimensions.misfit(factors, settings.dimensions)
    tests = _judge(found, misfit, settings)
    passed = all(test.passed for test in tests)
    evidence = Evidence(
        tests,
        leakage=found["leakage"],
        null=max((_noise(split) for split in peeling.splits), default=0.0),
        dependence=found["dependence"],
        details="" if passed else SECOND_OPINION,
        settings=settings,
    )
    if evidence.agreement < settings.agreement:
        n = len(peeling.looks[0].part)
        # The halves of twice as many samples are as large as all of these.
        _warn_of_few_samples(
            2 * n, f"of {n} samples neither half shows the same factors"
        )
    return evidence


def _judge(
    found: dict[str, Any], misfit: Misfit, settings: EvidenceSettings
) -> tuple[Test, ...]:
    """All tests of a product, also those that no longer change the verdict."""
    judge = _judges(settings)
    return (
        judge["product"](found["product"]),
        judge["completeness"](found["completeness"]),
        _judged(judge["twist"], found["twist"]),
        judge["modulation"](found["modulation"]),
        _judged(judge["undivided"], found["undivided"]),
        judge["explained"](found["explained"]),
        judge["lowest functions"](found["lowest functions"]),
        judge["leakage"](np.nanmax(found["leakage"])),
        judge["agreement"](found["agreement"]),
        judge["dimensions"](misfit.dimensions, difference=misfit.difference),
    )


def _measure(
    diffusion: Diffusion,
    factors: Sequence[Factor],
    peeling: Peeling,
    settings: EvidenceSettings,
    measuring: MeasureSettings,
    peeled_with: PeelingSettings,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Measure everything that is judged, concurrently, and return it by name."""
    spectrum = diffusion.spectrum
    full, *halves = peeling.looks
    inliers = ~diffusion.graph.outliers
    lowest = spectrum.functions[:, 1 : 1 + settings.lowest_functions]
    explained = partial(measures.explained, settings=measuring)
    # One thread for each; only one of them uses `rng`, so that the result does not
    # depend on their order.
    work: dict[str, Callable[[], Any]] = {
        "completeness": partial(
            measures.completeness, spectrum, factors, settings=measuring
        ),
        "leakage": partial(measures.leakage, factors, settings=measuring),
        "product": partial(
            product_share,
            full.geometry,
            full.blocks,
            settings=peeled_with.products,
        ),
        "agreement": partial(
            measures.best_agreement,
            full,
            halves,
            settings=measuring,
            purity=peeled_with.purity,
        ),
        "dependence": partial(
            measures.dependence, factors, settings=measuring, rng=rng
        ),
        "modulation": partial(measures.modulation, factors, spectrum),
        "explained": partial(explained, factors, diffusion.points, inliers),
        "lowest functions": partial(explained, factors, lowest, inliers),
        "twist": partial(measures.twist, peeling.looks),
        "undivided": partial(measures.undivided, peeling.splits),
    }
    values = map_threads(lambda measure: measure(), list(work.values()))
    return dict(zip(work, values, strict=True))


def weigh_one(
    peeling: Peeling,
    dimensions: Dimensions,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
) -> Evidence:
    """Return the evidence on one factor that was found by peeling, and why only one.

    Too few samples, too noisy, irreducible, or a spectrum that is too short: the tests
    are taken in this order up to the first that fails.
    """
    look, split = peeling.looks[0], peeling.splits[0]
    n, noise = len(look.part), _noise(split)
    # Functions whose q is 1 or more are structureless, whatever its noise.
    might_divide = bool((split.q < 1).any())
    lacking = dimensions.data - dimensions.found if dimensions.missing else 0.0
    judge = _judges(settings)
    tests = [
        judge["samples"](n),
        judge["uncertainty"](noise if might_divide else 0.0, samples=n),
        judge["missing dimensions"](lacking, functions=len(look.geometry.eigenvalues)),
        judge["blocks"](len(look.blocks)),
    ]
    if peeling.refused is not None:
        tests.insert(2, judge["further product"](peeling.refused))
    _warn_if_unsure(tests, n, settings)
    return Evidence(_up_to_first_failure(tests), null=noise, details=SECOND_OPINION)


def _up_to_first_failure(tests: Sequence[Test]) -> tuple[Test, ...]:
    """Tests up to the first that fails: those after it rest on what it denies."""
    failed = [i for i, test in enumerate(tests) if not test.passed]
    return tuple(tests[: failed[0] + 1])


def weigh_sum(
    found: Sum,
    factors: Sequence[Factor],
    agreed: float,
    *,
    settings: EvidenceSettings = EvidenceSettings(),
    measuring: MeasureSettings = MeasureSettings(),
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence on factors whose functions add up to the samples.

    A sum compares no products with the spectrum, and a parallelogram is exactly
    additive, too: it never claims a product.

    Parameters
    ----------
    found : Sum
    factors : sequence of Factor
        Of the sum.
    agreed : float
        `agreement` of halves of the samples.
    """
    judge = _judges(settings)
    if len(factors) == 1:
        return Evidence((judge["terms"](1),), settings=settings)
    leakage = measures.leakage(factors, settings=measuring)
    share = 1 - found.left
    tests = (
        judge["products checked"](0, explained=share),
        judge["sum"](share),
        judge["own share"](found.own_share),
        judge["structured rest"](found.structured_rest),
        judge["axes"](np.sin(found.axes_error) ** 2),
        judge["agreement"](agreed),
        judge["leakage"](np.nanmax(leakage)),
    )
    dependence = measures.dependence(factors, settings=measuring, rng=rng)
    return Evidence(tests, leakage=leakage, dependence=dependence, settings=settings)


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
    judge = _judges(settings)
    found, asked = len(factors), n_asked or len(factors)
    complete = measures.completeness(spectrum, factors, settings=measuring)
    leakage = measures.leakage(factors, settings=measuring)
    tests = (
        judge["connected"](grouping.n_pieces),
        judge["groups"](found / asked, found=found, asked=asked),
        judge["completeness"](complete),
        judge["leakage"](np.nanmax(leakage)),
    )
    assert grouping.cut is not None
    details = f"the cut that made the groups is {_quality(grouping.cut)}"
    return Evidence(tests, leakage=leakage, details=details)


def _quality(cut: Cut) -> str:
    """How far a cut may lie below the best one, in words."""
    if cut.gap < 1e-6:  # rounding of the bound
        return "the best there is"
    return f"at most {cut.gap:.1%} below the best"


def weigh_no_groups(
    grouping: Grouping, *, settings: EvidenceSettings = EvidenceSettings()
) -> Evidence:
    """Return the evidence where no triplet separates functions."""
    return Evidence((_judges(settings)["triplets"](0, why=grouping.why_none),))


def weigh_asked(*, settings: EvidenceSettings = EvidenceSettings()) -> Evidence:
    """Return the evidence where the caller asked for one factor."""
    return Evidence((_judges(settings)["factors asked for"](1),))


def weigh_noise(
    evidence: Evidence,
    shares: Sequence[float],
    *,
    settings: EvidenceSettings = EvidenceSettings(),
) -> Evidence:
    """Return the evidence with a test of what noise of known size leaves.

    Parameters
    ----------
    evidence : Evidence
    shares : sequence of float
        Share of each factor's variance that is no noise, as `signal_shares` gives it.
    """
    if evidence.verdict == "none":
        return evidence
    # Noise may move places by more than they spread.
    worst = int(np.argmin(shares))
    share = max(0.0, float(shares[worst]))
    test = _judges(settings)["reliability"](
        share, noise_share=1 - share, factor=worst + 1
    )
    return evidence.with_test(test)


def _judges(settings: EvidenceSettings) -> dict[str, Callable[..., Test]]:
    """The judgement of each criterion, by its name."""
    return {criterion.name: criterion.judge for criterion in criteria(settings)}


def _judged(judge: Callable[..., Test], measured: Measurement) -> Test:
    return judge(measured.value, measured.noise)


def _noise(split: Split) -> float:
    """Largest noise of the q that a batch of functions was divided by."""
    return float(split.noise.max(initial=0))


def _warn_if_unsure(
    tests: Sequence[Test], n_samples: int, settings: EvidenceSettings
) -> None:
    """Warn of few or noisy samples, with the number that would help."""
    enough, certain = tests[:2]
    if not enough.passed:
        _warn_of_few_samples(
            5 * settings.samples,
            f"{n_samples} distinct samples show little of any manifold",
        )
    elif not certain.passed:
        _warn_of_few_samples(
            # Noise falls inversely with the number of samples; aim at half the limit.
            int(n_samples * certain.value / (settings.uncertainty / 2)),
            f"the number of factors is uncertain by {certain.value:.2f} of the range "
            "it is read from",
        )


def _warn_of_few_samples(enough: int, what: str) -> None:
    warnings.warn(
        "The samples are too few or too noisy for a sure verdict: "
        f"{what}. About {enough} samples would help.",
        SampleWarning,
        stacklevel=5,
    )
