"""Diffusion to factorization: the methods, and the result they share."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from manifactor._support.choices import Choice, given
from manifactor.factoring.blocks import as_many_as, peel_all_dimensions
from manifactor.factoring.deflation import WalkSpectrum, deflate
from manifactor.factoring.division import Split
from manifactor.factoring.evidence import Evidence, NoProductStructureWarning
from manifactor.factoring.factor import Factor, make_factors, selection
from manifactor.factoring.gradients import Geometry, beside_constant
from manifactor.factoring.grouping import group_functions
from manifactor.factoring.maxcut import Cut
from manifactor.factoring.placement import signal_shares
from manifactor.factoring.settings import FactoringSettings, require_factoring
from manifactor.factoring.triplets import Triplets
from manifactor.factoring.verdict import (
    weigh,
    weigh_asked,
    weigh_groups,
    weigh_no_groups,
    weigh_noise,
    weigh_one,
    weigh_sum,
)
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.kernel import affinity
from manifactor.spectral.pipeline import kernel_options
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True, repr=False)
class Factorization:
    """Factors, the evidence for them, and the diffusion they were found in.

    Attributes
    ----------
    factors : tuple of Factor
        The one with the smallest eigenvalue first.
    evidence : Evidence
    diffusion : Diffusion
        The one that was given, or one of more functions where those were needed.
    splits : tuple of Split
        How batches of functions fell into blocks, by `method="gradients"`.
    triplets : Triplets or None
    cut : Cut or None
        By `method="triplets"`.
    choices : dict of str to Choice
        "method" and "factors", and "functions" where more of them were computed than
        given.
    """

    factors: tuple[Factor, ...]
    evidence: Evidence
    diffusion: Diffusion
    splits: tuple[Split, ...] = ()
    triplets: Triplets | None = None
    cut: Cut | None = None
    choices: dict[str, Choice] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Factorization({self.evidence.verdict}, {list(self.factors)})"

    def settled(self) -> "Factorization":
        """Return the same with everything in the host's memory."""
        return replace(self, diffusion=self.diffusion.settled())


