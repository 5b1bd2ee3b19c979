"""Functions of places that a volume is a sum of: one level of a motion, or of two.

A term gives a level for each motion, 0 where it does not depend on it: on two motions (2, 0) is the
second function of the first motion, (1, 1) a product of both motions' first functions. The level of
an interval is a degree, that of a circle a harmonic.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.polynomial.legendre import Legendre

from manifactor._support.workers import PickledFields
from manifactor.cryoem.all_views.regression import Features, Likelihood

Term = tuple[int, ...]


def term_features(topologies: Sequence[str], places: np.ndarray, term: Term) -> np.ndarray:
    """Return the features of places that one term stands for.

    Shapes: places (n, n_motions) -> (n, n_features).
    """
    parts = [
        LEVELS[topology](place, level)
        for topology, place, level in zip(topologies, places.T, term, strict=True)
        if level
    ]
    return reduce(_products, parts, np.ones((len(places), 1)))


def _products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    width = first.shape[1] * second.shape[1]
    return (first[:, :, None] * second[:, None]).reshape(len(first), width)


def _polynomial(place: np.ndarray, degree: int) -> np.ndarray:
    """Legendre's polynomial of unit variance."""
    values = np.sqrt(2 * degree + 1) * Legendre.basis(degree)(2 * place - 1)
    return values[:, None]


def _harmonic(place: np.ndarray, order: int) -> np.ndarray:
    """Cosine and sine of unit variance."""
    angle = 2 * np.pi * order * place
    return np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])


LEVELS = {"interval": _polynomial, "circle": _harmonic}


def constant_term(n_motions: int) -> Term:
    """Return the term of the mean volume."""
    return n_motions * (0,)


def first_terms(n_motions: int) -> tuple[Term, ...]:
    """Return the first level of each motion."""
    return tuple(
        tuple(int(motion == own) for motion in range(n_motions)) for own in range(n_motions)
    )


def next_terms(terms: Collection[Term], *, max_levels: Sequence[int]) -> tuple[Term, ...]:
    """Return the terms whose lower terms are all there."""
    n_motions = len(next(iter(terms)))
    steps = first_terms(n_motions)
    beyond = {_plus(term, step) for term in terms for step in steps} - set(terms)

    def may_follow(term: Term) -> bool:
        lower = [_plus(term, step, -1) for step in steps]
        known = all(one in terms for one in lower if min(one) >= 0)
        n_moving = int(np.count_nonzero(term))
        allowed = n_moving <= len(max_levels)
        return known and allowed and sum(term) <= max_levels[n_moving - 1]

    return tuple(sorted(filter(may_follow, beyond)))


def _plus(term: Term, step: Term, times: int = 1) -> Term:
    return tuple(level + times * more for level, more in zip(term, step, strict=True))


# Intervals and circles as features of a volume, and the places that images tell.
#
# A place lies in [0, 1]: once along an interval, once around a circle. A volume is a sum of
# functions of places: each motion adds some of its own, and motions that change the same part of
# the molecule add products.


@dataclass(frozen=True)
class MotionSettings:
    """Settings of `Motions`."""

    # Highest degree of an interval or harmonic of a circle, and their highest sum in a product of
    # two motions: a motion spans some five resolved widths.
    max_level: int = 6
    max_product: int = 4
    # Features of all terms: normal equations take memory with their square.
    max_features: int = 40
    # Points of the grid of places in all, and along one motion.
    max_points: int = 4000
    max_along: int = 48
    # Images at a time: their likelihoods on the grid take some 64 MB.
    block: int = 2000
    # Places that are known to about a step of the grid are found on a finer one around them: its
    # points in all and along one motion, its half width in deviations, and images at a time.
    fine_points: int = 343
    fine_along: int = 9
    fine_width: float = 2.5
    fine_block: int = 250
    # Largest deviation, in steps of the grid, for which the grid is too coarse.
    narrow: float = 1.5


@dataclass(frozen=True)
class Posterior:
    """Places of particles, given their images."""

    places: np.ndarray  # (n, n_motions): means, in [0, 1]; around a circle circular means
    deviations: np.ndarray  # (n, n_motions): standard deviations in the same unit
    features: Features


