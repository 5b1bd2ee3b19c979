"""How much coordinates on the factors, called places, tell of each other and of the samples."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata
from sklearn.decomposition import PCA

from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.prediction import predictability, thinned
from manifactor.factoring.sums.independence import independent_parts, principal_coordinates

# Permutations of the places, which make 1/200 the smallest p-value.
PERMUTATIONS = 199


def leakage(factors: Sequence[Factor]) -> np.ndarray:
    """Return the R^2 with which places on each factor predict each other factor.

    Returns (n_factors, n_factors).
    """
    out = np.full((len(factors), len(factors)), np.nan)
    for i, source in enumerate(factors):
        others = [j for j in range(len(factors)) if j != i]
        targets = [factors[j].embedding for j in others]
        # All others at once, since the search for neighbours is what takes time.
        columns = predictability(source.embedding, np.hstack(targets))
        ends = np.cumsum([target.shape[1] for target in targets])[:-1]
        out[i, others] = [part.mean() for part in np.split(columns, ends)]
    return out


def dependence(
    factors: Sequence[Factor], *, by_ranks: bool = True, rng: np.random.Generator
) -> float:
    """Return the permutation p-value of independent places.

    The statistic is the sum of squared correlations between features of the factors' places:
    coordinates, their squares and products. For an interval these are, with `by_ranks`, waves of
    its ranks, which see more: also errors of places that were read off functions, which are flat at
    the ends of an interval.
    """
    thin = thinned(len(factors[0].embedding), 5000)
    first, *others = (_features(factor.embedding[thin], by_ranks) for factor in factors)
    # One factor stays in place: only the order relative to it matters.
    seen = _correlation([first, *others])
    at_least_as_large = 0
    for _ in range(PERMUTATIONS):
        shuffled = [f.take(rng.permutation(len(f)), axis=0) for f in others]
        at_least_as_large += _correlation([first, *shuffled]) >= seen
    # The order that was seen is one of the permutations (Phipson and Smyth, 2010).
    return float((1 + at_least_as_large) / (1 + PERMUTATIONS))


def _correlation(features: Sequence[np.ndarray]) -> float:
    """Sum of squared correlations between orthonormal features of all pairs."""
    total = 0.0
    for i, one in enumerate(features):
        for other in features[:i]:
            total += float(((one.T @ other) ** 2).sum())
    return total


def _features(places: np.ndarray, by_ranks: bool) -> np.ndarray:
    """Functions of places that tell them apart, centred and made orthonormal."""
    is_interval = places.shape[1] == 1
    features = _waves(places) if is_interval and by_ranks else _squares(places)
    # The square of a circle's cosine is 1 less that of its sine: one of them is redundant, and
    # rounding must not make a feature of it.
    centred = features - features.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, strength > 1e-3 * strength[0]]


def _waves(places: np.ndarray) -> np.ndarray:
    """Cosines of ranks, (n, r).

    Six of them: the width of a square that stands on its corner is one of two waves, in each of two
    clusters of four.
    """
    ranks = rankdata(places[:, 0]) / len(places)
    return np.cos(np.pi * np.outer(ranks, np.arange(1, 7)))


def _squares(places: np.ndarray) -> np.ndarray:
    """Places, their squares and their products."""
    i, j = np.triu_indices(places.shape[1])
    scaled = (places - places.mean(axis=0)) / places.std()
    return np.column_stack([scaled, scaled[:, i] * scaled[:, j]])


# How much of the samples the factors explain.


def explained(factors: Sequence[Factor], samples: np.ndarray | None, inliers: np.ndarray) -> float:
    """Return the smallest R^2 with which all factors predict a main direction.

    Shapes: samples (n_samples, n_features), inliers (n_samples,).
    """
    if samples is None:
        return 1.0
    rows = thinned(np.flatnonzero(inliers), 20_000)
    # Places in units of length: a function's gradient is the root of its eigenvalue.
    places = np.hstack(
        [f.embedding[rows] / (f.embedding.std() * np.sqrt(f.eigenvalues[0])) for f in factors]
    )
    samples = samples[rows]
    count = min(20, *samples.shape)
    pca = PCA(count, svd_solver="auto", random_state=0)
    scores = pca.fit_transform(samples)
    main = scores[:, pca.explained_variance_ratio_ > 0.01]
    return float(predictability(places, main).min(initial=1.0))


def least_explained_part(
    factors: Sequence[Factor], samples: np.ndarray | None, inliers: np.ndarray
) -> float:
    """Return the smallest R^2 with which all factors predict an independent part.

    A factor much smaller than the others has its functions beyond the computed spectrum and adds
    little to any distance. Where distances of the factors add up it is still a linear part of the
    samples that is independent of all others and no Gaussian noise. 1 where there is no such part.

    Shapes: samples (n_samples, n_features), inliers (n_samples,).
    """
    if samples is None:
        return 1.0
    rows = thinned(np.flatnonzero(inliers), 4000)
    centred = samples[rows] - samples[rows].mean(axis=0)
    coordinates, _ = principal_coordinates(centred)
    places = np.hstack([factor.embedding[rows] / factor.embedding.std() for factor in factors])
    parts = [
        coordinates @ part.reading for part in independent_parts(coordinates) if not part.gaussian
    ]
    if not parts:
        return 1.0
    # All parts at once, since the search for neighbours is what takes time.
    r2 = predictability(places, np.hstack(parts))
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return float(min(share.mean() for share in np.split(r2, ends)))
