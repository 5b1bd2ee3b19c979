"""How much places on one factor tell of places on another."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.measures.settings import MeasureSettings
from manifactor.factoring.prediction import predictability, thinned


def leakage(
    factors: Sequence[Factor], *, settings: MeasureSettings = MeasureSettings()
) -> np.ndarray:
    """Return the R^2 with which places on each factor predict each other factor.

    Returns (n_factors, n_factors).
    """
    out = np.full((len(factors), len(factors)), np.nan)
    for i, source in enumerate(factors):
        others = [j for j in range(len(factors)) if j != i]
        targets = [factors[j].embedding for j in others]
        # All others at once, since the search for neighbours is what takes time.
        columns = predictability(source.embedding, np.hstack(targets), settings=settings.prediction)
        ends = np.cumsum([target.shape[1] for target in targets])[:-1]
        out[i, others] = [part.mean() for part in np.split(columns, ends)]
    return out


def dependence(
    factors: Sequence[Factor],
    *,
    by_ranks: bool = True,
    settings: MeasureSettings = MeasureSettings(),
    rng: np.random.Generator,
) -> float:
    """Return the permutation p-value of independent places.

    The statistic is the sum of squared correlations between features of the factors' places:
    coordinates, their squares and products. For an interval these are, with `by_ranks`, waves of
    its ranks, which see more: also errors of places that were read off functions, which are flat at
    the ends of an interval.
    """
    thin = thinned(len(factors[0].embedding), settings.compared_samples)
    first, *others = (_features(factor.embedding[thin], by_ranks, settings) for factor in factors)
    # One factor stays in place: only the order relative to it matters.
    seen = _correlation([first, *others])
    at_least_as_large = 0
    for _ in range(settings.permutations):
        shuffled = [f.take(rng.permutation(len(f)), axis=0) for f in others]
        at_least_as_large += _correlation([first, *shuffled]) >= seen
    # The order that was seen is one of the permutations (Phipson and Smyth, 2010).
    return float((1 + at_least_as_large) / (1 + settings.permutations))


def _correlation(features: Sequence[np.ndarray]) -> float:
    """Sum of squared correlations between orthonormal features of all pairs."""
    total = 0.0
    for i, one in enumerate(features):
        for other in features[:i]:
            total += float(((one.T @ other) ** 2).sum())
    return total


def _features(places: np.ndarray, by_ranks: bool, settings: MeasureSettings) -> np.ndarray:
    """Functions of places that tell them apart, centred and made orthonormal."""
    is_interval = places.shape[1] == 1
    features = _waves(places, settings) if is_interval and by_ranks else _squares(places)
    # The square of a circle's cosine is 1 less that of its sine: one of them is redundant, and
    # rounding must not make a feature of it.
    centred = features - features.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, strength > settings.independent_feature * strength[0]]


def _waves(places: np.ndarray, settings: MeasureSettings) -> np.ndarray:
    """Cosines of ranks, (n, r)."""
    ranks = rankdata(places[:, 0]) / len(places)
    return np.cos(np.pi * np.outer(ranks, np.arange(1, 1 + settings.waves)))


def _squares(places: np.ndarray) -> np.ndarray:
    """Places, their squares and their products."""
    i, j = np.triu_indices(places.shape[1])
    scaled = (places - places.mean(axis=0)) / places.std()
    return np.column_stack([scaled, scaled[:, i] * scaled[:, j]])
