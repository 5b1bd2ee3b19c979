"""Coordinates on motions as features of a volume, and the coordinates that images tell.

A coordinate lies in [0, 1], a volume is a sum of functions of coordinates. A term names some: it
gives a level for each motion, a degree or a harmonic, 0 where it does not depend on it. On two
motions (2, 0) is the second function of the first one, (1, 1) a product of both first functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from manifactor._support.workers import PickledFields
from manifactor.cryoem.all_views.regression import Arrays
from manifactor.runs.landscape import LEVELS
from manifactor.samples.likelihood import GaussianLikelihood, mixture_weights

Term = tuple[int, ...]


@dataclass(frozen=True)
class Motions(PickledFields):
    """Independent motions of a molecule."""

    topologies: tuple[str, ...]
    added: tuple[Term, ...] = ()  # what volumes depend on beside the first function of each motion

    @property
    def _steps(self) -> tuple[Term, ...]:
        """The first level of each motion."""
        return tuple(map(tuple, np.eye(len(self.topologies), dtype=int).tolist()))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The constant, the first function of each motion, and those added."""
        return len(self.topologies) * (0,), *self._steps, *self.added

    def grow(self) -> "Motions":
        """Return the same motions with the terms that may follow, the lowest first."""
        steps, none = self._steps, len(self.topologies) * (0,)
        beyond = {_plus(term, step) for term in self.terms for step in steps}
        # A part that looks the same after half a turn has even harmonics only.
        for step, levels in zip(steps, zip(*self.terms, strict=True), strict=True):
            beyond |= {_plus(none, step, level) for level in range(2, max(levels) + 3)}
        allowed = filter(self._may_follow, beyond - set(self.terms))
        more = sorted(allowed, key=lambda term: (sum(term), term))
        # Normal equations take memory with the square of the number of features.
        widths = np.cumsum([self._width(term) for term in (*self.terms, *more)])
        room = int(np.count_nonzero(widths <= 40))
        return self.with_terms(more[: max(0, room - len(self.terms))])

    def _may_follow(self, term: Term) -> bool:
        """Return whether a product's lower terms are all there, and a term is not too fine."""
        n_moving = int(np.count_nonzero(term))
        if n_moving == 1:
            # One turn in images of high contrast, placed by levels up to 6 and 10: errors of 1.4
            # and 1.0 degrees in the median, 1.5 and 1.2 times as large as stated.
            return sum(term) <= (10 if len(term) == 1 else 6)
        lower = [_plus(term, step, -1) for step in self._steps]
        return (
            n_moving == 2
            and sum(term) <= 4
            and all(one in self.terms for one in lower if min(one) >= 0)
        )

    def with_terms(self, more: Sequence[Term]) -> "Motions":
        """Return the same motions with more terms."""
        return replace(self, added=(*self.added, *more))

    def features(self, places: np.ndarray) -> np.ndarray:
        """Return the features of places, (n, n_features), of mean square 1; the first is 1."""
        found = []
        for term in self.terms:
            columns = np.ones((len(places), 1))
            for topology, place, level in zip(self.topologies, places.T, term, strict=True):
                if level:
                    more = LEVELS[topology](place, level)
                    columns = (columns[:, :, None] * more[:, None]).reshape(len(places), -1)
            found.append(columns)
        return np.hstack(found)

    @property
    def are_circles(self) -> np.ndarray:
        """Whether each motion is a circle."""
        return np.array(self.topologies) == "circle"

    def columns(self, terms: Sequence[Term]) -> np.ndarray:
        """Return which columns of the features belong to some of the terms."""
        widths = [self._width(term) for term in self.terms]
        return np.flatnonzero(np.repeat([term in terms for term in self.terms], widths))

    def _width(self, term: Term) -> int:
        """Return how many features a term has: cosine and sine of each circle."""
        return int(2 ** np.count_nonzero(self.are_circles * term))

    def own_columns(self, motion: int) -> np.ndarray:
        """Return the columns of the features that depend on one motion alone."""
        own = [term for term in self.terms if term[motion] and sum(term) == term[motion]]
        return self.columns(own)

    def lengths(self, products: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Return the arc length from 0 to the edges of the grid's cells, (n_motions, n_cells + 1).

        Equal steps of it change the molecule, whose volumes have these `products`, by equal
        amounts: parts that turn as a whole do so at a constant speed. Given the particles' `shares`
        of the cells, an interval goes from 0 to 1 where all but 1 % of them are.
        """
        count, lengths = self._count, []
        edges = np.linspace(0, 1, count + 1)
        for motion, topology in enumerate(self.topologies):
            nudge = 1e-3 * np.array(self._steps[motion])
            slopes = (self.features(self.grid + nudge) - self.features(self.grid - nudge)) / 2e-3
            squares = ((slopes @ products) * slopes).sum(axis=1)
            others = tuple(np.delete(np.arange(len(self.topologies)), motion))
            along = squares.reshape(len(self.topologies) * (count,)).mean(axis=others)
            floor = 0.02 * np.abs(along).mean() + np.finfo(float).tiny
            speed = np.log(np.maximum(along, floor)) / 2
            # Finer changes of the speed are noise.
            waves = np.hstack([LEVELS[topology](self.grid[:count, -1], k) for k in (1, 2, 3)])
            smooth = np.exp(waves @ np.linalg.lstsq(waves, speed - speed.mean())[0])
            own = np.concatenate([[0.0], np.cumsum(smooth)]) / smooth.sum()
            if topology == "interval" and shares is not None:
                below = np.concatenate([[0.0], np.cumsum(shares[motion])])
                low, high = np.interp(np.interp([0.005, 0.995], below, edges), edges, own)
                own = (own - low) / (high - low)
            lengths.append(own)
        return np.array(lengths)

    def at_lengths(self, places: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return arc lengths instead of places, (n, n_motions)."""
        edges = np.linspace(0, 1, lengths.shape[1])
        pairs = zip(places.T, lengths, strict=True)
        return np.column_stack([np.interp(along, edges, own) for along, own in pairs])

    def mixing(self, lengths: np.ndarray) -> np.ndarray:
        """Return the matrix that takes volumes of places to those of arc lengths, (m, m)."""
        straight = self.features(self.at_lengths(self.grid, lengths))
        return np.linalg.lstsq(straight, self._grid_features)[0]

    def shares(self, cells: np.ndarray, density: np.ndarray) -> np.ndarray:
        """Return the share of the particles in each cell along each motion, (n_motions, n_cells).

        `cells` are those of each particle as `posterior` has them, given the `density` of places.
        """
        (before,) = self._cells(_probabilities((self._grid_features @ density)[None]))
        pairs = zip(cells.swapaxes(0, 1) / before[:, None], before, strict=True)
        # Posteriors sharpen their density. Ends of even intervals lay 1 to 3 % too far out with
        # smooth densities, and energies rose by 1 to 2 kT; 200 rounds are no better.
        return np.stack([mixture_weights(*each, 30) for each in pairs])

    def density(self, mean: np.ndarray) -> np.ndarray:
        """Return the logarithm of a density of places as coefficients of the features.

        It is the most even one with these means of the features, but for a kT of .01.
        """

        def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
            score = self._grid_features @ at
            even = _probabilities(score[None])[0]
            whole = np.log(np.mean(np.exp(score - score.max()))) + score.max()
            left = even @ self._grid_features - mean + 0.01 * at
            return whole - mean @ at + (0.005 * at @ at), left

        return minimize(loss, np.zeros(len(mean)), jac=True, method="BFGS").x

    def posterior(self, terms: GaussianLikelihood, *, described: "Motions | None" = None) -> Arrays:
        """Return what the likelihood of their features tells of particles.

        Places, around a circle circular means, and their standard deviations, (n, n_motions); mean
        and mean products of the features of these places, or of those of other motions; and the
        probability of each cell along each motion, (n, n_motions, n_cells).
        """
        described = described or self
        weights = _probabilities(terms.scores(self._grid_features))
        moments = [
            MOMENTS[topology](weights, along, self._step)
            for topology, along in zip(self.topologies, self.grid.T, strict=True)
        ]
        places, deviations = (np.column_stack(each) for each in zip(*moments, strict=True))
        # The largest array of all; sums over images need no more digits.
        mean, products = described._moments(weights, np.float32)
        # Places that are known to about a step of the grid are found on a finer one around them.
        narrow = np.flatnonzero(np.all(deviations <= 1.5 * self._step, axis=1))
        known = places, deviations, mean, products
        if len(narrow):
            around = terms[narrow], places[narrow], deviations[narrow]
            for coarse, better in zip(known, self._refine(*around, described), strict=True):
                coarse[narrow] = better
        return *known, self._cells(weights)

    def expected(self, terms: GaussianLikelihood) -> Arrays:
        """Return log-likelihoods of particles, and mean and products of features, on the grid."""
        scores = terms.scores(self._grid_features)
        moments = self._moments(_probabilities(scores), float)
        return logsumexp(scores, axis=1) - np.log(len(self.grid)), *moments

    def _moments(self, weights: np.ndarray, dtype: type) -> Arrays:
        """Return mean and mean products of the features, with weights of the grid."""
        mean = weights @ self._grid_features
        i, j = np.triu_indices(mean.shape[1])
        products = np.empty((*mean.shape, mean.shape[1]), dtype)
        products[:, i, j] = products[:, j, i] = weights @ self._grid_products
        return mean, products

    def _cells(self, weights: np.ndarray) -> np.ndarray:
        """Return sums of weights of the grid in each cell along each motion."""
        table = weights.reshape(-1, *len(self.topologies) * (self._count,))
        axes = np.arange(1, table.ndim)
        sums = [table.sum(axis=tuple(np.delete(axes, k))) for k in range(len(axes))]
        return np.stack(sums, axis=1)

    def _refine(
        self,
        terms: GaussianLikelihood,
        places: np.ndarray,
        deviations: np.ndarray,
        described: "Motions",
    ) -> Arrays:
        """Return all of `posterior` but cells, on points around the place of each particle."""
        n_images, n_motions = places.shape
        count = _along(343, 9, n_motions)
        # Places between two points of the grid seem to be known better than they are.
        width = np.maximum(2.5 * deviations, self._step)
        offsets = _mesh(n_motions, np.linspace(-1, 1, count))
        points = places[:, None] + width[:, None] * offsets
        flat, shape = points.reshape(-1, n_motions), (n_images, len(offsets), -1)
        ours = self.features(flat).reshape(shape)
        score = (ours @ terms.linear[..., None])[..., 0]
        score -= ((ours @ terms.precision) * ours).sum(axis=2) / 2
        beyond = (points < 0) | (points > 1)
        score[np.any(beyond & ~self.are_circles, axis=2)] = -np.inf
        weights = _probabilities(score)
        theirs = described.features(flat).reshape(shape)
        weighted = weights[..., None] * theirs
        # Around a circle points go on beyond 0 and 1: means are those of a line.
        mean = np.einsum("np,npm->nm", weights, points)
        squares = np.einsum("np,npm->nm", weights, (points - mean[:, None]) ** 2)
        step = (points[:, -1] - points[:, 0]) / (count - 1)
        return (
            np.where(self.are_circles, mean % 1, mean),
            np.sqrt(np.maximum(squares, _within(step))),
            weighted.sum(axis=1),
            weighted.transpose(0, 2, 1) @ theirs,
        )

    @cached_property
    def grid(self) -> np.ndarray:
        """Places on all motions at the points of a grid, (n_points, n_motions)."""
        return _mesh(len(self.topologies), (np.arange(self._count) + 0.5) / self._count)

    @property
    def _count(self) -> int:
        """Points of the grid along each motion: one motion may have more of them."""
        return _along(4000, 48 if len(self.topologies) > 1 else 144, len(self.topologies))

    @property
    def _step(self) -> float:
        return 1 / self._count

    @cached_property
    def _grid_features(self) -> np.ndarray:
        return self.features(self.grid)

    @cached_property
    def _grid_products(self) -> np.ndarray:
        i, j = np.triu_indices(self._grid_features.shape[1])
        return self._grid_features[:, i] * self._grid_features[:, j]


def _plus(term: Term, step: Term, times: int = 1) -> Term:
    return tuple(level + times * more for level, more in zip(term, step, strict=True))


def _along(most: int, most_along: int, n_motions: int) -> int:
    """Return the points of a grid along each motion, given those in all at most."""
    # A root that is a whole number may come out a little below it.
    return min(int(most ** (1 / n_motions) + 1e-9), most_along)


def _mesh(n_axes: int, axis: np.ndarray) -> np.ndarray:
    """Return the points of a grid with the same axis everywhere, (n_points, n_axes)."""
    return np.stack(np.meshgrid(*n_axes * [axis], indexing="ij"), -1).reshape(-1, n_axes)


def _probabilities(score: np.ndarray) -> np.ndarray:
    """Return the probability of each point from log-likelihoods, (n, n_points)."""
    weights = np.exp(score - score.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _interval_moments(weights: np.ndarray, along: np.ndarray, step: float) -> Arrays:
    mean = weights @ along
    variance = weights @ along**2 - mean**2
    return mean, np.sqrt(np.maximum(variance, _within(step)))


def _circle_moments(weights: np.ndarray, along: np.ndarray, step: float) -> Arrays:
    direction = weights @ np.exp(2j * np.pi * along)
    # The circular variance of even places is infinite; that of a line is not.
    length = np.clip(np.abs(direction), np.finfo(float).tiny, 1)
    variance = -2 * np.log(length) / (2 * np.pi) ** 2
    place = np.angle(direction) / (2 * np.pi) % 1
    return place, np.sqrt(np.clip(variance, _within(step), _within(1)))


def _within(step: float | np.ndarray) -> float | np.ndarray:
    """Variance of even places inside a cell of the grid, which no place is below."""
    return step**2 / 12


MOMENTS = {"interval": _interval_moments, "circle": _circle_moments}


@dataclass(frozen=True)
class PlaceFeatures:
    """Functions of places on factors of any shape, without products of factors.

    Of an interval or a circle they are levels of its even place, of any other shape the columns of
    its embedding and products of the first of them.
    """

    topologies: tuple[str, ...]
    # Mean and standard deviation of the columns of each factor's places
    middles: tuple[np.ndarray, ...]
    spreads: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, topologies: Sequence[str], places: Sequence[np.ndarray]) -> "PlaceFeatures":
        """Return the features of factors, given places on each of them, (n, d)."""
        middles = tuple(place.mean(axis=0) for place in places)
        spreads = [place.std(axis=0) for place in places]
        # A column without spread stays as it is.
        return cls(tuple(topologies), middles, tuple(np.where(s > 0, s, 1.0) for s in spreads))

    def features(self, places: np.ndarray) -> np.ndarray:
        """Return the features, (n, n_features), of places side by side; the first is 1."""
        ends = np.cumsum([len(middle) for middle in self.middles])[:-1]
        parts = enumerate(np.split(places, ends, axis=1))
        own = [self._along(motion, place) for motion, place in parts]
        return np.hstack([np.ones((len(places), 1)), *own])

    def own_columns(self, motion: int) -> np.ndarray:
        """Return the columns of the features that one factor adds."""
        counts = [self._along(k, middle[None]).shape[1] for k, middle in enumerate(self.middles)]
        start = 1 + sum(counts[:motion])
        return np.arange(start, start + counts[motion])

    def slopes(self, motion: int) -> np.ndarray:
        """Return mean products of the slopes of a factor's features, (m, m), along an even place.

        Of a shape of more dimensions, the mean over axes on which places spread as even ones do.
        """
        if self.topologies[motion] not in LEVELS:
            width = len(self.middles[motion])
            # Products have no slope in the middle.
            linear = np.arange(len(self.own_columns(motion))) < width
            return np.diag(12.0 * linear) / width
        count = 400
        even = (np.arange(count) + 0.5)[:, None] / count
        step = 0.25 / count
        above, below = (self._along(motion, even + side) for side in (step, -step))
        slopes = (above - below) / (2 * step)
        return slopes.T @ slopes / count

    def _along(self, motion: int, place: np.ndarray) -> np.ndarray:
        topology = self.topologies[motion]
        if topology in LEVELS:
            # Degree 5 and harmonic 3 placed 6,000 simulated images no better: volumes are noisier.
            levels = range(1, 3 if topology == "circle" else 4)
            return np.hstack([LEVELS[topology](place[:, 0], k) for k in levels])
        columns = (place - self.middles[motion]) / self.spreads[motion]
        # Without products, a part that moves by more than its size is seen twice.
        first, second = np.triu_indices(min(3, columns.shape[1]))
        return np.hstack([columns, columns[:, first] * columns[:, second]])
