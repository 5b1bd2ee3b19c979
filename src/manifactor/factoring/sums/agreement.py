"""Whether half of the samples show the same factors of a sum."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from manifactor.factoring.prediction import PredictionSettings, predictability, thinned
from manifactor.factoring.sums.summands import Sum


@dataclass(frozen=True)
class AgreementSettings:
    """Settings of `agreement`."""

    # Samples whose places on the factors of both are compared.
    samples: int = 1000
    # The other half is not peeled if the first agrees better than this.
    enough: float = 0.9
    prediction: PredictionSettings = field(default_factory=PredictionSettings)


def agreement(
    found: Sum,
    samples: np.ndarray,
    peel: Callable[[np.ndarray], Sum],
    *,
    settings: AgreementSettings = AgreementSettings(),
    rng: np.random.Generator,
) -> float:
    """Return the least R^2 with which half of the samples gives the same places.

    Shapes: samples (n_samples, n_features).
    """
    shown = samples[thinned(len(samples), settings.samples)]
    best = 0.0
    for rows in np.array_split(rng.permutation(len(samples)), 2):
        half = peel(samples[rows])
        best = max(best, _agreed(found, half, shown, settings))
        if best > settings.enough:
            break
    return best


def _agreed(first: Sum, second: Sum, samples: np.ndarray, settings: AgreementSettings) -> float:
    """Least R^2 between the factors of two sums, matched one to one."""
    if len(first.summands) != len(second.summands):
        return 0.0
    ours, theirs = first.explain(samples).places, second.explain(samples).places
    table = np.array([[_alike(a, b, settings) for b in theirs] for a in ours])
    return float(table[linear_sum_assignment(-table)].min())


def _alike(a: np.ndarray, b: np.ndarray, settings: AgreementSettings) -> float:
    """R^2 with which two arrays of places predict each other, the lesser one."""
    there = predictability(a, b, settings=settings.prediction).mean()
    back = predictability(b, a, settings=settings.prediction).mean()
    return float(min(there, back))
