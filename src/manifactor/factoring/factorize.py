"""Diffusion to factorization: the methods, and what is said of their results."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from manifactor._support.choices import Choice, given
from manifactor._support.warning import warn_caller
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factors.factor import Factor, selection
from manifactor.factoring.from_functions import described, described_factors, one_factor
from manifactor.factoring.judging.evidence import NoProductStructureWarning
from manifactor.factoring.judging.one_factor import weigh_line
from manifactor.factoring.judging.weighing import (
    weigh_asked,
    weigh_groups,
    weigh_no_groups,
    weigh_noise,
)
from manifactor.factoring.noisy_places import signal_shares
from manifactor.factoring.senses import FINDERS, find_in_all_senses, find_in_sense
from manifactor.factoring.settings import FactoringSettings, require_factoring
from manifactor.factoring.terms import divide_terms
from manifactor.factoring.triplets.grouping import group_functions
from manifactor.spectral.diffusion import Diffusion


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
        settings=settings.grouping,
        rng=rng,
    )
    if not grouping.groups:
        evidence = weigh_no_groups(grouping, settings=settings.evidence)
        whole = one_factor(diffusion, evidence, settings)
        return replace(whole, triplets=grouping.triplets)
    blocks = [selection(spectrum, group) for group in grouping.groups]
    factors = described_factors(spectrum, blocks, settings)
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
    on_line = settings if line is None else settings.of_line
    if settings.n_asked == 1:
        asked = weigh_asked(settings=settings.evidence)
        return one_factor(diffusion, asked, on_line)
    return None if line is None else one_factor(diffusion, line, on_line)


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
