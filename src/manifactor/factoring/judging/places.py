"""Tests that need places and samples only: the same for every method."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from manifactor._support.threads import map_threads
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.judging.criteria import judges
from manifactor.factoring.judging.criterion import Test
from manifactor.factoring.judging.limits import EvidenceSettings
from manifactor.factoring.measures.evenness import (
    EvennessSettings,
    clusters,
    clusters_in_words,
    clusters_of_function,
)
from manifactor.factoring.measures.filling import filling
from manifactor.factoring.measures.folding import folds
from manifactor.factoring.measures.gaussianity import gaussian_factors
from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.measures.metric import crossing, metric_halves, modulation_in_data, skew
from manifactor.factoring.measures.placed_samples import PlacedSamples, place_samples
from manifactor.factoring.measures.poles import poles
from manifactor.factoring.measures.settings import PlaceTestSettings
from manifactor.spectral.diffusion import Diffusion

OF_EVERY_LENGTH = ("folds", "filling", "skew", "crossing", "modulation in data")
# What must hold in each sense of a product. Lengths may change with the density in "volume", but
# never vanish; functions that add up need not be orthogonal everywhere in "sum".
TESTS_OF_SENSES: dict[str, tuple[str, ...]] = {
    "geometry": (*OF_EVERY_LENGTH, "identified"),
    "density": (*OF_EVERY_LENGTH, "identified"),
    "volume": ("folds", "filling", "skew", "crossing", "poles", "identified"),
    "sum": ("folds", "filling", "skew", "modulation in data", "identified"),
}


def judge_places(
    factors: Sequence[Factor],
    samples: np.ndarray,
    *,
    inliers: np.ndarray | None = None,
    sense: str = "geometry",
    settings: EvidenceSettings = EvidenceSettings(),
    testing: PlaceTestSettings = PlaceTestSettings(),
) -> tuple[Test, ...]:
    """Return the tests of places on several factors, for one sense of a product.

    Shapes: samples (n, p), inliers (n,).
    """
    placed = place_samples(
        [factor.embedding for factor in factors],
        [factor.dimension for factor in factors],
        samples,
        inliers=inliers,
        settings=testing.placed,
    )
    names = TESTS_OF_SENSES[sense]
    measures = _measures(placed, samples, testing)
    others = [name for name in names if name in measures]
    metric, *rest = map_threads(
        lambda measure: measure(),
        [partial(_of_metric, placed, testing), *(measures[name] for name in others)],
    )
    found = {**metric, **dict(zip(others, rest, strict=True))}
    judge = judges(settings)
    # Limits follow the number of all samples, which places are made from.
    return tuple(
        judge[name](found[name].value, found[name].noise, n_samples=len(samples)) for name in names
    )


def judge_places_of(
    diffusion: Diffusion,
    factors: Sequence[Factor],
    *,
    sense: str,
    settings: EvidenceSettings = EvidenceSettings(),
    testing: PlaceTestSettings = PlaceTestSettings(),
) -> tuple[Test, ...]:
    """Return `judge_places` of a diffusion's samples; () if only distances are known.

    Outliers are left out.
    """
    if diffusion.points is None:
        return ()
    return judge_places(
        factors,
        diffusion.points,
        inliers=~diffusion.graph.outliers,
        sense=sense,
        settings=settings,
        testing=testing,
    )


def _measures(
    placed: PlacedSamples, samples: np.ndarray, testing: PlaceTestSettings
) -> dict[str, Callable[[], Measurement]]:
    """Functions that measure all but the metric, by the name of the test."""
    return {
        "folds": partial(folds, placed, settings=testing.folds),
        "filling": partial(filling, placed, settings=testing.filling),
        "poles": partial(poles, placed.places, placed.samples, settings=testing.poles),
        "identified": partial(gaussian_factors, placed, samples, settings=testing.gaussian),
    }


def _of_metric(placed: PlacedSamples, testing: PlaceTestSettings) -> dict[str, Measurement]:
    """What the metric in two halves of the samples shows, by the name of the test."""
    halves = metric_halves(placed)
    measures = {"skew": skew, "crossing": crossing, "modulation in data": modulation_in_data}
    return {name: measure(halves, settings=testing.metric) for name, measure in measures.items()}


def clusters_of_factors(
    factors: Sequence[Factor], *, settings: EvennessSettings = EvennessSettings()
) -> str:
    """Return a phrase on factors along which samples fall into clusters, or "".

    >>> clusters_of_factors([])
    ''
    """
    phrases = []
    for number, factor in enumerate(factors, start=1):
        shares = _clusters_of(factor, settings)
        if len(shares) > 1:
            phrases.append(f"{clusters_in_words(shares)}, along factor {number}")
    return f"the samples fall into {'; '.join(phrases)}" if phrases else ""


def _clusters_of(factor: Factor, settings: EvennessSettings) -> tuple[float, ...]:
    if factor.coordinate is None:
        return clusters_of_function(factor.functions[:, 0], settings=settings)
    closed = factor.topology == "circle"
    return clusters(factor.coordinate, closed=closed, settings=settings)
