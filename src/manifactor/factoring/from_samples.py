"""Factors found in the samples themselves: terms of a sum."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.judging.criterion import Test
from manifactor.factoring.judging.places import judge_places_of
from manifactor.factoring.judging.weighing import weigh_sum
from manifactor.factoring.measures.measurement import NOT_MEASURED
from manifactor.factoring.settings import FactoringSettings
from manifactor.factoring.sums.agreement import agreement
from manifactor.factoring.sums.directions import far_off
from manifactor.factoring.sums.peeling import peel_samples
from manifactor.spectral.diffusion import Diffusion


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
    far = far_off(diffusion.points, settings=settings.sums.directions)
    samples = diffusion.points[~(diffusion.graph.outliers & far)]
    peel = partial(
        peel_samples,
        max_factors=settings.n_asked or settings.peeling.max_factors,
        n_neighbors=diffusion.n_neighbors,
        settings=settings.sums,
        rng=rng,
    )
    found = peel(samples)
    factors = found.factors(diffusion.points)
    agreed = NOT_MEASURED
    # Halves of a handful of samples show nothing.
    if len(factors) > 1 and len(samples) >= settings.evidence.samples:
        agreed = agreement(found, samples, peel, settings=settings.agreement, rng=rng)
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
