"""From a diffusion to the factors of the manifold: find them, divide terms of a sum, judge."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeGuard

import numpy as np

from manifactor._support.errors import NothingFoundError, issue, warn_caller
from manifactor._support.parameters import Choice, given
from manifactor.factoring.factor import Factor
from manifactor.factoring.factorization import (
    SUM_NAMES,
    DividedTerm,
    FactoringSettings,
    Factorization,
    is_auto,
    require_factoring,
)
from manifactor.factoring.gradients.peeling import MAX_FACTORS
from manifactor.factoring.judging.criteria import CRITERIA, Test, judge
from manifactor.factoring.judging.evidence import Evidence, NoProductStructureWarning
from manifactor.factoring.measures.places import prepared_noise, signal_share
from manifactor.factoring.methods import (
    attempt,
    density_of,
    find_by_triplets,
    find_in_functions,
    find_in_more_functions,
    find_in_samples,
    is_uneven,
    weigh_line,
    weigh_noise,
    weigh_terms,
    whole_factor,
)
from manifactor.factoring.placement import make_placer, place_blocks
from manifactor.factoring.separation import find_separation
from manifactor.spectral.diffusion import Diffusion, DiffusionSettings
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.senses import in_density, in_volume


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
    # The number of functions is known only now; all else was checked by the estimator.
    require_factoring(settings, n_functions=len(diffusion.distinct.eigenvalues))
    found = find(diffusion, settings, rng=rng)
    found = divide_terms(found, settings.n_asked, rng=rng)
    return judged(found, diffusion, settings, noise=noise, rng=rng)


def find(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Return the factors by the method, and in the sense, that the caller chose."""
    if settings.method == "deflation":
        warn_caller(
            "`method='deflation'` will be removed in version 0.4; use `method='sum'`, "
            "which is the same.",
            FutureWarning,
        )
    n_asked = settings.n_asked
    if n_asked in (None, 1):
        line = weigh_line(diffusion)
        evidence = Evidence(judge({"factors asked for": 1})) if n_asked else line
        if evidence is not None:
            whole = whole_factor(diffusion, on_line=line is not None)
            return Factorization(whole, evidence, diffusion)
    if settings.method == "triplets":
        return find_by_triplets(diffusion, settings, rng=rng)
    sense = "sum" if settings.method in SUM_NAMES else settings.sense
    if is_auto(sense):
        found = find_in_all_senses(diffusion, n_asked, rng=rng)
        several = n_asked is None and len(found.factors) > 1
        # Of fewer samples, factors are often right although tests fail.
        if several and _wrong(found) and _may_try_others(diffusion):
            found = _undivided(found)
    else:
        found = SENSE_SEARCHES[sense].find(diffusion, n_asked, rng=rng)
    return replace(found, factors=found.factors or whole_factor(found.diffusion))


# Senses of a product.


