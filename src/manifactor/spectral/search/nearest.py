"""The nearest samples of many new ones, found on the list of their nearest sample."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import cores


@dataclass(frozen=True)
class ListSettings:
    """Settings of `nearest_samples`."""

    # Lists grow with the intrinsic dimension: 110 samples for 65 neighbours in 2 dimensions, 420 in
    # 4, beyond which a tree is as fast.
    most_dimensions: float = 4.0

    # A list reaches far enough for new samples whose nearest sample is so far off that 6 samples
    # were to be expected within that distance; others, 1 in 100, are looked up in the tree.
    expected_nearer: float = 6.0

    # New samples for each known one from which on lists pay: one takes twice as long as the
    # neighbours of a new sample.
    new_per_known: float = 4.0

    # Known samples above which lists would take more than some 100 MB.
    most_known: int = 100_000

    # Distances that differ by less, relative to their size, may be in any order.
    rounding: float = 1e-12

    def length(self, count: int, dimension: float) -> int:
        """Return how long a list must be for `count` neighbours.

        >>> ListSettings().length(65, 2.0)
        111
        """
        farther = (self.expected_nearer / count) ** (1 / dimension)
        return int(np.ceil(count * (1 + farther) ** dimension))


@dataclass(frozen=True)
class Around:
    """Known samples around new ones."""

    # (n_new, width): known samples, ascending in every row; the nearest ones are among them
    indices: np.ndarray
    squared: np.ndarray  # (n_new, width): squared distances
    inside: np.ndarray  # (n_new, width): which of them are the nearest ones

    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest sample of each new one, and its squared distance."""
        rows = np.arange(len(self.indices))
        at = self.squared.argmin(axis=1)
        return self.indices[rows, at], self.squared[rows, at]


@dataclass(frozen=True)
class NearestSamples:
    """A search for the `count` nearest samples, exact.

    The result for a new sample depends on nothing else, to the last bit: not on the others that are
    asked for, nor on whether there are lists.
    """

    samples: np.ndarray  # (n_features, n_samples): columns one after the other
    tree: KDTree
    count: int
    # Distance of the nearest sample beyond which the others do not matter: those of the nearest
    # sample itself will do. A tree takes long for them.
    reach: float = np.inf
    lists: np.ndarray | None = None  # (n_samples, length): samples near each sample, ascending
    # (n_samples,): distance up to which the list of a sample has all
    radius: np.ndarray | None = None
    settings: ListSettings = ListSettings()

    def around(self, X: np.ndarray) -> Around:
        """Return the nearest samples of new ones, (n_new, n_features)."""
        distance, nearest = self.tree.query(X)
        far = distance > self.reach
        near = np.where(far[:, None], self.tree.data[nearest], X)
        if self.lists is None or self.radius is None:
            return self._in_tree(X, near)
        indices = self.lists.take(nearest, axis=0)
        squared = self._squared(X, indices)
        # The distance of the last one that belongs to the nearest.
        last = np.partition(squared, self.count - 1, axis=1)[:, self.count - 1]
        slack = 1 + self.settings.rounding
        inside = squared <= slack * last[:, None]
        complete = slack * (np.sqrt(last) + distance) < self.radius.take(nearest)
        # Where several are at the last one's distance, the tree says which.
        alone = np.count_nonzero(inside, axis=1) == self.count
        around = Around(indices, squared, inside)
        doubtful = np.flatnonzero(~(far | (complete & alone)))
        self._correct(around, X, doubtful)
        return around

    def _in_tree(self, X: np.ndarray, near: np.ndarray) -> Around:
        """Return the samples nearest to those at `near`, by the tree."""
        found = self.tree.query(near, self.count)[1].reshape(len(X), self.count)
        indices = np.sort(found, axis=1)
        inside = np.ones(indices.shape, dtype=bool)
        return Around(indices, self._squared(X, indices), inside)

    def _correct(self, around: Around, X: np.ndarray, rows: np.ndarray) -> None:
        """Replace what lists say of some rows by what the tree says."""
        if not len(rows):
            return
        found = self._in_tree(X[rows], X[rows])
        around.squared[rows], around.inside[rows] = np.inf, False
        around.indices[rows, : self.count] = found.indices
        around.squared[rows, : self.count] = found.squared
        around.inside[rows, : self.count] = True

    def _squared(self, X: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Return squared distances between new samples and known ones, (n_new, k)."""
        squared = np.zeros(indices.shape)
        other = np.empty(indices.shape)
        for column, known in zip(X.T, self.samples, strict=True):
            # All indices are right, and "clip" is the mode that does not look.
            known.take(indices, out=other, mode="clip")
            other -= column[:, None]
            other *= other
            squared += other
        return squared


def nearest_samples(
    samples: np.ndarray,
    count: int,
    *,
    dimension: float,
    n_new: int,
    reach: float = np.inf,
    settings: ListSettings = ListSettings(),
) -> NearestSamples:
    """Return a search for the `count` nearest of the samples.

    Lists of the samples near each sample are made where so many new samples pay for them: in few
    dimensions the neighbours of a new sample are near its nearest sample, and comparing it with a
    list takes a fifth of the time of a tree.

    Shapes: samples (n_samples, n_features).
    """
    samples = np.asarray(samples, dtype=np.float64)
    count = min(count, len(samples))
    tree = KDTree(samples)
    columns = np.ascontiguousarray(samples.T)
    search = NearestSamples(columns, tree, count, reach, settings=settings)
    length = settings.length(count, max(1.0, dimension))
    pays = settings.new_per_known * len(samples) <= n_new
    short = dimension <= settings.most_dimensions and length < len(samples)
    if not (pays and short and len(samples) <= settings.most_known):
        return search
    distance, found = tree.query(samples, length, workers=cores())
    return NearestSamples(
        columns, tree, count, reach, np.sort(found, axis=1), distance[:, -1], settings
    )
