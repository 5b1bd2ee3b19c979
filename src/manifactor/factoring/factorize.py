"""Factors in one sense of a product after the other, until one makes the data one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from manifactor._support.errors import NothingFoundError, held_warnings, issue, warn_caller
from manifactor._support.parameters import Choice, given
from manifactor.factoring.factorization import DividedTerm, Factorization
from manifactor.factoring.factors.factor import Factor, make_factors, selection
from manifactor.factoring.gradients.peeling import MAX_FACTORS
from manifactor.factoring.judging.evidence import NoProductStructureWarning
from manifactor.factoring.judging.weighing import (
    density_of,
    weigh_asked,
    weigh_groups,
    weigh_line,
    weigh_no_groups,
    weigh_noise,
    weigh_terms,
)
from manifactor.factoring.methods import described, find_in_functions, find_in_samples, one_factor
from manifactor.factoring.placement import signal_shares
from manifactor.factoring.settings import FactoringSettings, is_auto, require_factoring
from manifactor.factoring.triplets.search import group_functions
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.senses import in_density, in_volume
from manifactor.spectral.settings import DiffusionSettings

# If these tests are passed the places on the factors are right. The other tests say how the data
# differ from a product of them.
TESTS_OF_PLACES = frozenset(
    {
        "explained",
        "lowest functions",
        "parts",
        "leakage",
        "agreement",
        "dimensions",
        "folds",
        "poles",
        "sum",
        "own share",
        "structured rest",
        "axes",
    }
)


def find_in_all_senses(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Return the factors in the first sense that makes the data a product.

    The geometry comes first. If the data are a product in no sense, the result is the one whose
    places are right and that fails the fewest tests, else that of the geometry, for which more
    functions are computed where they miss a dimension.
    """
    others = _may_try_others(diffusion, settings)
    found: Factorization | None = None
    with held_warnings() as held:
        try:
            found = find_in_functions(diffusion, settings, grow=not others, rng=rng)
        except NothingFoundError:
            if not others:
                raise
    if found is not None and (not others or found.evidence.verdict == "product"):
        issue(held)
        return found
    best, warned, tried = found, held, ["geometry"]
    uneven = _is_uneven(diffusion, settings)
    for sense in FINDERS:
        if not _may_show_more(sense, best, uneven):
            continue
        tried.append(sense)
        with held_warnings() as held:
            candidate = _found_if_any(sense, diffusion, settings, rng)
        if candidate is not None and _better(candidate, best, settings.n_asked):
            best, warned = candidate, held
        if best is not None and best.evidence.verdict == "product":
            break
    if best is None or not is_sound(best):
        with held_warnings() as held:
            best = _with_more_functions(found, diffusion, settings, rng)
        if best is not found:
            warned = held
    # The warnings of a result that is not taken say nothing of the one that is.
    issue(warned)
    sense = best.evidence.sense
    why = "most tests are passed in it" if is_sound(best) else "no other is better"
    why = f"{why}, of the senses {', '.join(tried)}"
    return replace(best, choices={**best.choices, "sense": Choice(sense, why)})


def _may_show_more(sense: str, best: Factorization | None, uneven: bool) -> bool:
    """Whether a sense may show more than the best one so far.

    On even samples the density changes nothing: in "volume" and "density" only the noise of places
    would be drawn anew. "density" takes the most time.
    """
    if best is None or not is_sound(best):
        return uneven or sense != "density"
    no_products = "product" in {test.name for test in best.evidence.failed}
    return sense == "sum" or (sense == "volume" and (uneven or no_products))


def _is_uneven(diffusion: Diffusion, settings: FactoringSettings) -> bool:
    density = density_of(diffusion, settings=settings.measures.evenness)
    return density is not None and density.spread > settings.evidence.evenness


def _found_if_any(
    sense: str, diffusion: Diffusion, settings: FactoringSettings, rng: np.random.Generator
) -> Factorization | None:
    """Factors in another sense; None where it shows nothing."""
    try:
        return find_in_sense(sense, diffusion, settings, rng=rng)
    except NothingFoundError:
        # Its kernel resolves nothing, or it has fewer factors than were asked for.
        return None


def _with_more_functions(
    found: Factorization | None,
    diffusion: Diffusion,
    settings: FactoringSettings,
    rng: np.random.Generator,
) -> Factorization:
    """Factors of the geometry, found with more functions if a dimension is missing."""
    if found is None:
        return find_in_functions(diffusion, settings, rng=rng)
    failed = {test.name for test in found.evidence.failed}
    if not failed & {"dimensions", "missing dimensions"}:
        return found
    longer = found.diffusion.grown(rng)
    if longer is None:
        return found
    return find_in_functions(longer, settings, rng=rng)