def _in_functions_of(
    other_sense: Callable[..., Diffusion],
    sense: str,
    diffusion: Diffusion,
    n_asked: int | None,
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
    return find_in_functions(other, n_asked, sense=sense, strict=True, rng=rng)


class SenseSearch(NamedTuple):
    """How factors are searched for in a sense of a product, and when."""

    # From a diffusion and the number of factors asked for, with `rng`
    find: Callable[..., Factorization]
    # Whether it may show more than the best result so far, where the density is uneven or not
    worth_trying: Callable[[Factorization | None, bool], bool] = lambda best, uneven: True


# In the order in which they are tried. All but the geometry are further chances to find a product
# by accident, so that their tests have stricter limits. On even samples the density changes
# nothing: in "volume" and "density" only the noise of coordinates would be drawn anew. "density"
# takes the most time. `SENSES` of `judging/criteria.py` says what each of them means.
SENSE_SEARCHES = {
    "geometry": SenseSearch(find_in_functions),
    "sum": SenseSearch(find_in_samples),
    "volume": SenseSearch(
        partial(_in_functions_of, in_volume, "volume"),
        lambda best, uneven: uneven or not is_sound(best) or best.evidence.fails("product"),
    ),
    "density": SenseSearch(
        partial(_in_functions_of, in_density, "density"),
        lambda best, uneven: uneven and not is_sound(best),
    ),
    # Coordinates of a twisted product separate in every part, but not as a whole.
    "separable": SenseSearch(
        find_separation,
        lambda best, uneven: not (is_sound(best) and best.evidence.fails("twist in data")),
    ),
}


def find_in_all_senses(
    diffusion: Diffusion, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Try each sense of "product" in turn and stop at the first that fits.

    If the data are a product in no sense, the result is the one whose coordinates are right and
    that fails the fewest tests, else that of the geometry, for which more functions are computed
    where they miss a dimension.
    """
    (geometry, (in_geometry, _)), *others = SENSE_SEARCHES.items()
    if not _may_try_others(diffusion):
        return in_geometry(diffusion, n_asked, rng=rng)
    first, warned = attempt(partial(in_geometry, diffusion, n_asked, grow=False, rng=rng))
    if first is not None and first.evidence.verdict == "product":
        issue(warned)
        return first
    best, tried, symmetries = first, [geometry], None
    uneven = is_uneven(density_of(diffusion))
    for sense, search in others:
        if not search.worth_trying(best, uneven):
            continue
        tried.append(sense)
        found, held = attempt(partial(search.find, diffusion, n_asked, rng=rng))
        if found is not None and found.evidence.symmetries is not None:
            symmetries = found.evidence.symmetries
        if found is not None and _is_better(found, best, n_asked):
            best, warned = found, held
        if best is not None and best.evidence.verdict == "product":
            break
    if not is_sound(best):
        best = (
            in_geometry(diffusion, n_asked, rng=rng)
            if first is None
            else find_in_more_functions(first, n_asked, rng=rng)
        )
        warned = warned if best is first else []
    issue(warned)
    why = "most tests are passed in it" if is_sound(best) else "no other is better"
    choice = Choice(best.evidence.sense, f"{why}, of the senses {', '.join(tried)}")
    evidence = best.evidence
    # On other shapes, symmetries mean something only beside coordinates that separate.
    if symmetries is not None and symmetries.is_homogeneous:
        evidence = replace(evidence, symmetries=symmetries)
    return replace(best, evidence=evidence, choices={**best.choices, "sense": choice})


def _may_try_others(diffusion: Diffusion) -> bool:
    """Whether other senses of a product may be tried.

    The caller must have left all that shapes the walk to the program, and the samples must be
    enough.
    """
    given = diffusion.settings
    left_to_us = (
        is_auto(given.bandwidth)
        and given.density_correction == DiffusionSettings().density_correction
        and not (given.own_search or given.precomputed or given.dense)
    )
    return left_to_us and len(diffusion.graph.distinct) >= CRITERIA["samples"].limit


def is_sound(found: Factorization | None) -> TypeGuard[Factorization]:
    """Return whether there are several factors and the coordinates on them are right."""
    if found is None or len(found.factors) < 2:
        return False
    return not _wrong(found, ("wrong", "incomplete"))


def _wrong(found: Factorization, answers: Sequence[str] = ("wrong",)) -> list[Test]:
    """Failed tests by which coordinates are wrong; all of them in the sense "separable"."""
    return [
        test
        for test in found.evidence.failed
        if CRITERIA[test.kind].coordinates in answers
        or test.net > CRITERIA[test.kind].wrong_beyond
        or found.evidence.sense == "separable"
        # A sum tells how well the axes of a Gaussian cloud are known, by a test of its own.
        if not (found.sum and test.name == "identified")
    ]


def _undivided(found: Factorization) -> Factorization:
    """Return the data as one factor, and why, where several were found with wrong coordinates.

    On 1,195 random problems, 4 of 88 such results had all factors, while 266 of 298 results with
    sound coordinates had.
    """
    why = judge({"right coordinates": len(_wrong(found))}, found=len(found.factors))
    evidence = replace(
        found.evidence,
        tests=found.evidence.failed + why,
        leakage=np.full((1, 1), np.nan),
        dependence=np.nan,
    )
    return replace(found, factors=(), evidence=evidence, sum=None)


def _is_better(candidate: Factorization, best: Factorization | None, n_asked: int | None) -> bool:
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


# Terms of a sum that are products of lengths themselves, and their factors.


def divide_terms(
    found: Factorization, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Return a sum with factors in place of each surface that is a product of lengths.

    Everything else is returned as it is, and so is a sum whose coordinates are wrong. No more
    factors are made than the caller asked for.
    """
    if found.sum is None or not is_sound(found):
        return found
    room = (n_asked or MAX_FACTORS) - len(found.factors)
    factors: list[Factor] = []
    inside: dict[int, Factorization] = {}
    choices = dict(found.choices)
    # What the caller set for the samples, such as a bandwidth, need not fit a surface.
    given = found.diffusion.settings
    spectral = DiffusionSettings(preparation="none", n_jobs=given.n_jobs, device=given.device)
    for term, factor in enumerate(found.factors):
        if factor.topology != "other" or room < 1:
            factors.append(factor)
            continue
        points = found.sum.points(found.diffusion.samples, term)
        inner, warned = attempt(partial(_inside, points, spectral, most=room + 1, rng=rng))
        if inner is None or not _is_nearly_a_product(inner):
            factors.append(factor)
            choice = Choice(1, "the surface is not a product of lengths by itself")
        else:
            issue(warned)
            inside[term] = inner
            factors += _factors_of(factor, inner)
            room -= len(inner.factors) - 1
            why = "the surface is a product of lengths by itself, or nearly"
            choice = Choice(len(inner.factors), why)
        choices[f"term {term + 1}"] = choice
    if not inside:
        return replace(found, choices=choices)
    # Placing is written for the host's side of a device.
    divided = tuple(
        DividedTerm(term, len(inner.factors), inner.diffusion.settled())
        for term, inner in inside.items()
    )
    evidence = weigh_terms(found.evidence, {term: inner.evidence for term, inner in inside.items()})
    return replace(
        found, factors=tuple(factors), evidence=evidence, divided=divided, choices=choices
    )


def _inside(
    points: np.ndarray, spectral: DiffusionSettings, *, most: int, rng: np.random.Generator
) -> Factorization:
    """Factors of a surface, at most so many."""
    diffusion = diffuse(points, spectral, rng=rng)
    # One more chance to find a product by accident.
    search = partial(find_in_functions, diffusion, strict=True, grow=False, rng=rng)
    inner = search(n_asked=None)
    return search(n_asked=most) if len(inner.factors) > most else inner


def _is_nearly_a_product(inner: Factorization) -> bool:
    """Whether a surface is to be divided: its motions may change each other a little.

    Spheroids and other surfaces of revolution fail "product" as well, a sheared torus "skew": they
    stay whole.
    """
    right = all(CRITERIA[test.kind].coordinates == "right" for test in inner.evidence.failed)
    return is_sound(inner) and right and not inner.evidence.fails("skew")


def _factors_of(term: Factor, inner: Factorization) -> list[Factor]:
    """The factors of a divided term, as factors of the sum."""
    sure = np.where(inner.diffusion.graph.outliers, 0.0, term.confidence)
    return [
        replace(
            factor,
            confidence=np.minimum(factor.confidence, sure),
            # They are not combinations of the functions of the samples.
            coefficients=np.empty((0, factor.functions.shape[1])),
        )
        for factor in inner.factors
    ]


# What is said of the result.


def judged(
    found: Factorization,
    diffusion: Diffusion,
    settings: FactoringSettings,
    *,
    noise: np.ndarray | None,
    rng: np.random.Generator,
) -> Factorization:
    """Return the result with the test of known noise and with what was chosen; warn of "none"."""
    none = found.evidence.verdict == "none"
    # After all else, so that the factors are the same with and without it.
    if noise is not None and not none:
        shares = signal_shares(found, noise, rng=rng)
        found = replace(found, evidence=weigh_noise(found.evidence, shares))
    # Whoever asks for one factor needs no warning of it.
    if none and settings.n_asked != 1:
        warn_caller(
            f"{found.evidence.finding[:-1]}: {found.evidence.reason}.", NoProductStructureWarning
        )
    # Outliers lie where their nearest neighbour lies, which says nothing about them.
    outliers = diffusion.graph.outliers
    factors = tuple(
        replace(factor, confidence=np.where(outliers, 0.0, factor.confidence))
        for factor in found.factors
    )
    method = given(settings.method)
    if settings.method == FactoringSettings().method:
        method = Choice(settings.method, "the default: it also finds the number of factors")
    choices = {**found.choices, "method": method, "factors": _choice_of_factors(found, settings)}
    count = len(found.diffusion.distinct.eigenvalues)
    if count > len(diffusion.distinct.eigenvalues) and found.evidence.sense == "geometry":
        choices["functions"] = Choice(
            count, "more than usual: the factors first found had fewer dimensions than the data"
        )
    return replace(found, factors=factors, choices=choices)


def signal_shares(
    found: Factorization, noise: np.ndarray, *, rng: np.random.Generator
) -> list[float]:
    """Return the share of each factor's variance that noise of known size leaves.

    Noise of the same size is added to the samples once more; how far it moves the places estimates
    how far the noise already present has moved them.

    Shapes: noise (n_features,).
    """
    # Placing is written for the host's side of a device.
    found = found.settled()
    samples, preparation = found.diffusion.samples, found.diffusion.preparation
    noisy = samples + prepared_noise(noise, len(samples), preparation=preparation, rng=rng)
    moved = place_blocks(noisy, make_placer(found, n_new=len(noisy)))
    pairs = zip(found.factors, moved, strict=True)
    return [signal_share(factor.embedding, after.embedding) for factor, after in pairs]


def _choice_of_factors(found: Factorization, settings: FactoringSettings) -> Choice:
    count = len(found.factors)
    if settings.n_asked == count:
        return given(count)
    if settings.n_asked is not None:
        return Choice(count, f"no more of the {settings.n_asked} asked for were found")
    if found.evidence.verdict == "none":
        return Choice(count, "no product structure was found")
    kind = "sum" if found.sum else settings.method
    if found.evidence.sense == "separable":
        kind = "separable"
    return Choice(count, WHY_SO_MANY["divided sum" if found.divided else kind])


WHY_SO_MANY = {
    "gradients": (
        "so many blocks of eigenfunctions have orthogonal gradients, beyond the samples' own noise"
    ),
    "separable": "so many coordinates, or groups of them, separate",
    "sum": "so many independent terms add up to the samples, and leave noise",
    "divided sum": (
        "independent terms add up to the samples, and a surface among them is a "
        "product of lengths by itself"
    ),
    "triplets": "the fewest groups that separate nearly all pairs in triplets",
}
