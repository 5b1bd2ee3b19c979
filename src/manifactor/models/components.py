"""Independent components as factors: single ones are intervals, pairs may be circles.

Of the leading principal components, or of the lowest functions of a diffusion. These need not be a
product or a sum: a map that bends and stretches the factors is often linear enough in its leading
directions, where independence alone (Comon, 1994; FastICA by Hyvarinen, 1999) finds the factors.
"""

import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from manifactor.factors.shapes import is_closed, unit_vectors
from manifactor.models.sums.independence import Directions
from manifactor.models.sums.sheets import lay_sheet
from manifactor.models.sums.summands import Sum, Summand
from manifactor.statistics import matched_r2, predictability, random_rows

# Samples that components are found in, and that are compared.
MOST_SAMPLES, COMPARED = 3000, 1000
# Numbers of leading values whose components are looked at. Further ones are overtones of the first
# and depend on them, so that their components are mixtures: with the truth of weak networks, those
# of two functions have an R^2 of .96, those of six .4.
LEADING = (2, 3, 4, 6)
# R^2 with which a component predicts another of the same factor. Between independent ones it is
# below .1 at so many samples.
DEPENDENT = 0.2
# The least share of the values that a further factor explains.
OWN_SHARE = 0.02
# Least R^2 of components with those of either half of the samples. Right ones of 1,500 samples had
# .99 and more, 12 of 12; those of Gaussian clouds, whose axes are of chance, .91 at most.
LEAST_AGREEMENT = 0.95


def independent_curves(
    values: np.ndarray, counts: Sequence[int], *, rng: np.random.Generator
) -> tuple[list[np.ndarray], float]:
    """Return independent curves that explain the most of values, as many as one of `counts`.

    A curve is a matrix, (q, 1 or 2), from values to an interval or a circle. There are none where
    no components are independent, or halves of the samples show others. The number is the R^2 of
    places with those by the better half.

    Shapes: values (n, q) of mean 0, the first ones leading; their deviations say what counts.
    """
    values = values[random_rows(len(values), MOST_SAMPLES)]
    halves = np.array_split(rng.permutation(len(values)), 2)
    best, agreement, least = list[np.ndarray](), 0.0, -np.inf
    for count in counts:
        score, curves, leading = max(
            (_most_explained(values, count, leading, rng) for leading in LEADING),
            key=lambda found: found[0],
        )
        if not curves or score < least:
            continue
        again = (_most_explained(values[half], count, leading, rng)[1] for half in halves)
        places = [values @ curve for curve in curves]
        agreed = [matched_r2(places, [values @ curve for curve in others]) for others in again]
        if min(agreed) >= LEAST_AGREEMENT:
            best, agreement, least = curves, max(agreed), score + OWN_SHARE
    return best, agreement


def _most_explained(
    values: np.ndarray, count: int, leading: int, rng: np.random.Generator
) -> tuple[float, list[np.ndarray], int]:
    """Return so many independent curves of the leading values, and what they explain of all.

    What they tell of each other is taken off; -inf where no curves are independent.
    """
    if not count <= leading <= values.shape[1]:
        return -np.inf, [], leading
    curves = _curves(values, leading, rng)
    some = values[random_rows(len(values), COMPARED)]
    places = [_places(some, curve) for curve in curves]
    depends = _dependence(places)
    spread = np.cov(values, rowvar=False)
    linear = [float(((curve.T @ spread) ** 2).sum()) for curve in curves]
    sets = [
        chosen
        for chosen in map(list, combinations(range(len(curves)), count))
        if depends[np.ix_(chosen, chosen)].max() < DEPENDENT
    ]
    sets.sort(key=lambda chosen: -sum(linear[i] for i in chosen))
    best: tuple[float, list[np.ndarray], int] = (-np.inf, [], leading)
    # Only the sets that explain the most linearly are compared by more than that.
    for chosen in sets[:2]:
        told = predictability(np.hstack([places[i] for i in chosen]), some)
        share = np.average(told, weights=some.std(axis=0))
        score = float(share - depends[np.ix_(chosen, chosen)].max())
        if score > best[0]:
            best = score, [curves[i] for i in chosen], leading
    return best


def _curves(values: np.ndarray, leading: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Independent components of the leading values, and pairs of them on a closed curve."""
    axes, strength, rows = np.linalg.svd(values[:, :leading], full_matrices=False)
    white = rows.T / strength * np.sqrt(len(values))
    seed = int(rng.integers(2**31))
    ica = FastICA(whiten=False, max_iter=40, tol=1e-3, random_state=seed)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        ica.fit(axes * np.sqrt(len(values)))
    components = np.zeros((values.shape[1], leading))
    components[:leading] = white @ ica.components_.T
    singles = [components[:, [i]] for i in range(leading)]
    some = values[random_rows(len(values), COMPARED)]

    def is_circle(pair: np.ndarray) -> bool:
        # The radius of a square varies by .36, that of a disc by .35.
        radius = np.linalg.norm(some @ pair, axis=1)
        return bool(radius.std() < 0.3 * radius.mean()) and is_closed(some @ pair, some[:, :0])

    return [*singles, *filter(is_circle, map(np.hstack, combinations(singles, 2)))]


def _places(values: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Places on an interval, or directions around a circle."""
    places = values @ curve
    return places if places.shape[1] == 1 else unit_vectors(places)


def _dependence(places: Sequence[np.ndarray]) -> np.ndarray:
    """R^2 with which places predict others, the larger way round; 1 for parts of one circle."""
    widths = [place.shape[1] for place in places]
    ends = np.cumsum(widths)[:-1]
    rows = (np.split(predictability(place, np.hstack(places)), ends) for place in places)
    depends = np.array([[columns.max() for columns in row] for row in rows])
    # The cosine of an angle predicts no mean of its sine.
    for circle in np.flatnonzero(np.array(widths) == 2):
        parts = np.flatnonzero(depends[circle] > 0.7)
        depends[np.ix_(parts, parts)] = 1.0
    np.fill_diagonal(depends, 0.0)
    return np.maximum(depends, depends.T)


def linear_sum(directions: Directions, samples: np.ndarray, curves: Sequence[np.ndarray]) -> Sum:
    """Return the sum of curves, (q, 1 or 2) each, on which places are linear in samples.

    Shapes: samples (n, n_features).
    """
    shown = directions(samples[random_rows(len(samples), MOST_SAMPLES)])
    terms, left = [], shown
    for curve in curves:
        start = curve @ np.linalg.lstsq(shown @ curve, shown, rcond=None)[0]
        topology = "interval" if curve.shape[1] == 1 else "circle"
        sheet = lay_sheet(_places(shown, curve), topology, shown @ start)
        means = sheet.project(shown @ start).means
        left = left - means
        terms.append(Summand(sheet, start, float(means.var(axis=0).sum()), sheet.explained))
    terms.sort(key=lambda term: -term.variance)
    share = float((left**2).sum() / (shown**2).sum())
    return Sum(directions, tuple(terms), share, noise_left=False, rounds=0)
