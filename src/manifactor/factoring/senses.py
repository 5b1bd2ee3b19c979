"""Factors in one sense of a product after the other, until one makes the data one."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from manifactor._support.choices import Choice
from manifactor._support.errors import NothingFoundError
from manifactor._support.warning import held_warnings, issue
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.from_functions import find_in_functions
from manifactor.factoring.from_samples import find_in_samples
from manifactor.factoring.judging.one_factor import density_of
from manifactor.factoring.settings import FactoringSettings, is_auto
from manifactor.spectral.diffusion import Diffusion
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
    other = other_sense(diffusion, settings=settings.senses, rng=rng)
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
