"""Which factors two fits share, and the coordinates of one in the frame of the other."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from manifactor._support.files import real_path
from manifactor._support.parameters import Choice
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import take_rows
from manifactor.factors.inversion import PlaceSpace, choose_window, values_at
from manifactor.factors.shapes import angle_of, on_circle
from manifactor.runs.folder import read_run
from manifactor.runs.places import Place, all_places, fitted_places
from manifactor.runs.run import Run
from manifactor.statistics import mutual_r2, of_unit_spread, predictability, random_rows

# Least R^2, in both directions, of a factor that two fits share: shared factors had .94 and more,
# others .06 and less (benchmarks/alignment.py); half of the variance in common is .5.
LEAST_SHARED = 0.8
# Independent coordinates of 100 samples reach .05 by chance; of 4,000 samples, less than .02.
FEWEST_COMPARED, MOST_COMPARED = 100, 4000

Places = Sequence[Place]  # one for each factor
# From features of places on a factor of the second fit to those on a factor of the first.
Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, repr=False)
class Alignment:
    """Which factors two fits share. Factors are counted from 0, as in `factors_`.

    Attributes
    ----------
    pairs : tuple of (int, int, float)
        Shared factors: one of the first fit, one of the second, and the R^2 with which
        neighbours predict either from the other on samples left out, the lower of both
        directions. It is at least 0.8.
    r2 : ndarray of shape (n_factors of the first, n_factors of the second)
        The same R^2 of every two factors.
    explained : tuple of two dicts
        For each private factor of either fit: the factors of the other fit that tell most of
        it together, and their R^2. Near 1, it is a function of them.
    samples : Choice
        "rows" or "located": how samples of both fits were brought together, and why.
    how : tuple of str
        What leads from the second fit's coordinate to the first's, for each pair.
    """

    pairs: tuple[tuple[int, int, float], ...]
    r2: np.ndarray
    explained: tuple[dict[int, tuple[tuple[int, ...], float]], ...]
    samples: Choice
    how: tuple[str, ...]
    maps: tuple[Map, ...]
    places: tuple[Places, Places]

    @property
    def private(self) -> tuple[tuple[int, ...], ...]:
        """Factors of the first fit that the second does not share, and the reverse."""
        return tuple(map(tuple, self.explained))

    def __repr__(self) -> str:
        pairs = [(i, j, round(r2, 3)) for i, j, r2 in self.pairs]
        return f"Alignment(pairs={pairs}, private={self.private}, samples={self.samples.value!r})"

    def map(self, coordinates) -> np.ndarray:
        """Return coordinates of the second fit in the frame of the first.

        The map is monotone on intervals and, after a turn and perhaps a mirror image, on
        circles; on other shapes it is a local linear regression.

        Parameters
        ----------
        coordinates : array of shape (n, n_factors) or (n, sum of widths)
            As `coordinates` or `transform` of the second fit returns them.

        Returns
        -------
        ndarray
            As the same method of the first fit returns them; nan on private factors.
        """
        given, theirs = np.asarray(coordinates, dtype=float), self.places[1]
        ends = np.cumsum([place.features.shape[1] for place in theirs])
        if given.ndim != 2 or given.shape[1] not in (len(ends), ends[-1]):
            raise ValueError(
                f"`coordinates` must have {len(ends)} columns, as `coordinates` of the second fit, "
                f"or {ends[-1]}, as its `transform`; got shape {given.shape}."
            )
        kinds = [place.topology for place in theirs]
        if given.shape[1] > len(ends):
            parts = np.split(given, ends[:-1], axis=1)
            mapped = self.mapped(list(map(Place.from_features, parts, kinds)))
            return np.hstack([place.features for place in mapped])
        numbers = [place.coordinate for place in self.mapped(list(map(Place, given.T, kinds)))]
        return np.column_stack([k if k.ndim == 1 else np.full(len(k), np.nan) for k in numbers])

    def mapped(self, places: Places) -> list[Place]:
        """Return places on the first fit's factors, given those on the second's."""
        mine = self.places[0]
        mapped = [np.full((len(places[0]), k.features.shape[1]), np.nan) for k in mine]
        for (i, j, _), lead in zip(self.pairs, self.maps, strict=True):
            features = places[j].features
            placed = np.isfinite(features).all(axis=1)
            mapped[i][placed] = lead(features[placed]) if placed.any() else np.nan
        return list(map(Place.from_features, mapped, [place.topology for place in mine]))


def align(fit: ManifoldFactorizer, other: ManifoldFactorizer, X=None) -> Alignment:
    """Find the factors that two fits share, and the map between their coordinates.

    Fits of the same samples in the same order are compared row by row, whatever their
    columns. Of different samples in the same columns, such as half sets, `fit` locates those
    of `other`: where their numbers differ, or nothing is shared row by row.

    Parameters
    ----------
    fit, other : ManifoldFactorizer
    X : array of shape (n_samples, n_features) or None
        Samples to compare at, in the columns of `fit`: those that `other` was fitted to, or
        any that both fits can locate.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> from manifactor import ManifoldFactorizer, align, datasets
    >>> X, _ = datasets.sample("rectangle", 2000, random_state=0)
    >>> one = ManifoldFactorizer(random_state=0).fit(X[::2])
    >>> two = ManifoldFactorizer(random_state=0).fit(X[1::2])
    >>> align(one, two).private
    ((), ())
    >>> moved = align(one, two).map(two.coordinates())  # as one.coordinates(X[1::2])
    """
    check_is_fitted(fit)
    check_is_fitted(other)
    mine, theirs, points = fitted_places(fit), fitted_places(other), other.diffusion_.points
    nameless = copy(fit)
    nameless.__dict__.pop("feature_names_in_", None)  # the samples that `other` keeps have no names
    keys = None
    if X is not None:
        if len(X) < FEWEST_COMPARED:
            raise ValueError(f"`X` must have {FEWEST_COMPARED} samples or more; got {len(X)}.")
        theirs = theirs if len(X) == len(theirs[0]) else all_places(other, X)
    elif len(mine[0]) == len(theirs[0]) or fit.rows_ is not None or other.rows_ is not None:
        sizes = ((fit.rows_, len(mine[0])), (other.rows_, len(theirs[0])))
        keys = [np.arange(n) if rows is None else rows for rows, n in sizes]

    def locate(some: np.ndarray) -> Places:
        if X is not None:
            return all_places(fit, take_rows(X, some))
        assert points is not None
        return all_places(nameless, other.diffusion_.unprepared(points[some]))

    alike = fit.n_features_in_ == other.n_features_in_
    possible = X is not None or (alike and points is not None and fit.diffusion_.points is not None)
    return _align((mine, theirs), keys, locate if possible else None)


def align_runs(first: Run, second: Run) -> Alignment:
    """Return which factors two runs share.

    Particles are the same if their names are, and rows of tables if their numbers in the same
    input, or in inputs with as many rows, are.
    """
    runs = first, second
    sources = {real_path(Path(run.record.get("particles", run.input))) for run in runs}
    named = all("particles" in run.record for run in runs)
    columns = [run.record.get("columns", {}) for run in runs]
    keys = None
    if len(sources) == 1 or (not named and len(first.rows) == len(second.rows)):
        keys = [first.rows, second.rows]
    elif named:
        keys = list(map(_names, runs))

    def locate(some: np.ndarray) -> Places:
        samples = np.concatenate([first.read(path) for path in second.inputs])
        if len(samples) != len(second.rows):
            second.samples()  # which refuses an input that was changed
        return all_places(read_run(first.folder)[1], samples[some])

    same = all(columns[0].get(k) == columns[1].get(k) for k in ("total", "numbers", "names"))
    possible = all(columns) and same and len(sources) == 2 and not second.drawn
    return _align((first.places, second.places), keys, locate if possible else None)


def _names(run: Run) -> np.ndarray:
    """Return what tells the particles of a run from others, (n,)."""
    particles = run.particles
    if particles.stack is None or particles.slice is None:
        return particles.rows if particles.uid is None else particles.uid
    places = zip(particles.slice, particles.stack, strict=True)
    return np.array([f"{k}@{stack}" for k, stack in places])


def _align(
    places: tuple[Places, Places],
    keys: Sequence[np.ndarray] | None,
    locate: Callable[[np.ndarray], Places] | None,
) -> Alignment:
    """Return what samples with the same key share or, where that is nothing, located ones."""
    common, alignment = np.intersect1d(*(keys or ([], [])), return_indices=True)[1:], None
    count = len(common[0])
    if count >= FEWEST_COMPARED:
        some = random_rows(count, MOST_COMPARED)
        why = Choice("rows", f"{count} samples in common were compared")
        alignment = _compare(*places, common[0][some], common[1][some], why)
    if locate is not None and (alignment is None or not alignment.pairs):
        some = random_rows(len(places[1][0]), MOST_COMPARED)
        mine = locate(some)
        # Samples of another space lie far from those of the fit, or from the sum that it found:
        # cameras with as many pixels and objects of their own had half of the usual confidence.
        sure, usual = (np.transpose([k.confidence for k in each]) for each in (mine, places[0]))
        near = (sure > 0) & (sure >= 0.9 * np.quantile(usual, 0.05, axis=0))
        near = np.flatnonzero(near.all(axis=1))
        if len(near) >= max(FEWEST_COMPARED, len(some) / 2):
            told = f"samples differ; the first fit located {len(near)} of {len(some)}"
            again = _compare(mine, places[1], near, some[near], Choice("located", told))
            alignment = again if alignment is None or again.pairs else alignment
    if alignment is None:
        raise ValueError(
            f"fits to compare must have {FEWEST_COMPARED} samples in common, or samples of the "
            f"same space in the same columns; got {count} in common, and the first fit cannot "
            "locate those of the second. Fit the same samples in the same order."
        )
    return alignment


def _compare(
    mine: Places, theirs: Places, ones: np.ndarray, others: np.ndarray, how: Choice
) -> Alignment:
    """Return which factors are shared by some samples of each fit, which are the same."""
    first, second = [place[ones] for place in mine], [place[others] for place in theirs]
    sides = [[place.features for place in places] for places in (first, second)]
    r2 = mutual_r2(*sides)
    matched = zip(*linear_sum_assignment(-r2), strict=True)
    pairs = tuple((int(i), int(j), float(r2[i, j])) for i, j in matched if r2[i, j] >= LEAST_SHARED)
    explained = []
    for side, features in enumerate(sides):
        private = set(range(len(features))) - {pair[side] for pair in pairs}
        explained.append({k: _explain(features[k], sides[1 - side]) for k in sorted(private)})
    led = [_map(first[i], second[j]) for i, j, _ in pairs]
    words, maps = tuple(text for text, _ in led), tuple(lead for _, lead in led)
    return Alignment(pairs, r2, tuple(explained), how, words, maps, (first, second))


def _explain(target: np.ndarray, sources: Sequence[np.ndarray]) -> tuple[tuple[int, ...], float]:
    """Return which sources together, each with the same weight, tell most of a target, and R^2."""
    scaled = list(map(of_unit_spread, sources))

    def r2(some: list[int]) -> float:
        return float(predictability(np.hstack([scaled[j] for j in some]), target).mean())

    # All at first, as each may tell nothing alone: another basis of a torus has sums of angles.
    needed = list(range(len(sources)))
    best = r2(needed)
    for k in range(len(sources)):
        left = [j for j in needed if j != k]
        without = r2(left) if left else -1.0
        if without >= best - 0.02:
            needed, best = left, max(best, without)
    return tuple(needed), best


def _map(mine: Place, theirs: Place) -> tuple[str, Map]:
    """Return what leads from their places to mine, in words and as a function of features."""
    if mine.topology == theirs.topology != "other":
        return min((_warp(mine, theirs, sign) for sign in (1, -1)), key=lambda each: each[0])[1:]
    features = theirs.features
    space = PlaceSpace((theirs.topology,), features.shape[1:], features)
    count = choose_window(space, mine.features).value
    return "local regression", partial(values_at, space, mine.features, n_neighbors=count)


def _warp(mine: Place, theirs: Place, sign: int) -> tuple:
    """Return the error of a monotone map, mirrored or not, and the map as `_map` returns it."""
    source, goal, rounds = sign * theirs.coordinate, mine.coordinate, np.zeros((1, 1))
    words = ["mirrored"] if sign < 0 else []
    if mine.topology == "circle":
        source = source % (2 * np.pi)
        turn = np.angle(np.exp(1j * (goal - source)).mean())
        goal = source + turn + np.angle(np.exp(1j * (goal - source - turn)))
        if degrees := round(np.degrees(turn)):
            words.append(f"turned by {degrees} degrees")
        # Of three rounds, the middle one is periodic.
        rounds = 2 * np.pi * np.array([[-1], [0], [1]])
    rising = IsotonicRegression().fit((source + rounds).ravel(), (goal + rounds).ravel())
    knots = rising.X_thresholds_, rising.y_thresholds_
    error = ((np.interp(source, *knots) - goal) ** 2).mean()
    return error, ", ".join(words) or "same direction", partial(_apply_warp, sign, knots)


def _apply_warp(sign: int, knots: tuple[np.ndarray, np.ndarray], places: np.ndarray) -> np.ndarray:
    if places.shape[1] == 1:
        return np.interp(sign * places, *knots)
    return on_circle(np.interp(sign * angle_of(places) % (2 * np.pi), *knots))
