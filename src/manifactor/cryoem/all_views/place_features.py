"""Places on factors of any shape as features of a volume."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.cryoem.all_views.terms import LEVELS


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
