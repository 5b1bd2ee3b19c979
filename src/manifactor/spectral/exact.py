"""The interface of the neighbour searches, the adapter for a caller's own, and exact searches."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifactor._support.threads import cores, thread_count

# Samples above which a tree puts those of a leaf next to each other; fewer stay in the caches
# whatever their order. The search of 100,000 then takes .6 of the time.
ORDERED_ABOVE = 50_000

# In more columns a tree compares a sample with nearly all others, one by one; products of matrices
# are faster at every size that was measured (3,000 to 50,000 samples).
TREE_DIMENSIONS = 8

# Distances that differ by less, relative to their size, may be in any order.
ROUNDING = 1e-12


class NeighborSearch(BaseEstimator):
    """Base class of the searches, modelled on scikit-learn's KNeighborsTransformer."""

    recall_: float = 1.0  # fraction of the true neighbours that is found; 1 for exact searches

    def __init__(self, n_neighbors: int = 64, *, n_jobs: int | None = -1) -> None:
        """Store the number of neighbours of each sample, itself not counted, and of threads."""
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def fit(self, X, y=None) -> "NeighborSearch":
        """Index the samples, (n_samples, n_features)."""
        raise NotImplementedError

    def transform(self, X) -> sp.csr_array:
        """Return distances of queries to their neighbours, (n_queries, n_samples)."""
        raise NotImplementedError

    def fit_transform(self, X, y=None) -> Any:
        """Index the samples and return the distances of each to its neighbours.

        Returns (n_samples, n_samples).
        """
        return self.fit(X).transform(X)

    def sample_order(self, X) -> np.ndarray:
        """Return the order in which the search prefers the samples, (n_samples,)."""
        return np.arange(X.shape[0])


class CustomSearch(NeighborSearch):
    """A search of the caller: its own metric and number of neighbours hold."""

    def __init__(self, search: Any) -> None:
        """Store the search."""
        self.search = search

    @property
    def recall_(self) -> float:  # type: ignore[override]
        """Recall that the search reports; nan if it reports none."""
        return getattr(self.search, "recall_", np.nan)

    def fit(self, X, y=None) -> "CustomSearch":
        """Fit the search of the caller."""
        self.search.fit(X)
        return self

    def transform(self, X) -> sp.csr_array:
        """Return the distances that the search of the caller finds."""
        return sp.csr_array(self.search.transform(X))

    def fit_transform(self, X, y=None) -> sp.csr_array:
        """Return the distances between the samples, checked."""
        distances = self.fit(X).transform(X)
        if distances.shape != (len(X), len(X)):
            raise ValueError(
                f"`neighbors` must give distances of shape {(len(X), len(X))} for its own training "
                f"samples; got {distances.shape}. Use an object like "
                "sklearn.neighbors.KNeighborsTransformer(mode='distance')."
            )
        require_distances(distances)
        return distances


def require_distances(graph: sp.csr_array) -> None:
    """Raise ValueError if a neighbour graph holds nothing but ones."""
    # Ones are what scikit-learn stores with mode="connectivity", which is its default in
    # kneighbors_graph.
    if graph.nnz and (graph.data == 1).all():
        raise ValueError(
            "the neighbour graph must hold distances; got ones only, which looks like "
            "connectivities. Use mode='distance'."
        )


def neighbor_rows(distances: np.ndarray, indices: np.ndarray, n_known: int) -> sp.csr_array:
    """Return distances and indices of neighbours, (n_queries, k), as a sparse matrix."""
    # Starts of the same type as the columns, or SciPy would copy these to the wider one.
    starts = np.arange(0, indices.size + 1, indices.shape[1], dtype=indices.dtype)
    entries = (distances.ravel(), indices.ravel(), starts)
    return sp.csr_array(entries, shape=(len(indices), n_known))


# Exact neighbour searches on the CPU: a k-d tree, and brute force.


class TreeSearch(NeighborSearch):
    """Exact search in few dimensions by SciPy's k-d tree.

    It takes two thirds of the time of KNeighborsTransformer.
    """

    def sample_order(self, X) -> np.ndarray:
        """Return the samples leaf by leaf, where there are many, (n_samples,)."""
        if len(X) <= ORDERED_ABOVE:
            return super().sample_order(X)
        return np.asarray(self.fit(X).tree_.indices)

    def fit(self, X, y=None) -> "TreeSearch":
        """Build the tree."""
        # Midpoint splits answer queries as fast as median splits if the samples are evenly spread,
        # and the tree is built sooner.
        self.tree_ = KDTree(X, balanced_tree=False, compact_nodes=False)
        return self

    def transform(self, X) -> sp.csr_array:
        """Return distances to `n_neighbors` + 1 samples, (n_queries, n_samples).

        The additional one is the sample itself, for queries that are in the tree.
        """
        count = min(self.n_neighbors + 1, self.tree_.n)
        distances, indices = self.tree_.query(X, count, workers=thread_count(self.n_jobs))
        return neighbor_rows(distances, indices, self.tree_.n)


