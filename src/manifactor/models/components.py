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
from manifactor.statistics import predictability, random_rows

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


def independent_curves(
    values: np.ndarray, counts: Sequence[int], *, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return independent curves that explain the most of values, as many as one of `counts`.

    A curve is a matrix, (q, 1 or 2), from values to an interval or a circle. There are none where
    no components are independent.

    Shapes: values (n, q) of mean 0, the first ones leading; their variances say what counts.
    """
    values = values[random_rows(len(values), MOST_SAMPLES)]
    spread = np.cov(values, rowvar=False)
    some = random_rows(len(values), COMPARED)
    found: dict[int, tuple[float, list[np.ndarray]]] = {}
    for leading in (number for number in LEADING if number <= values.shape[1]):
        curves = _curves(values, leading, rng)
        places = [_places(values[some], curve) for curve in curves]
        depends = _dependence(places)
        linear = [float(((curve.T @ spread) ** 2).sum()) for curve in curves]
        for count in counts:
            sets = [
                chosen
                for chosen in map(list, combinations(range(len(curves)), count))
                if depends[np.ix_(chosen, chosen)].max() < DEPENDENT
            ]
            # Only the sets that explain the most linearly are compared by more than that.
            sets.sort(key=lambda chosen: -sum(linear[i] for i in chosen))
            for chosen in sets[:2]:
                told = predictability(np.hstack([places[i] for i in chosen]), values[some])
                share = np.average(told, weights=values[some].var(axis=0))
                score = float(share - depends[np.ix_(chosen, chosen)].max())
                if score > found.get(count, (-np.inf, []))[0]:
                    found[count] = score, [curves[i] for i in chosen]
    best, reached = list[np.ndarray](), -np.inf
    for _, (score, curves) in sorted(found.items()):
        if score > reached + OWN_SHARE:
            best, reached = curves, score
    return best


def _curves(values: np.ndarray, leading: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Independent components of the leading values, and pairs of them on a closed curve."""
    axes, strength, rows = np.linalg.svd(values[:, :leading], full_matrices=False)
    white = rows.T / strength * np.sqrt(len(values))
    seed = int(rng.integers(2**31))
    ica = FastICA(whiten=False, max_iter=100, tol=1e-3, random_state=seed)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        ica.fit(axes * np.sqrt(len(values)))
    components = np.zeros((values.shape[1], leading))
    components[:leading] = white @ ica.components_.T
    singles = [components[:, [i]] for i in range(leading)]
    pairs = map(np.hstack, combinations(singles, 2))
    thin = values[random_rows(len(values), COMPARED)]
    return [*singles, *(pair for pair in pairs if is_closed(thin @ pair, thin[:, :0]))]


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