def find_in_sense(
    sense: str, diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Return the factors in a sense other than the geometry, a key of `FINDERS`.

    Every further sense is another chance to find a product by accident, so its tests have stricter
    limits.
    """
    found = FINDERS[sense](diffusion, settings.strict, rng=rng)
    return replace(found, evidence=replace(found.evidence, sense=sense))


def _in_functions_of(
    other_sense: Callable[..., Diffusion],
    sense: str,
    diffusion: Diffusion,
    settings: FactoringSettings,
    *,
    rng: np.random.Generator,
) -> Factorization:
    """Factors in the functions of another diffusion of the same samples."""
    other = other_sense(diffusion, rng=rng)
    eigenvalues = other.distinct.eigenvalues
    # In a graph of several components, functions are constant on each of them.
    if len(eigenvalues) < 2 or eigenvalues[1] <= np.finfo(float).eps * eigenvalues[-1]:
        raise NothingFoundError(
            f"the kernel of `sense={sense!r}` must connect these samples and resolve "
            "more than the constant function, and does not. Choose another `sense`."
        )
    return find_in_functions(other, settings, sense=sense, rng=rng)


FINDERS: dict[str, Callable[..., Factorization]] = {
    "sum": find_in_samples,
    "volume": partial(_in_functions_of, in_volume, "volume"),
    "density": partial(_in_functions_of, in_density, "density"),
}


def is_sound(found: Factorization) -> bool:
    """Return whether there are several factors and the places on them are right.

    Places are right if they pass `TESTS_OF_PLACES`, leave no large part of the product empty, and
    have directions that are not oblique.
    """
    evidence = found.evidence
    limits = evidence.settings
    far_off = {"skew": limits.oblique, "crossing": limits.oblique, "filling": limits.voids}
    # Only a sum tells how well the axes of a Gaussian cloud are known.
    needed = TESTS_OF_PLACES if found.sum else TESTS_OF_PLACES | {"identified"}
    wrong = any(
        test.name in needed or test.net > far_off.get(test.name, np.inf) for test in evidence.failed
    )
    return len(found.factors) > 1 and not wrong


def _better(candidate: Factorization, best: Factorization | None, n_asked: int | None) -> bool:
    """Whether a later result is to replace an earlier one."""
    if not is_sound(candidate):
        return False
    if best is None:
        # Surfaces may be divided later, see `divide_terms`.
        surfaces = sum(factor.topology == "other" for factor in candidate.factors)
        return len(candidate.factors) + surfaces >= (n_asked or 1)
    return not is_sound(best) or _shortcomings(candidate) < _shortcomings(best)


def _shortcomings(found: Factorization) -> tuple[int, float]:
    """Number of failed tests, then the largest leakage; the less the better."""
    return len(found.evidence.failed), float(np.nanmax(found.evidence.leakage))


def _may_try_others(diffusion: Diffusion, settings: FactoringSettings) -> bool:
    """Whether other senses of a product may be tried.

    The caller must have left all that shapes the walk to the program, and the samples must be
    enough.
    """
    given, usual = diffusion.settings, DiffusionSettings()
    left_to_us = (
        is_auto(settings.sense)
        and is_auto(given.bandwidth)
        and given.density_correction == usual.density_correction
        and not (given.own_search or given.precomputed or given.dense)
    )
    enough = len(diffusion.graph.distinct) >= settings.evidence.samples
    return left_to_us and enough


# Terms of a sum that are products of lengths themselves, and their factors.

# Tests that a term may fail and still be divided, as long as `is_sound` holds: motions that change
# each other a little. Spheroids and other surfaces of revolution fail "product" as well, a sheared
# torus "skew": they stay whole.
MAY_FAIL = frozenset({"filling", "crossing", "modulation in data"})


def divide_terms(
    found: Factorization, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Return a sum with factors in place of each surface that is a product of lengths.

    Everything else is returned as it is, and so is a sum whose places are wrong. No more factors
    are made than the caller asked for.
    """
    if found.sum is None or not is_sound(found):
        return found
    most = settings.n_asked or MAX_FACTORS
    inside: dict[int, Factorization] = {}
    choices = dict(found.choices)
    for term, factor in enumerate(found.factors):
        gained = sum(len(each.factors) - 1 for each in inside.values())
        room = most - len(found.factors) - gained
        if factor.topology != "other" or room < 1:
            continue
        points = found.sum.points(found.diffusion.samples, term)
        spectral = _spectral(found.diffusion.settings)
        inner = _divided(points, spectral, settings, most=room + 1, rng=rng)
        if inner is not None:
            inside[term] = inner
        choices[f"term {term + 1}"] = _choice(inner)
    return replace(_joined(found, inside), choices=choices)


def _spectral(given: DiffusionSettings) -> DiffusionSettings:
    """Settings of the diffusion on a surface.

    What the caller set for the samples, such as a bandwidth, need not fit it.
    """
    return DiffusionSettings(preparation="none", n_jobs=given.n_jobs, device=given.device)


def _divided(
    points: np.ndarray,
    spectral: DiffusionSettings,
    settings: FactoringSettings,
    *,
    most: int,
    rng: np.random.Generator,
) -> Factorization | None:
    """Factors of a surface, at most so many; None if it is no product of lengths."""
    # One more chance to find a product by accident.
    strict = replace(settings.strict, n_factors="auto")
    with held_warnings() as held:
        try:
            diffusion = diffuse(points, spectral, rng=rng)
            inner = find_in_functions(diffusion, strict, grow=False, rng=rng)
            if len(inner.factors) > most:
                fewer = replace(strict, n_factors=most)
                inner = find_in_functions(diffusion, fewer, grow=False, rng=rng)
        except NothingFoundError:
            return None
    failed = {test.name for test in inner.evidence.failed}
    if not (is_sound(inner) and failed <= MAY_FAIL):
        return None
    issue(held)
    return inner


def _choice(inner: Factorization | None) -> Choice:
    """How many factors a surface has, and why."""
    if inner is None:
        return Choice(1, "the surface is no product of lengths by itself")
    return Choice(len(inner.factors), "the surface is a product of lengths by itself, or nearly")


def _joined(found: Factorization, inside: dict[int, Factorization]) -> Factorization:
    """The sum with the factors of the divided terms, and the evidence on all."""
    if not inside:
        return found
    factors: list[Factor] = []
    for term, factor in enumerate(found.factors):
        own = _factors_of(factor, inside[term]) if term in inside else [factor]
        factors += own
    # Placing is written for the host's side of a device.
    divided = tuple(
        DividedTerm(term, len(inner.factors), inner.diffusion.settled())
        for term, inner in inside.items()
    )
    evidence = weigh_terms(found.evidence, {term: inner.evidence for term, inner in inside.items()})
    return replace(found, factors=tuple(factors), evidence=evidence, divided=divided)


def _factors_of(term: Factor, inner: Factorization) -> list[Factor]:
    """The factors of a divided term, as factors of the sum."""
    sure = np.where(inner.diffusion.graph.outliers, 0.0, term.confidence)
    return [
        replace(
            factor,
            confidence=np.minimum(factor.confidence, sure),
            # They are no combinations of the functions of the samples.
            coefficients=np.empty((0, factor.functions.shape[1])),
        )
        for factor in inner.factors
    ]


# Diffusion to factorization: the methods, and what is said of their results.


class Method(Protocol):
    """A method: a function from a diffusion to a factorization."""

    def __call__(
        self, diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
    ) -> Factorization:
        """Return the factors and the evidence for them."""


def factorize(
    diffusion: Diffusion,
    settings: FactoringSettings = FactoringSettings(),
    *,
    noise: np.ndarray | None = None,
    rng: np.random.Generator,
) -> Factorization:
    """Split the manifold of samples into its factors.

    Shapes: noise (n_features,).
    """
    if settings.method == "deflation":
        warn_caller(
            "`method='deflation'` will be removed in version 0.4; use `method='sum'`, "
            "which is the same.",
            FutureWarning,
        )
    # The number of functions is known only now; all else was checked by the estimator.
    n_functions = len(diffusion.distinct.eigenvalues)
    require_factoring(settings, n_functions=n_functions)
    found = _surely_one(diffusion, settings)
    if found is None:
        found = METHODS[settings.method](diffusion, settings, rng=rng)
    found = divide_terms(described(found, settings), settings, rng=rng)
    # After all else, so that the factors are the same with and without it.
    if noise is not None:
        found = _with_noise_weighed(found, noise, settings, rng)
    # Whoever asks for one factor needs no warning of it.
    if found.evidence.verdict == "none" and settings.n_asked != 1:
        warn_caller(
            f"No product structure was found: {found.evidence.reason}.", NoProductStructureWarning
        )
    return replace(
        found,
        factors=_without_confidence_in_outliers(found.factors, diffusion),
        choices={**found.choices, **_choices(found, settings, n_functions)},
    )


def _without_confidence_in_outliers(
    factors: Sequence[Factor], diffusion: Diffusion
) -> tuple[Factor, ...]:
    """The factors with confidence 0 for outliers.

    They lie where their nearest neighbour lies, which says nothing about them.
    """
    outliers = diffusion.graph.outliers
    return tuple(
        replace(factor, confidence=np.where(outliers, 0.0, factor.confidence)) for factor in factors
    )


def by_gradients(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find factors by orthogonal gradients, in other senses where need be."""
    if settings.sense in FINDERS:
        return find_in_sense(settings.sense, diffusion, settings, rng=rng)
    return find_in_all_senses(diffusion, settings, rng=rng)


def by_sum(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find factors of an additive embedding, each in what the others leave."""
    return find_in_sense("sum", diffusion, settings, rng=rng)


def by_triplets(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find factors by the paper's algorithm: triplets, separability, maximum cut."""
    spectrum = diffusion.spectrum
    grouping = group_functions(
        spectrum,
        n_groups=settings.n_asked,
        tolerance=settings.tolerance,
        threshold=settings.threshold,
        exclude=settings.exclude,
        rng=rng,
    )
    if not grouping.groups:
        evidence = weigh_no_groups(grouping, settings=settings.evidence)
        whole = one_factor(diffusion, evidence, settings)
        return replace(whole, triplets=grouping.triplets)
    blocks = [selection(spectrum, group) for group in grouping.groups]
    factors = make_factors(spectrum, blocks)
    evidence = weigh_groups(
        spectrum,
        factors,
        grouping,
        n_asked=settings.n_asked,
        settings=settings.evidence,
        measuring=settings.measures,
    )
    return Factorization(factors, evidence, diffusion, triplets=grouping.triplets, cut=grouping.cut)


METHODS: dict[str, Method] = {
    "gradients": by_gradients,
    "sum": by_sum,
    "deflation": by_sum,
    "triplets": by_triplets,
}


def _surely_one(diffusion: Diffusion, settings: FactoringSettings) -> Factorization | None:
    """The data as one factor, if one was asked for or they are a straight line."""
    if settings.n_asked not in (None, 1):
        return None
    line = weigh_line(diffusion, settings=settings.evidence, measuring=settings.measures)
    # On a line, one function tells all places.
    most = None if line is None else 1
    if settings.n_asked == 1:
        asked = weigh_asked(settings=settings.evidence)
        return one_factor(diffusion, asked, settings, most_functions=most)
    return None if line is None else one_factor(diffusion, line, settings, most_functions=most)


def _with_noise_weighed(
    found: Factorization, noise: np.ndarray, settings: FactoringSettings, rng: np.random.Generator
) -> Factorization:
    """The same with a test of what the noise leaves of the places."""
    if found.evidence.verdict == "none":
        return found
    # Placing is written for the host's side of a device.
    shares = signal_shares(
        found.factors,
        found.diffusion.settled(),
        noise,
        terms=found.sum,
        divided=found.divided,
        settings=settings.placement,
        rng=rng,
    )
    evidence = weigh_noise(found.evidence, shares, settings=settings.evidence)
    return replace(found, evidence=evidence)


def _choices(
    found: Factorization, settings: FactoringSettings, n_functions: int
) -> dict[str, Choice]:
    """What was chosen automatically, and why."""
    choices = {
        "method": _choice_of_method(settings),
        "factors": _choice_of_factors(found, settings),
    }
    count = len(found.diffusion.distinct.eigenvalues)
    if count > n_functions and found.evidence.sense == "geometry":
        choices["functions"] = Choice(
            count, "more than usual: the factors first found had fewer dimensions than the data"
        )
    return choices


def _choice_of_method(settings: FactoringSettings) -> Choice:
    if settings.method != FactoringSettings().method:
        return given(settings.method)
    return Choice(settings.method, "the default: it also finds the number of factors")


def _choice_of_factors(found: Factorization, settings: FactoringSettings) -> Choice:
    count = len(found.factors)
    if settings.n_asked == count:
        return given(count)
    if settings.n_asked is not None:
        return Choice(count, f"no more of the {settings.n_asked} asked for were found")
    if found.evidence.verdict == "none":
        return Choice(count, "no product structure was found")
    if found.divided:
        return Choice(count, WHY_SO_MANY["divided sum"])
    return Choice(count, WHY_SO_MANY["sum" if found.sum else settings.method])


WHY_SO_MANY = {
    "gradients": (
        "so many blocks of eigenfunctions have orthogonal gradients, beyond the samples' own noise"
    ),
    "sum": "so many independent terms add up to the samples, and leave noise",
    "divided sum": (
        "independent terms add up to the samples, and a surface among them is a "
        "product of lengths by itself"
    ),
    "triplets": "the fewest groups that separate nearly all pairs in triplets",
}