def nearest_point(points: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from samples to distance and index of the nearest point."""
    if points.shape[1] <= TREE_DIMENSIONS:
        return partial(_nearest_in_tree, KDTree(points))
    mean = points.mean(axis=0)
    return partial(_nearest_of_all, points - mean, mean)


def _nearest_in_tree(tree: KDTree, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tree.query(X, workers=cores())


def _nearest_of_all(
    points: np.ndarray, mean: np.ndarray, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    index, distance = pairwise_distances_argmin_min(X - mean, points)
    return distance, index


class BruteSearch(NeighborSearch):
    """Exact search by comparing all pairs of centred samples."""

    def fit(self, X, y=None) -> "BruteSearch":
        """Centre and store the samples."""
        knn = KNeighborsTransformer(
            n_neighbors=self.n_neighbors, algorithm="brute", n_jobs=thread_count(self.n_jobs)
        )
        # Brute force expands the square of a difference, which cancels most digits of samples that
        # lie far from the origin.
        self.pipeline_ = make_pipeline(StandardScaler(with_std=False), knn).fit(X)
        return self

    def transform(self, X) -> sp.csr_array:
        """Return distances to `n_neighbors` + 1 samples, (n_queries, n_samples)."""
        return sp.csr_array(self.pipeline_.transform(X))

    def fit_transform(self, X, y=None) -> sp.csr_array:
        """Return distances between the samples; copies are exactly 0 apart."""
        distances = self.fit(X).transform(X)
        largest = np.abs(X - X.mean(axis=0)).max()
        # Far above the square root of the rounding of double precision, 1.5e-8, by which distances
        # from inner products are wrong for copies.
        tiny = np.flatnonzero(distances.data < 1e-6 * largest)
        rows = np.searchsorted(distances.indptr, tiny, side="right") - 1
        gap = X[rows] - X[distances.indices[tiny]]
        distances.data[tiny] = np.linalg.norm(gap, axis=1)
        return distances


# The nearest samples of many new ones, found on the list of their nearest sample.


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
        slack = 1 + ROUNDING
        inside = squared <= slack * last[:, None]
        complete = slack * (np.sqrt(last) + distance) < self.radius.take(nearest)
        # Where several are at the last one's distance, the tree says which.
        alone = np.count_nonzero(inside, axis=1) == self.count
        doubtful = np.flatnonzero(~(far | (complete & alone)))
        if len(doubtful):
            found = self._in_tree(X[doubtful], X[doubtful])
            squared[doubtful], inside[doubtful] = np.inf, False
            indices[doubtful, : self.count] = found.indices
            squared[doubtful, : self.count] = found.squared
            inside[doubtful, : self.count] = True
        return Around(indices, squared, inside)

    def _in_tree(self, X: np.ndarray, near: np.ndarray) -> Around:
        """Return the samples nearest to those at `near`, by the tree."""
        found = self.tree.query(near, self.count)[1].reshape(len(X), self.count)
        indices = np.sort(found, axis=1)
        inside = np.ones(indices.shape, dtype=bool)
        return Around(indices, self._squared(X, indices), inside)

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
    samples: np.ndarray, count: int, *, dimension: float, n_new: int, reach: float = np.inf
) -> NearestSamples:
    """Return a search for the `count` nearest of the samples.

    Lists of the samples near each sample are made where the number of new samples pays for them: in
    few dimensions the neighbours of a new sample are near its nearest sample, and comparing it with
    a list takes a fifth of the time of a tree.

    Shapes: samples (n_samples, n_features).
    """
    samples = np.asarray(samples, dtype=np.float64)
    count = min(count, len(samples))
    tree = KDTree(samples)
    columns = np.ascontiguousarray(samples.T)
    # A list reaches far enough for new samples whose nearest sample is so far off that 6 samples
    # were to be expected within that distance; others, 1 in 100, are looked up in the tree. Lists
    # have 110 samples for 65 neighbours in 2 dimensions, and 420 in 4, beyond which a tree is as
    # fast.
    few = max(1.0, dimension)
    length = int(np.ceil(count * (1 + (6 / count) ** (1 / few)) ** few))
    # One takes twice as long as the neighbours of a new sample. Above 100,000 samples they would
    # take more than some 100 MB.
    pays = 4 * len(samples) <= n_new and len(samples) <= 100_000
    if not (pays and dimension <= 4 and length < len(samples)):
        return NearestSamples(columns, tree, count, reach)
    distance, found = tree.query(samples, length, workers=cores())
    return NearestSamples(columns, tree, count, reach, np.sort(found, axis=1), distance[:, -1])
