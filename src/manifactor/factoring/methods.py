"""Three searches for factors: in the functions of a diffusion, in the samples, by triplets.

Each of them finds factors and weighs the evidence for them.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from manifactor._support.errors import NothingFoundError, held_warnings, issue
from manifactor.factoring.factor import make_factors, selection
from manifactor.factoring.factorization import FactoringSettings, Factorization, is_auto
from manifactor.factoring.gradients.geometry import beside_constant
from manifactor.factoring.gradients.peeling import (
    MAX_FACTORS,
    Dimensions,
    Look,
    Peeled,
    Peeling,
    peel,
    take_looks,
)
from manifactor.factoring.gradients.purity import batch_size, count_directions, without_energy
from manifactor.factoring.judging.criteria import CRITERIA
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.judging.weighing import judge, weigh, weigh_groups, weigh_one, weigh_sum
from manifactor.factoring.measures import NOT_MEASURED
from manifactor.factoring.measures.places import POLE_SAMPLES, poles
from manifactor.factoring.prediction import leaves_noise, thinned
from manifactor.factoring.sums.independence import far_off
from manifactor.factoring.sums.peeling import agreement, peel_samples
from manifactor.factoring.triplets import group_functions
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.neighbors import chosen


def attempt(
    find: Callable[[], Factorization],
) -> tuple[Factorization | None, list[warnings.WarningMessage]]:
    """Return what a search finds, None if nothing, and its warnings, which are held back.

    Warnings of a result that is not taken say nothing about the one that is.
    """
    with held_warnings() as held:
        try:
            return find(), held
        except NothingFoundError:
            return None, held


def one_factor(diffusion: Diffusion, evidence: Evidence, *, on_line: bool = False) -> Factorization:
    """Return the data as one factor, which the lowest functions describe.

    On a line, one function tells all coordinates.
    """
    spectrum = diffusion.spectrum
    # An embedding takes six functions at most; more of them are for the user to see.
    block = selection(spectrum, range(1, min(25, len(spectrum.eigenvalues))))
    factors = make_factors(spectrum, [block], most_functions=1 if on_line else None)
    return Factorization(factors, evidence, diffusion)


# Factors in the functions of a diffusion: blocks of orthogonal gradients.


def find_in_functions(
    diffusion: Diffusion,
    n_asked: int | None,
    *,
    sense: str = "geometry",
    strict: bool = False,
    grow: bool = True,
    rng: np.random.Generator,
) -> Factorization:
    """Peel off blocks of pure functions, and weigh the factors that they describe.

    `grow` doubles the functions while a dimension is missing. Data that are one factor are returned
    without factors: `one_factor` adds it to the result that is taken, since describing it takes
    time and most such results give way to those of another sense.
    """
    while True:
        peeling = peel(take_looks(diffusion, rng=rng), at_least=n_asked or 1, rng=rng)
        dimensions = _dimensions(peeling, diffusion)
        # A much smaller factor has its lowest function far up in the spectrum.
        longer = diffusion.grown(rng) if grow and dimensions.missing else None
        if longer is None:
            break
        diffusion = longer
    peeled = Peeled(diffusion, peeling, dimensions)
    return weigh_peeled(peeled, n_asked, sense=sense, strict=strict, rng=rng)


def find_in_more_functions(
    found: Factorization, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Return the factors of more functions if a dimension is missing, else those found."""
    missing = found.evidence.fails("dimensions", "missing dimensions")
    longer = found.diffusion.grown(rng) if missing else None
    return found if longer is None else find_in_functions(longer, n_asked, rng=rng)


def _dimensions(peeling: Peeling, diffusion: Diffusion) -> Dimensions:
    """Dimensions of the data and of the blocks.

    None is missing where a further factor was refused, or where what the blocks leave of the
    samples is noise.
    """
    look = peeling.looks[0]
    of_data = diffusion.dimension
    found = sum(count_directions(look.geometry, block) for block in look.blocks)
    # A refused factor is not missing: it is there, but not a factor of a product.
    missing = peeling.refused is None and found + CRITERIA["dimensions"].limit < of_data
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
            f"Found only {len(blocks)} of the {asked} factors requested by `n_factors`: all "
            "remaining eigenfunctions vary along these. Lower `n_factors`, or give more samples."
        )
    kept, joined = blocks[: asked - 1], blocks[asked - 1 :]
    # What has no energy along the kept blocks includes the products of the joined ones, which are
    # functions of the joint factor.
    rest = without_energy(geometry, kept)
    return [*kept, rest if rest.shape[1] else np.hstack(joined)]


