"""Terms of a sum that are products of lengths themselves, and their factors."""

from dataclasses import replace

import numpy as np

from manifactor._support.choices import Choice
from manifactor._support.errors import NothingFoundError
from manifactor._support.warning import held_warnings, issue
from manifactor.factoring.factorization import DividedTerm, Factorization
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.from_functions import find_in_functions
from manifactor.factoring.judging.terms import weigh_terms
from manifactor.factoring.senses import is_sound
from manifactor.factoring.settings import FactoringSettings
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.settings import DiffusionSettings

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
    most = settings.n_asked or settings.peeling.max_factors
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