@dataclass(frozen=True)
class Motions(PickledFields):
    """Independent motions of a molecule."""

    topologies: tuple[str, ...]
    settings: MotionSettings = MotionSettings()
    added: tuple[Term, ...] = ()  # what volumes depend on beside the first function of each motion

    @property
    def terms(self) -> tuple[Term, ...]:
        """The constant, the first function of each motion, and those added."""
        count = len(self.topologies)
        return constant_term(count), *first_terms(count), *self.added

    def grown(self) -> "Motions":
        """Return the same motions with the terms that may follow, the lowest first."""
        most = self.settings.max_level, self.settings.max_product
        more = sorted(next_terms(self.terms, max_levels=most), key=sum)
        widths = np.cumsum([self._width(term) for term in (*self.terms, *more)])
        room = int(np.count_nonzero(widths <= self.settings.max_features))
        return self.with_terms(more[: max(0, room - len(self.terms))])

    def with_terms(self, more: Sequence[Term]) -> "Motions":
        """Return the same motions with more terms."""
        return replace(self, added=(*self.added, *more))

    def features(self, places: np.ndarray) -> np.ndarray:
        """Return the features of places, (n, n_features).

        The first is the constant 1; all have mean square 1 on even places.
        """
        return np.hstack([term_features(self.topologies, places, term) for term in self.terms])

    @property
    def are_circles(self) -> np.ndarray:
        """Whether each motion is a circle."""
        return np.array([topology == "circle" for topology in self.topologies])

    def columns(self, terms: Sequence[Term]) -> np.ndarray:
        """Return which columns of the features belong to some of the terms."""
        widths = [self._width(term) for term in self.terms]
        return np.flatnonzero(np.repeat([term in terms for term in self.terms], widths))

    def _width(self, term: Term) -> int:
        """Return how many features a term has: cosine and sine of each circle."""
        return int(2 ** np.count_nonzero(self.are_circles * term))

    def own_terms(self, motion: int) -> list[Term]:
        """Return the terms that depend on one motion alone."""
        return [term for term in self.terms if term[motion] and sum(term) == term[motion]]

    def own_columns(self, motion: int) -> np.ndarray:
        """Return the columns of the features that depend on one motion alone."""
        return self.columns(self.own_terms(motion))

    def posterior(self, terms: Likelihood, *, described: "Motions | None" = None) -> Posterior:
        """Return the places of particles, given the likelihood of their features."""
        described = described or self
        n_images, n_motions = len(terms.linear), len(self.topologies)
        n_features = described._grid_features.shape[1]
        places = np.empty((n_images, n_motions))
        deviations = np.empty_like(places)
        mean = np.empty((n_images, n_features))
        # The largest array of all; sums over images need no more digits.
        products = np.empty((n_images, n_features, n_features), np.float32)
        for start in range(0, n_images, self.settings.block):
            rows = slice(start, start + self.settings.block)
            weights = self._weights(terms.linear[rows], terms.quadratic[rows])
            mean[rows] = weights @ described._grid_features
            upper = weights @ described._grid_products
            first, second = described._pairs
            products[rows, first, second] = upper
            products[rows, second, first] = upper
            places[rows], deviations[rows] = self._moments(weights)
        narrow = np.all(deviations <= self.settings.narrow * self._step, axis=1)
        for some in _parts(np.flatnonzero(narrow), self.settings.fine_block):
            around = self._fine_grid(places[some], deviations[some])
            fine = self._fine_posterior(terms[some], around, described)
            places[some], deviations[some] = fine.places, fine.deviations
            mean[some], products[some] = fine.features.mean, fine.features.products
        return Posterior(places, deviations, Features(mean, products))

    def _weights(self, linear: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
        """Return the probability of every point of the grid, (n, n_points)."""
        first, second = self._pairs
        # A product of two features occurs twice in the quadratic form, a square once.
        twice = np.where(first == second, 0.5, 1.0)
        halves = quadratic[:, first, second] * twice
        score = linear @ self._grid_features.T - halves @ self._grid_products.T
        return _probabilities(score)

    def _moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moments = [
            MOMENTS[topology](weights, along, self._step)
            for topology, along in zip(self.topologies, self.grid.T, strict=True)
        ]
        places, deviations = zip(*moments, strict=True)
        return np.column_stack(places), np.column_stack(deviations)

    def _fine_grid(self, places: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Return points around places, (n, n_points, n_motions)."""
        n_motions = places.shape[1]
        count = _along(self.settings.fine_points, self.settings.fine_along, n_motions)
        offsets = _mesh(n_motions * [np.linspace(-1, 1, count)])
        # Places between two points of the grid seem to be known better than they are.
        width = np.maximum(self.settings.fine_width * deviations, self._step)
        return places[:, None] + width[:, None] * offsets

    def _fine_posterior(
        self, terms: Likelihood, points: np.ndarray, described: "Motions"
    ) -> Posterior:
        """Return the posterior on the points around each particle."""
        n_images, n_points, n_motions = points.shape
        flat = points.reshape(-1, n_motions)
        ours = self.features(flat).reshape(n_images, n_points, -1)
        score = (ours @ terms.linear[..., None])[..., 0]
        score -= ((ours @ terms.quadratic) * ours).sum(axis=2) / 2
        beyond = (points < 0) | (points > 1)
        score[np.any(beyond & ~self.are_circles, axis=2)] = -np.inf
        weights = _probabilities(score)
        theirs = described.features(flat).reshape(n_images, n_points, -1)
        weighted = weights[..., None] * theirs
        # Around a circle points go on beyond 0 and 1: means are those of a line.
        mean = np.einsum("np,npm->nm", weights, points)
        squares = np.einsum("np,npm->nm", weights, (points - mean[:, None]) ** 2)
        step = points[:, -1] - points[:, 0]
        step = step / (round(n_points ** (1 / n_motions)) - 1)
        return Posterior(
            places=np.where(self.are_circles, mean % 1, mean),
            deviations=np.sqrt(np.maximum(squares, _within(step))),
            features=Features(weighted.sum(axis=1), weighted.transpose(0, 2, 1) @ theirs),
        )

    @cached_property
    def grid(self) -> np.ndarray:
        """Places on all motions at the points of a grid, (n_points, n_motions)."""
        axis = (np.arange(self._count) + 0.5) / self._count
        return _mesh(len(self.topologies) * [axis])

    @property
    def _count(self) -> int:
        """Points of the grid along each motion."""
        most = self.settings.max_points
        return _along(most, self.settings.max_along, len(self.topologies))

    @property
    def _step(self) -> float:
        return 1 / self._count

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self._grid_features.shape[1])

    @cached_property
    def _grid_features(self) -> np.ndarray:
        return self.features(self.grid)

    @cached_property
    def _grid_products(self) -> np.ndarray:
        first, second = self._pairs
        return self._grid_features[:, first] * self._grid_features[:, second]


def _along(most: int, most_along: int, n_motions: int) -> int:
    """Return the points of a grid along each motion."""
    # A root that is a whole number may come out a little below it.
    return min(int(most ** (1 / n_motions) + 1e-9), most_along)


def _mesh(axes: Sequence[np.ndarray]) -> np.ndarray:
    """Return the points of a grid, (n_points, n_axes)."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))


def _parts(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return np.split(rows, range(size, len(rows), size)) if len(rows) else []


def _probabilities(score: np.ndarray) -> np.ndarray:
    """Return the probability of each point from log-likelihoods, (n, n_points)."""
    weights = np.exp(score - score.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _interval_moments(
    weights: np.ndarray, along: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    mean = weights @ along
    variance = weights @ along**2 - mean**2
    return mean, np.sqrt(np.maximum(variance, _within(step)))


def _circle_moments(
    weights: np.ndarray, along: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    direction = weights @ np.exp(2j * np.pi * along)
    place = np.angle(direction) / (2 * np.pi) % 1
    # The circular variance of even places is infinite; that of a line is not.
    length = np.clip(np.abs(direction), np.finfo(float).tiny, 1)
    variance = -2 * np.log(length) / (2 * np.pi) ** 2
    return place, np.sqrt(np.clip(variance, _within(step), _within(1)))


def _within(step: float | np.ndarray) -> float | np.ndarray:
    """Variance of even places inside a cell of the grid, which no place is below."""
    return step**2 / 12


MOMENTS = {"interval": _interval_moments, "circle": _circle_moments}


# Places on factors of any shape as features of a volume.


@dataclass(frozen=True)
class PlaceFeatures:
    """Functions of places on which volumes are regressed.

    An interval has polynomials and a circle harmonics of its even place in [0, 1], as `Motions` has
    them, but no products of factors. Any other shape has the columns of its embedding, which are
    functions of the place already, and products of the first of them.
    """

    topologies: tuple[str, ...]
    # Mean and standard deviation of the columns of each factor's places
    middles: tuple[np.ndarray, ...]
    # Mean and standard deviation of the columns of each factor's places
    spreads: tuple[np.ndarray, ...]
    # Without products, a part that moves by more than its size is seen twice.
    squared: int = 3  # columns of an embedding whose products are features, too
    # Five and three placed 6,000 simulated images no better: their volumes are noisier.
    degree: int = 3  # highest degree of an interval, and harmonic of a circle
    harmonics: int = 2  # highest degree of an interval, and harmonic of a circle

    @classmethod
    def of(cls, topologies: Sequence[str], places: Sequence[np.ndarray]) -> "PlaceFeatures":
        """Return the features of factors, given places on each of them, (n, d)."""
        spreads = [place.std(axis=0) for place in places]
        return cls(
            tuple(topologies),
            tuple(place.mean(axis=0) for place in places),
            # A column without spread stays as it is.
            tuple(np.where(spread > 0, spread, 1.0) for spread in spreads),
        )

    @property
    def widths(self) -> list[int]:
        """Number of columns of the places on each factor."""
        return [len(middle) for middle in self.middles]

    def features(self, places: np.ndarray) -> np.ndarray:
        """Return the features of places, (n, n_features); the first is the constant 1.

        Shapes: places (n, sum of the widths).
        """
        ends = np.cumsum(self.widths)[:-1]
        columns = [np.ones((len(places), 1))]
        for motion, place in enumerate(np.split(places, ends, axis=1)):
            columns.append(self._along(motion, place))
        return np.hstack(columns)

    def own_columns(self, motion: int) -> np.ndarray:
        """Return the columns of the features that one factor adds."""
        counts = [self._along(k, middle[None]).shape[1] for k, middle in enumerate(self.middles)]
        start = 1 + sum(counts[:motion])
        return np.arange(start, start + counts[motion])

    def slopes(self, motion: int, *, count: int = 400) -> np.ndarray:
        """Return mean products of the slopes of a factor's features, (m, m).

        Slopes along an even place; of a shape of d dimensions, the mean over its axes in units in
        which places have the standard deviation of even ones.
        """
        if self.topologies[motion] not in LEVELS:
            n_own = len(self.own_columns(motion))
            # Products have no slope in the middle.
            linear = np.arange(n_own) < self.widths[motion]
            return np.diag(12.0 * linear) / self.widths[motion]
        even = (np.arange(count) + 0.5)[:, None] / count
        step = 0.25 / count
        above, below = (self._along(motion, even + side) for side in (step, -step))
        slopes = (above - below) / (2 * step)
        return slopes.T @ slopes / count

    def _along(self, motion: int, place: np.ndarray) -> np.ndarray:
        topology = self.topologies[motion]
        if topology in LEVELS:
            most = self.harmonics if topology == "circle" else self.degree
            levels = range(1, most + 1)
            return np.hstack([LEVELS[topology](place[:, 0], k) for k in levels])
        columns = (place - self.middles[motion]) / self.spreads[motion]
        first, second = np.triu_indices(min(self.squared, columns.shape[1]))
        return np.hstack([columns, columns[:, first] * columns[:, second]])
