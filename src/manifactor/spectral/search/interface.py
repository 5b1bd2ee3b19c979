"""The interface of the neighbour searches, and the adapter for a caller's own."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator


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