class Method(Protocol):
    """A method: a function from a diffusion to a factorization."""

    def __call__(
        self,
        diffusion: Diffusion,
        settings: FactoringSettings,
        *,
        rng: np.random.Generator,
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

    Parameters
    ----------
    diffusion : Diffusion
    settings : FactoringSettings
    noise : ndarray of shape (n_features,) or None
        Standard deviation of the noise in each column of the samples, where it is
        known: the evidence then has a test of reliability. Deflation places no other
        samples than its own, so that it has none.
    rng : numpy.random.Generator
    """
    # The number of functions is known only now; all else was checked by the estimator.
    n_functions = len(diffusion.distinct.eigenvalues)
    require_factoring(settings, n_functions=n_functions)
    found = METHODS[settings.method](diffusion, settings, rng=rng)
    # After all else, so that the factors are the same with and without it.
    if noise is not None:
        found = _with_noise_weighed(found, noise, settings, rng)
    # Whoever asks for one factor needs no warning of it.
    if found.evidence.verdict == "none" and settings.n_asked != 1:
        warnings.warn(
            f"No product structure was found: {found.evidence.reason}.",
            NoProductStructureWarning,
            stacklevel=3,
        )
    return replace(
        found,
        factors=_without_confidence_in_outliers(found.factors, diffusion),
        choices=_choices(found, settings, n_functions),
    )


def _without_confidence_in_outliers(
    factors: Sequence[Factor], diffusion: Diffusion
) -> tuple[Factor, ...]:
    """The factors with confidence 0 for outliers.

    They lie where their nearest neighbour lies, which says nothing about them.
    """
    outliers = diffusion.graph.outliers
    return tuple(
        replace(factor, confidence=np.where(outliers, 0.0, factor.confidence))
        for factor in factors
    )


def by_gradients(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find factors by orthogonal gradients.

    Blocks of pure functions are peeled off, in the whole sample and in its halves.
    """
    if settings.n_asked == 1:
        return _one_asked_for(diffusion, settings)
    peeled = peel_all_dimensions(diffusion, settings, rng)
    diffusion, peeling = peeled.diffusion, peeled.peeling
    purity = settings.peeling.purity
    blocks = as_many_as(settings.n_asked, peeling, settings=purity)
    if len(blocks) == 1:
        # One limit, not two: what peeling refuses, the test of it fails.
        limits = replace(
            settings.evidence, further_product=settings.peeling.products.min_share
        )
        evidence = weigh_one(peeling, peeled.dimensions, settings=limits)
        whole = _one_factor(diffusion, evidence, settings)
        return replace(whole, splits=peeling.splits)
    factors = _factors(
        diffusion.spectrum,
        [beside_constant(block) for block in blocks],
        settings,
        peeling.looks[0].geometry,
    )
    evidence = weigh(
        diffusion,
        factors,
        peeling,
        peeled.dimensions,
        settings=settings.evidence,
        measuring=settings.measures,
        peeled_with=settings.peeling,
        rng=rng,
    )
    return Factorization(factors, evidence, diffusion, peeling.splits)


def by_deflation(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find two factors of an additive embedding, each in what the other leaves."""
    if diffusion.points is None:
        raise ValueError(
            "`method='deflation'` subtracts samples; pass them, not a precomputed "
            "graph of distances."
        )
    start = WalkSpectrum(diffusion.graph, diffusion.affinity, diffusion.distinct)
    factors, explained = deflate(
        diffusion.points,
        start,
        n_neighbors=diffusion.n_neighbors,
        walk_of=partial(affinity, **kernel_options(diffusion.settings)),
        settings=settings.deflation,
        gradients=settings.gradients,
        rng=rng,
    )
    evidence = weigh_sum(
        factors,
        explained,
        settings=settings.evidence,
        measuring=settings.measures,
        rng=rng,
    )
    return Factorization(factors, evidence, diffusion)


def by_triplets(
    diffusion: Diffusion, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find factors by the paper's algorithm: triplets, separability, maximum cut."""
    spectrum = diffusion.spectrum
    if settings.n_asked == 1:
        return _one_asked_for(diffusion, settings)
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
        whole = _one_factor(diffusion, evidence, settings)
        return replace(whole, triplets=grouping.triplets)
    blocks = [selection(spectrum, group) for group in grouping.groups]
    factors = _factors(spectrum, blocks, settings)
    evidence = weigh_groups(
        spectrum,
        factors,
        grouping,
        n_asked=settings.n_asked,
        settings=settings.evidence,
        measuring=settings.measures,
    )
    return Factorization(
        factors, evidence, diffusion, triplets=grouping.triplets, cut=grouping.cut
    )


METHODS: dict[str, Method] = {
    "gradients": by_gradients,
    "deflation": by_deflation,
    "triplets": by_triplets,
}


def _factors(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    settings: FactoringSettings,
    geometry: Geometry | None = None,
) -> tuple[Factor, ...]:
    return make_factors(
        spectrum,
        blocks,
        geometry=geometry,
        settings=settings.factors,
        gradients=settings.gradients,
    )


def _one_asked_for(diffusion: Diffusion, settings: FactoringSettings) -> Factorization:
    """The data as the one factor that was asked for."""
    return _one_factor(diffusion, weigh_asked(settings=settings.evidence), settings)


def _one_factor(
    diffusion: Diffusion, evidence: Evidence, settings: FactoringSettings
) -> Factorization:
    """The data as one factor, which the lowest functions describe."""
    spectrum = diffusion.spectrum
    last = min(1 + settings.one_factor_functions, len(spectrum.eigenvalues))
    block = selection(spectrum, range(1, last))
    return Factorization(_factors(spectrum, [block], settings), evidence, diffusion)


def _with_noise_weighed(
    found: Factorization,
    noise: np.ndarray,
    settings: FactoringSettings,
    rng: np.random.Generator,
) -> Factorization:
    """The same with a test of what the noise leaves of the places."""
    can_place = all(factor.chart is not None for factor in found.factors)
    if found.evidence.verdict == "none" or not can_place:
        return found
    # Placing is written for the host's side of a device.
    shares = signal_shares(
        found.factors,
        found.diffusion.settled(),
        noise,
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
    if count > n_functions:
        choices["functions"] = Choice(
            count,
            "more than usual: the factors first found had fewer dimensions than the "
            "data",
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
    return Choice(count, WHY_SO_MANY[settings.method])


WHY_SO_MANY = {
    "gradients": (
        "so many blocks of functions have orthogonal gradients, beyond the samples' "
        "own noise"
    ),
    "deflation": "deflation finds two factors, no more and no fewer",
    "triplets": "the fewest groups that separate nearly all pairs in triplets",
}
