"""Factors found in the functions of a diffusion, or in the samples themselves."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from manifactor._support.errors import NothingFoundError, held_warnings, issue
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factors.factor import Factor, make_factors, selection
from manifactor.factoring.gradients.geometry import beside_constant
from manifactor.factoring.gradients.peeling import (
    MAX_FACTORS,
    MIN_PRODUCT_SHARE,
    Dimensions,
    Look,
    Peeled,
    Peeling,
    peel,
    take_looks,
)
from manifactor.factoring.gradients.purity import batch_size, count_directions, without_energy
from manifactor.factoring.judging.criteria import Test
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.judging.weighing import judge_places_of, weigh, weigh_one, weigh_sum
from manifactor.factoring.measures.placed_samples import NOT_MEASURED, poles
from manifactor.factoring.prediction import leaves_noise, thinned
from manifactor.factoring.settings import FactoringSettings
from manifactor.factoring.sums.independence import far_off
from manifactor.factoring.sums.peeling import agreement, peel_samples
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.neighbors import chosen

# Blocks of pure functions that have all dimensions of the data.


def peel_all_dimensions(
    diffusion: Diffusion, settings: FactoringSettings, *, grow: bool, rng: np.random.Generator
) -> Peeled:
    """Peel off factors; `grow` doubles the functions while a dimension is missing."""
    while True:
        looks = take_looks(diffusion, rng=rng)
        peeling = peel(looks, at_least=settings.n_asked or 1, rng=rng)
        dimensions = _dimensions(peeling, diffusion, settings)
        # A much smaller factor has its lowest function far up in the spectrum.
        longer = diffusion.grown(rng) if grow and dimensions.missing else None
        if longer is None:
            return Peeled(diffusion, peeling, dimensions)
        diffusion = longer


def with_refused(peeled: Peeled, settings: FactoringSettings) -> Peeled | None:
    """Return the peeling as if what it refused were factors; None if it did not."""
    refused = peeled.peeling.refused
    if refused is None:
        return None
    dimensions = _dimensions(refused.peeling, peeled.diffusion, settings)
    return replace(peeled, peeling=refused.peeling, dimensions=dimensions)


def _dimensions(peeling: Peeling, diffusion: Diffusion, settings: FactoringSettings) -> Dimensions:
    """Dimensions of the data and of the blocks.

    None is missing where a further factor was refused, or where what the blocks leave of the
    samples is noise.
    """
    look = peeling.looks[0]
    of_data = diffusion.dimension
    found = sum(count_directions(look.geometry, block) for block in look.blocks)
    # A refused factor is not missing: it is there, and no factor of a product.
    fewer = found + settings.evidence.dimensions < of_data
    missing = peeling.refused is None and fewer
    if missing and diffusion.points is not None and look.blocks:
        # On the paper's rectangle, whose noise of .05 counts as a third dimension, this saves
        # computing 400 functions: 5 s instead of 40 at 10,000 samples.
        samples = chosen(diffusion.points, diffusion.graph.distinct)
        missing = not leaves_noise(_places(look), samples)
    return Dimensions(of_data, found, missing)


def _places(look: Look) -> np.ndarray:
    """Where samples lie on the blocks, (n, c), in units of length."""
    places = []
    for block in look.blocks:
        eigenvalues = look.geometry.rayleigh(block)
        lowest = block[:, : batch_size(eigenvalues)]
        # A function of eigenvalue l has gradients of mean square l.
        places.append(look.geometry.values(lowest / np.sqrt(eigenvalues[0])))
    return np.hstack(places)


def as_many_as(asked: int | None, peeling: Peeling) -> list[np.ndarray]:
    """Return the blocks found, or as many as were asked for.

    If there are more, the highest are taken together.
    """
    geometry, blocks = peeling.looks[0].geometry, list(peeling.looks[0].blocks)
    blocks.sort(key=lambda block: float(geometry.rayleigh(block)[0]))
    if asked is None or asked == len(blocks):
        return blocks
    if asked > len(blocks):
        raise NothingFoundError(
            f"`n_factors` must not exceed what the data show; {asked} were asked for "
            f"and {len(blocks)} found: no function was left that does not vary along "
            "those. Lower `n_factors`, or give more samples."
        )
    kept, joined = blocks[: asked - 1], blocks[asked - 1 :]
    # What has no energy along the kept blocks includes the products of the joined ones, which are
    # functions of the joint factor.
    rest = without_energy(geometry, kept)
    return [*kept, rest if rest.shape[1] else np.hstack(joined)]


# Factors found in the functions of a diffusion: blocks of orthogonal gradients.

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
    blocks = as_many_as(settings.n_asked, peeling)
    if len(blocks) == 1:
        found = _with_refused(peeled, settings, sense, rng)
        if found is not None:
            return found
        # One limit, not two: what peeling refuses, the test of it fails.
        limits = replace(settings.evidence, further_product=MIN_PRODUCT_SHARE)
        evidence = weigh_one(peeled, settings=limits, measuring=settings.measures)
        return Factorization((), evidence, diffusion, peeling.splits)
    factors = make_factors(
        diffusion.spectrum,
        [beside_constant(block) for block in blocks],
        geometry=peeling.looks[0].geometry,
    )
    evidence = weigh(
        peeled,
        factors,
        settings=settings.evidence,
        measuring=settings.measures,
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
    diffusion: Diffusion,
    evidence: Evidence,
    settings: FactoringSettings,
    *,
    most_functions: int | None = None,
) -> Factorization:
    """Return the data as one factor, which the lowest functions describe."""
    spectrum = diffusion.spectrum
    last = min(1 + settings.one_factor_functions, len(spectrum.eigenvalues))
    block = selection(spectrum, range(1, last))
    factors = make_factors(spectrum, [block], most_functions=most_functions)
    return Factorization(factors, evidence, diffusion)


# Factors found in the samples themselves: terms of a sum.


def find_in_samples(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find factors whose functions add up to the samples, and weigh them."""
    if diffusion.points is None:
        raise ValueError(
            "a sum is taken of samples; got a precomputed graph of distances. Pass "
            "samples, or leave `method` and `sense` at their defaults."
        )
    # Outliers would dominate means and cumulants, but tails belong to the density.
    far = far_off(diffusion.points)
    samples = diffusion.points[~(diffusion.graph.outliers & far)]
    peel = partial(
        peel_samples,
        max_factors=settings.n_asked or MAX_FACTORS,
        n_neighbors=diffusion.n_neighbors,
        rng=rng,
    )
    found = peel(samples)
    factors = found.factors(diffusion.points)
    agreed = NOT_MEASURED
    # Halves of a handful of samples show nothing.
    if len(factors) > 1 and len(samples) >= settings.evidence.samples:
        agreed = agreement(found, samples, peel, rng=rng)
    evidence = weigh_sum(
        found,
        factors,
        agreed=agreed,
        of_places=_of_places(diffusion, factors, settings),
        settings=settings.evidence,
        measuring=settings.measures,
        rng=rng,
    )
    return Factorization(factors, evidence, diffusion, sum=found)


def _of_places(
    diffusion: Diffusion, factors: Sequence[Factor], settings: FactoringSettings
) -> tuple[Test, ...]:
    """Tests of places and samples; none where there is one factor."""
    if len(factors) == 1:
        return ()
    return judge_places_of(
        diffusion,
        factors,
        sense="sum",
        settings=settings.evidence,
        testing=settings.measures.places,
    )