def weigh_peeled(
    peeled: Peeled,
    n_asked: int | None,
    *,
    sense: str = "geometry",
    strict: bool = False,
    rng: np.random.Generator,
) -> Factorization:
    """Return the factors that peeled blocks describe, and the evidence for them."""
    diffusion, peeling = peeled.diffusion, peeled.peeling
    blocks = as_many_as(n_asked, peeling)
    if len(blocks) == 1:
        found = None if n_asked else _with_refused(peeled, sense, rng)
        if found is not None:
            return found
        return Factorization((), weigh_one(peeled, sense=sense), diffusion, peeling.splits)
    factors = make_factors(
        diffusion.spectrum,
        [beside_constant(block) for block in blocks],
        geometry=peeling.looks[0].geometry,
    )
    evidence = weigh(peeled, factors, sense=sense, strict=strict, rng=rng)
    return Factorization(factors, evidence, diffusion, peeling.splits)


def _with_refused(peeled: Peeled, sense: str, rng: np.random.Generator) -> Factorization | None:
    """Factors of which some were refused, if only their lengths are not a product's.

    As on a surface of revolution: products of functions are not eigenfunctions there, but
    coordinates are right and directions orthogonal. None where nothing was refused, where more is
    wrong with it, or where a factor shrinks to a point, as on a cone.
    """
    samples, refused = peeled.diffusion.points, peeled.peeling.refused
    # Without samples nothing tells whether directions are orthogonal.
    if samples is None or refused is None:
        return None
    dimensions = _dimensions(refused.peeling, peeled.diffusion)
    everything = replace(peeled, peeling=refused.peeling, dimensions=dimensions)
    found, warned = attempt(
        partial(weigh_peeled, everything, None, sense=sense, strict=True, rng=rng)
    )
    if found is None or any(
        CRITERIA[test.kind].about != "lengths" for test in found.evidence.failed
    ):
        return None
    rows = thinned(np.flatnonzero(~peeled.diffusion.graph.outliers), POLE_SAMPLES)
    places = [factor.embedding[rows] for factor in found.factors]
    (shrunk,) = judge({"poles": poles(places, samples[rows])})
    if not shrunk.passed:
        return None
    issue(warned)
    return found


# Factors in the samples themselves: terms of a sum.


def find_in_samples(
    diffusion: Diffusion, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Find factors whose functions add up to the samples, and weigh them."""
    if diffusion.points is None:
        raise ValueError(
            "a sum is taken of samples; got a precomputed graph of distances. Pass "
            "samples, or leave `method` and `sense` at their defaults."
        )
    # Outliers would dominate means and cumulants, but tails belong to the density.
    samples = diffusion.points[~(diffusion.graph.outliers & far_off(diffusion.points))]
    peel_sum = partial(
        peel_samples, max_factors=n_asked or MAX_FACTORS, n_neighbors=diffusion.n_neighbors, rng=rng
    )
    found = peel_sum(samples)
    factors = found.factors(diffusion.points)
    agreed = NOT_MEASURED
    # Halves of a handful of samples show nothing.
    if len(factors) > 1 and len(samples) >= CRITERIA["samples"].limit:
        agreed = agreement(found, samples, peel_sum, rng=rng)
    evidence = weigh_sum(found, factors, diffusion, agreed=agreed, rng=rng)
    return Factorization(factors, evidence, diffusion, sum=found)


# Factors by the paper's algorithm: triplets, separability, maximum cut.


def find_by_triplets(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find groups of functions whose products are functions, and weigh them."""
    tolerance, threshold = (
        None if is_auto(value) else float(value)
        for value in (settings.eigenvalue_tolerance, settings.similarity_threshold)
    )
    spectrum = diffusion.spectrum
    grouping = group_functions(
        spectrum,
        n_groups=settings.n_asked,
        tolerance=tolerance,
        threshold=threshold,
        exclude=settings.exclude,
        rng=rng,
    )
    if not grouping.groups:
        evidence = Evidence(judge({"triplets": 0}, why=grouping.why_none))
        return replace(one_factor(diffusion, evidence), triplets=grouping.triplets)
    blocks = [selection(spectrum, group) for group in grouping.groups]
    factors = make_factors(spectrum, blocks)
    evidence = weigh_groups(spectrum, factors, grouping, n_asked=settings.n_asked)
    return Factorization(factors, evidence, diffusion, triplets=grouping.triplets, cut=grouping.cut)
