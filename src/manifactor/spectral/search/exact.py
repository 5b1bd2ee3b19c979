"""The interface of the neighbour searches, the adapter for a caller's own, and the exact search."""

from collections.abc import Callable
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

# The interface of the neighbour searches, and the adapter for a caller's own.


class NeighborSearch(BaseEstimator):
    """Base class of the searches, modelled on scikit-learn's KNeighborsTransformer."""

    n_neighbors: int  # neighbours of each sample, itself not counted; a `CustomSearch` has none
    recall_: float = 1.0  # fraction of the true neighbours that is found; 1 for exact searches

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
        distances = sp.csr_array(self.search.fit(X).transform(X))
        _require_square(distances, len(X))
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


def _require_square(distances: sp.csr_array, n_samples: int) -> None:
    expected = (n_samples, n_samples)
    if distances.shape != expected:
        raise ValueError(
            f"`neighbors` must give distances of shape {expected} for its own training "
            f"samples; got {distances.shape}. Use an object like "
            "sklearn.neighbors.KNeighborsTransformer(mode='distance')."
        )


# Exact neighbour searches on the CPU: a k-d tree, and brute force.


class TreeSearch(NeighborSearch):
    """Exact search in few dimensions by SciPy's k-d tree.

    It takes two thirds of the time of KNeighborsTransformer.
    """

    def __init__(
        self, n_neighbors: int = 64, *, n_jobs: int | None = -1, ordered_above: int = 50_000
    ) -> None:
        """Store the parameters."""
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.ordered_above = ordered_above

    def sample_order(self, X) -> np.ndarray:
        """Return the samples leaf by leaf, where there are many, (n_samples,)."""
        if len(X) <= self.ordered_above:
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
        workers = thread_count(self.n_jobs)
        distances, indices = self.tree_.query(X, count, workers=workers)
        starts = np.arange(0, indices.size + 1, count)
        entries = (distances.ravel(), indices.ravel(), starts)
        shape = (len(X), self.tree_.n)
        return sp.csr_array(entries, shape=shape)


def nearest_point(
    points: np.ndarray, *, tree_dimensions: int = 8
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from samples to distance and index of the nearest point.

    In more than `tree_dimensions` columns a tree compares a sample with nearly all points, one by
    one; products of matrices are faster.
    """
    if points.shape[1] <= tree_dimensions:
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

    def __init__(
        self,
        n_neighbors: int = 64,
        *,
        n_jobs: int | None = -1,
        # Far above the square root of the rounding of double precision, 1.5e-8, by which distances
        # from inner products are wrong for copies.
        recomputed_below: float = 1e-6,
    ) -> None:
        """Store the parameters."""
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.recomputed_below = recomputed_below

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
        tiny = np.flatnonzero(distances.data < self.recomputed_below * largest)
        rows = np.searchsorted(distances.indptr, tiny, side="right") - 1
        gap = X[rows] - X[distances.indices[tiny]]
        distances.data[tiny] = np.linalg.norm(gap, axis=1)
        return distances
