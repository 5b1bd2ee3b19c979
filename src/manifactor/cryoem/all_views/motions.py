"""Intervals and circles as features of a volume, and the places that images tell.

A place lies in [0, 1]: once along an interval, once around a circle. A volume is a sum
of functions of single places, so each motion adds some features.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre

from manifactor.cryoem.all_views.regression import Features, Likelihood


@dataclass(frozen=True)
class MotionSettings:
    """Settings of `Motions`."""

    # Harmonics of a circle and degrees of an interval. Three and five placed 6,000
    # simulated images no better, as their volumes are noisier.
    harmonics: int = 2
    degree: int = 3
    # Points of the grid of places in all, and along one motion.
    max_points: int = 4000
    max_along: int = 48
    # Images at a time: their likelihoods on the grid take some 64 MB.
    block: int = 2000


@dataclass(frozen=True)
class Posterior:
    """Places of particles, given their images.

    Attributes
    ----------
    places : ndarray of shape (n, n_motions)
        Means, in [0, 1]; around a circle circular means.
    deviations : ndarray of shape (n, n_motions)
        Standard deviations in the same unit.
    features : Features
    """

    places: np.ndarray
    deviations: np.ndarray
    features: Features


@dataclass(frozen=True)
class Motions:
    """Independent motions of a molecule.

    Attributes
    ----------
    topologies : tuple of "interval" or "circle"
    settings : MotionSettings
    """

    topologies: tuple[str, ...]
    settings: MotionSettings = MotionSettings()

    def features(self, places: np.ndarray) -> np.ndarray:
        """Return the features of places, (n, n_features).

        The first is the constant 1; all have unit variance on even places.
        """
        columns = [np.ones((len(places), 1))]
        for topology, place in zip(self.topologies, places.T, strict=True):
            columns.append(self._along(topology, place))
        return np.hstack(columns)

    @property
    def are_circles(self) -> np.ndarray:
        """Whether each motion is a circle."""
        return np.array([topology == "circle" for topology in self.topologies])

    def own_features(self, motion: int) -> slice:
        """Return the columns of the features that one motion adds."""
        widths = [self._width(topology) for topology in self.topologies]
        start = 1 + sum(widths[:motion])
        return slice(start, start + widths[motion])

    def posterior(self, terms: Likelihood) -> Posterior:
        """Return the places of particles, given the likelihood of their features."""
        n_images, n_features = terms.linear.shape
        places = np.empty((n_images, len(self.topologies)))
        deviations = np.empty_like(places)
        mean = np.empty((n_images, n_features))
        products = np.empty((n_images, n_features, n_features))
        for start in range(0, n_images, self.settings.block):
            rows = slice(start, start + self.settings.block)
            weights = self._weights(terms.linear[rows], terms.quadratic[rows])
            mean[rows] = weights @ self._grid_features
            upper = weights @ self._grid_products
            first, second = self._pairs
            products[rows, first, second] = upper
            products[rows, second, first] = upper
            places[rows], deviations[rows] = self._moments(weights)
        return Posterior(places, deviations, Features(mean, products))

    def _weights(self, linear: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
        """Return the probability of every point of the grid, (n, n_points)."""
        first, second = self._pairs
        # A product of two features occurs twice in the quadratic form, a square once.
        twice = np.where(first == second, 0.5, 1.0)
        halves = quadratic[:, first, second] * twice
        score = linear @ self._grid_features.T - halves @ self._grid_products.T
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        return score / score.sum(axis=1, keepdims=True)

    def _moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moments = [
            MOMENTS[topology](weights, along, step)
            for topology, along, step in zip(
                self.topologies, self.grid.T, self._steps, strict=True
            )
        ]
        places, deviations = zip(*moments, strict=True)
        return np.column_stack(places), np.column_stack(deviations)

    @cached_property
    def grid(self) -> np.ndarray:
        """Places on all motions at the points of a grid, (n_points, n_motions)."""
        axes = [(np.arange(count) + 0.5) / count for count in self._counts]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(
            -1, len(self._counts)
        )

    @property
    def _counts(self) -> list[int]:
        """Points of the grid along each motion."""
        n_motions = len(self.topologies)
        along = int(self.settings.max_points ** (1 / n_motions))
        return n_motions * [min(along, self.settings.max_along)]

    @property
    def _steps(self) -> list[float]:
        return [1 / count for count in self._counts]

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self._grid_features.shape[1])

    @cached_property
    def _grid_features(self) -> np.ndarray:
        return self.features(self.grid)

    @cached_property
    def _grid_products(self) -> np.ndarray:
        first, second = np.triu_indices(self._grid_features.shape[1])
        return self._grid_features[:, first] * self._grid_features[:, second]

    def _along(self, topology: str, place: np.ndarray) -> np.ndarray:
        if topology == "circle":
            return _harmonics(place, self.settings.harmonics)
        return _polynomials(place, self.settings.degree)

    def _width(self, topology: str) -> int:
        return self._along(topology, np.zeros(1)).shape[1]


def _harmonics(place: np.ndarray, count: int) -> np.ndarray:
    """Return cosines and sines of unit variance."""
    angles = 2 * np.pi * np.outer(place, np.arange(1, count + 1))
    return np.sqrt(2) * np.hstack([np.cos(angles), np.sin(angles)])


def _polynomials(place: np.ndarray, degree: int) -> np.ndarray:
    """Return Legendre's polynomials of unit variance, without the constant."""
    scale = np.sqrt(2 * np.arange(1, degree + 1) + 1)
    return legendre.legvander(2 * place - 1, degree)[:, 1:] * scale


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


def _within(step: float) -> float:
    """Variance of even places inside a cell of the grid, which no place is below."""
    return step**2 / 12


MOMENTS = {"interval": _interval_moments, "circle": _circle_moments}
