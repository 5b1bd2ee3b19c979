"""Factors found in the functions of a diffusion: blocks of orthogonal gradients."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manifactor._support.warning import held_warnings, issue
from manifactor.factoring.blocks import as_many_as, peel_all_dimensions, with_refused
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factors.factor import Factor, make_factors, selection
from manifactor.factoring.gradients.dimensions import Peeled
from manifactor.factoring.gradients.geometry import Geometry, beside_constant
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.judging.one_factor import weigh_one
from manifactor.factoring.judging.weighing import weigh
from manifactor.factoring.measures.poles import poles
from manifactor.factoring.prediction import thinned
from manifactor.factoring.settings import FactoringSettings
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.spectrum import Spectrum

# Tests that fail where lengths along one factor depend on the place on another, as on a surface of
# revolution: products of functions are no eigenfunctions there, but places are right and directions
# orthogonal.
TESTS_OF_LENGTHS = frozenset(
    {"product", "completeness", "twist", "modulation", "modulation in data"}
)


def find_in_functions(
    diffusion: Diffusion,
    settings: FactoringSettings,
    *,
    grow: bool = True,
    sense: str = "geometry",
    rng: np.random.Generator,
) -> Factorization:
    """Peel off blocks of pure functions, and weigh the factors that they describe.

    Data that are one factor are returned without factors. `described` adds it to the result that is
    taken, since describing it takes time and most such results give way to those of another sense.
    """
    peeled = peel_all_dimensions(diffusion, settings, grow=grow, rng=rng)
    return weigh_peeled(peeled, settings, sense=sense, rng=rng)


def weigh_peeled(
    peeled: Peeled,
    settings: FactoringSettings,
    *,
    sense: str = "geometry",
    rng: np.random.Generator,
) -> Factorization:
    """Return the factors that peeled blocks describe, and the evidence for them."""
    diffusion, peeling = peeled.diffusion, peeled.peeling
    purity = settings.peeling.purity
    blocks = as_many_as(settings.n_asked, peeling, settings=purity)
    if len(blocks) == 1:
        found = _with_refused(peeled, settings, sense, rng)
        if found is not None:
            return found
        # One limit, not two: what peeling refuses, the test of it fails.
        limits = replace(settings.evidence, further_product=settings.peeling.products.min_share)
        evidence = weigh_one(peeled, settings=limits, measuring=settings.measures)
        return Factorization((), evidence, diffusion, peeling.splits)
    factors = described_factors(
        diffusion.spectrum,
        [beside_constant(block) for block in blocks],
        settings,
        peeling.looks[0].geometry,
    )
    evidence = weigh(
        peeled,
        factors,
        settings=settings.evidence,
        measuring=settings.measures,
        peeled_with=settings.peeling,
        sense=sense,
        rng=rng,
    )
    return Factorization(factors, evidence, diffusion, peeling.splits)


def _with_refused(
    peeled: Peeled, settings: FactoringSettings, sense: str, rng: np.random.Generator
) -> Factorization | None:
    """Factors of which some were refused, if only their lengths are not a product's.

    None where nothing was refused, where more is wrong with it, or where a factor shrinks to a
    point, as on a cone.
    """
    samples = peeled.diffusion.points
    # Without samples nothing tells whether directions are orthogonal.
    if samples is None or settings.n_asked is not None:
        return None
    all_blocks = with_refused(peeled, settings)
    if all_blocks is None:
        return None
    with held_warnings() as held:
        found = weigh_peeled(all_blocks, settings.strict, sense=sense, rng=rng)
    failed = {test.name for test in found.evidence.failed}
    if not failed <= TESTS_OF_LENGTHS:
        return None
    pole_settings = settings.measures.places.poles
    inliers = np.flatnonzero(~peeled.diffusion.graph.outliers)
    rows = thinned(inliers, pole_settings.samples)
    places = [factor.embedding[rows] for factor in found.factors]
    shrunk = poles(places, samples[rows], settings=pole_settings)
    if shrunk.value > settings.evidence.poles:
        return None
    # What is not taken has nothing to warn of.
    issue(held)
    return found


def described(found: Factorization, settings: FactoringSettings) -> Factorization:
    """Return a result with factors: that of all data where it has none yet."""
    if found.factors:
        return found
    whole = one_factor(found.diffusion, found.evidence, settings)
    return replace(found, factors=whole.factors)


def one_factor(
    diffusion: Diffusion, evidence: Evidence, settings: FactoringSettings
) -> Factorization:
    """Return the data as one factor, which the lowest functions describe."""
    spectrum = diffusion.spectrum
    last = min(1 + settings.one_factor_functions, len(spectrum.eigenvalues))
    block = selection(spectrum, range(1, last))
    factors = described_factors(spectrum, [block], settings)
    return Factorization(factors, evidence, diffusion)


def described_factors(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    settings: FactoringSettings,
    geometry: Geometry | None = None,
) -> tuple[Factor, ...]:
    """Return the factors that blocks of functions describe."""
    return make_factors(
        spectrum, blocks, geometry=geometry, settings=settings.factors, gradients=settings.gradients
    )
