"""Points to neighbour graph: who is near whom, and how far."""

import logging
import os
import warnings
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from manifactor.spectral.resident import (
    DeviceSearch,
    NeighborTable,
    ResidentMatrix,
    require_device,
    resident,
)
from manifactor.spectral.search.approximate import ApproximateSearch

log = logging.getLogger("manifactor")

SEARCHES = ("kd_tree", "brute", "faiss")
AUTO_NEIGHBORS = 64  # the lowest 30 functions of flat 2-D and 3-D shapes were most accurate between 64 and 128
KD_TREE_DIMENSIONS = 8  # above, the fused brute force of scikit-learn wins at any size we measured (3,000 to 50,000)
MANY = 50_000  # samples above which faiss costs half of a tree in 6 dimensions, and a fifth of brute force in 16 and 64
FEW_DIMENSIONS = 5  # in which a tree wins whatever the number of samples


class DisconnectedGraphWarning(UserWarning):
    """The neighbour graph fell into several components and was joined."""


@dataclass(frozen=True)
class NeighborGraph:
    """Neighbours of the distinct samples, and how the given samples map onto them.

    Attributes
    ----------
    distances : csr_array or ResidentMatrix of shape (n_distinct, n_distinct)
        Symmetric; an entry for every pair of which one is a neighbour of the other; never zero.
    bridges : ndarray of shape (n_components - 1, 2)
        Pairs of distinct samples that join the components.
    distinct : ndarray of shape (n_distinct,)
        The given sample that each distinct sample is.
    inverse : ndarray of shape (n_samples,)
        The distinct sample that each given sample is a copy of.
    components : ndarray of shape (n_samples,)
        The component of each given sample before joining, the largest first.
    search : object or None
        Its ``transform`` finds the neighbours of new samples; None when distances were given.
    method : str
        How the neighbours were found.
    n_neighbors : int or None
        Neighbours that an exact search finds for each sample.
    recall : float
        Share of the nearest neighbours that were found, measured; 1 for exact searches, nan for the caller's own.
    outliers : ndarray of bool of shape (n_samples,)
        Given samples that were left out of the graph; `inverse` sends them to their nearest neighbour.
    """

    distances: Any
    bridges: np.ndarray
    distinct: np.ndarray
    inverse: np.ndarray
    components: np.ndarray
    search: Any
    method: str
    n_neighbors: int | None
    recall: float
    outliers: np.ndarray

    @property
    def multiplicity(self) -> np.ndarray:
        """How many of the given samples each distinct sample stands for, (n_distinct,); outliers do not count."""
        return np.bincount(
            self.inverse[~self.outliers], minlength=len(self.distinct)
        ).astype(float)

    def settled(self) -> "NeighborGraph":
        """The same with its distances on this machine's side."""
        on_device = isinstance(self.distances, ResidentMatrix)
        return replace(self, distances=self.distances.tocsr()) if on_device else self

    def with_search(self, samples: np.ndarray, n_jobs: int | None) -> "NeighborGraph":
        """The graph with its search built again from the given samples, where it is one of ours and was not kept."""
        if self.search is not None or self.method not in (*SEARCHES, "cells"):
            return self
        method = (
            "auto" if self.method in ("cells", "faiss") else self.method
        )  # what was there then need not be now
        search, _ = make_search(samples, self.n_neighbors or 1, method, n_jobs)
        return replace(self, search=search.fit(chosen(samples, self.distinct)))

    def on_device(self, device: str) -> "NeighborGraph":
        """The same with its distances on a device; on the CPU, and where pieces had to be joined, they stay."""
        if device == "cpu" or len(self.bridges) or not sp.issparse(self.distances):
            return self
        return replace(self, distances=resident(self.distances, require_device(device)))

    def without(self, isolated: np.ndarray, X: np.ndarray) -> "NeighborGraph":
        """The graph without some of its distinct samples, which then lie where their nearest neighbour lies.

        Parameters
        ----------
        isolated : ndarray of bool of shape (n_distinct,)
        X : ndarray of shape (n_samples, n_features)
            The given samples.
        """
        kept = np.flatnonzero(~isolated)
        distinct = self.distinct[kept]
        samples = X[distinct]
        near = NearestNeighbors(n_neighbors=1).fit(samples)
        place = np.empty(len(isolated), dtype=int)
        place[kept] = np.arange(len(kept))
        place[isolated] = near.kneighbors(
            X[self.distinct[isolated]], return_distance=False
        )[:, 0]
        search = clone(self.search, safe=False)
        n_neighbors = _limited(search, self.n_neighbors, len(kept))
        anew = (
            n_neighbors is None
            or n_neighbors != self.n_neighbors
            or isinstance(self.distances, ResidentMatrix)
        )
        if anew:
            distances = _symmetric(
                _searched(search, samples, euclidean=n_neighbors is not None)
            )
        else:
            bereft = np.intersect1d(self.distances[isolated].indices, kept)
            distances = self.distances[kept][:, kept]
            distances = distances.maximum(
                _found_anew(search.fit(samples), samples, place[bereft])
            )
        if isinstance(self.distances, ResidentMatrix) and sp.issparse(distances):
            distances = resident(distances, self.distances.entries.device)
        joined = _joined(
            distances, samples, distinct, place[self.inverse], search, n_neighbors
        )
        if not anew:
            joined["recall"] = min(
                self.recall, joined["recall"]
            )  # most edges are those found before
        return replace(self, **joined, outliers=self.outliers | isolated[self.inverse])

    def distances_to(self, X) -> sp.csr_array:
        """Distances from new samples to their neighbours among the distinct samples, (n_new, n_distinct)."""
        if self.search is not None:
            return sp.csr_array(self.search.transform(X))
        if self.method == "custom":
            raise ValueError(
                "new samples need the `neighbors` object of the fit, which archives do not hold; fit again with it."
            )
        if X.shape[1] != len(self.inverse):
            raise ValueError(
                f"with `neighbors='precomputed'` new samples are rows of distances to the {len(self.inverse)} "
                f"training samples; got {X.shape[1]} columns."
            )
        return _merged(sp.csr_array(X), np.arange(X.shape[0]), self.inverse)


def neighbor_graph(
    X,
    n_neighbors: int,
    *,
    method: Any = "auto",
    n_jobs: int | None = None,
    device: str = "cpu",
) -> NeighborGraph:
    """Symmetric graph of the `n_neighbors` nearest neighbours of every sample, connected, without duplicates.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or sparse of shape (n_samples, n_samples)
        Samples, or with ``method="precomputed"`` the distances of each to its neighbours.
    n_neighbors : int
        Neighbours of each sample, itself not counted. Ignored for precomputed distances.
    method : "auto", "kd_tree", "brute", "faiss", "precomputed" or an object like KNeighborsTransformer
        An object is used as it is: its own number of neighbours holds.
    n_jobs : int or None
        Threads of the search; None for all cores.
    device : str
        Where to search if "auto": on the CPU, or on a device that torch knows, where the graph then stays.
    """
    if isinstance(method, str) and method == "precomputed":
        _require_distances(sp.csr_array(X))
        return _finish(sp.csr_array(X), None, None, "precomputed", None)
    if not isinstance(method, str):
        return _finish(None, X, clone(method, safe=False), "custom", None)
    if device != "cpu" and method == "auto":
        search = DeviceSearch(n_neighbors, device=require_device(device))
        return _finish(None, X, search, "cells", n_neighbors)
    search, name = make_search(X, n_neighbors, method, n_jobs)
    return _finish(None, X, search, name, n_neighbors)


def make_search(
    X: np.ndarray, n_neighbors: int, method: str, n_jobs: int | None
) -> tuple[Any, str]:
    """Euclidean search with fit and transform, and its name; exact ones are centred, for the digits of brute force."""
    if method == "auto":
        method = _fastest(*X.shape)
    if method == "faiss":
        return ApproximateSearch(n_neighbors, n_jobs=n_jobs), method
    if method == "kd_tree":
        return TreeSearch(n_neighbors, n_jobs=n_jobs), method
    knn = KNeighborsTransformer(
        n_neighbors=n_neighbors, algorithm=method, n_jobs=n_jobs or os.cpu_count()
    )
    return make_pipeline(StandardScaler(with_std=False), knn), method


class TreeSearch(BaseEstimator):
    """Exact search in few dimensions, like KNeighborsTransformer, by scipy's tree, in two thirds of the time."""

    def __init__(self, n_neighbors: int = 64, *, n_jobs: int | None = None) -> None:
        """Remember the parameters."""
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def fit(self, X, y=None) -> "TreeSearch":
        """Grow the tree."""
        self.tree_ = KDTree(
            X, balanced_tree=False, compact_nodes=False
        )  # as fast for even samples, sooner grown
        return self

    def transform(self, X) -> sp.csr_array:
        """Distances to one more than `n_neighbors` samples, (n_new, n): a sample that is in the tree finds itself."""
        count = min(self.n_neighbors + 1, self.tree_.n)
        distances, indices = self.tree_.query(
            X, count, workers=effective_n_jobs(self.n_jobs or -1)
        )
        start = np.arange(0, indices.size + 1, count)
        return sp.csr_array(
            (distances.ravel(), indices.ravel(), start), shape=(len(X), self.tree_.n)
        )


def _fastest(n_samples: int, n_features: int) -> str:
    """The fastest search for this size that is installed; it is exact unless there are many samples."""
    exact = "kd_tree" if n_features <= KD_TREE_DIMENSIONS else "brute"
    if n_samples <= MANY or n_features <= FEW_DIMENSIONS:
        return exact
    if find_spec("faiss") is not None:
        return "faiss"
    log.warning(
        "neighbours of %d samples in %d dimensions are sought exactly (%s), which takes time that grows with the "
        "square of the samples; the more there are, the more faiss would save: pip install 'manifactor[ann]'.",
        n_samples,
        n_features,
        exact,
    )
    return exact


def chosen(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Some of the samples; all of them are not copied."""
    return X if len(rows) == len(X) and (rows[:-1] < rows[1:]).all() else X[rows]


def _finish(
    distances, X, search, method: str, n_neighbors: int | None
) -> NeighborGraph:
    """Search, merge copies and search again until there are none, symmetrise, join components."""
    n = X.shape[0] if distances is None else distances.shape[0]
    distinct = inverse = np.arange(n)
    if isinstance(search, DeviceSearch):
        distinct = search.local_order(X)
        inverse = np.argsort(distinct)
    while True:
        if X is not None:
            n_neighbors = _limited(search, n_neighbors, len(distinct))
            distances = _searched(
                search, chosen(X, distinct), euclidean=n_neighbors is not None
            )
        copy_of = _copies(distances)
        if copy_of is None:
            break
        first = np.unique(copy_of, return_index=True)[1]
        if len(first) < 3:
            raise ValueError(
                f"at least 3 samples must differ; got {n} samples of which {len(first)} are distinct. "
                "Check that the right columns were read."
            )
        distinct, inverse = distinct[first], copy_of[inverse]
        if X is None:
            distances = _merged(distances, copy_of, copy_of)
    distances, samples = (
        _symmetric(distances),
        None if X is None else chosen(X, distinct),
    )
    joined = _joined(distances, samples, distinct, inverse, search, n_neighbors)
    return NeighborGraph(**joined, method=method, outliers=np.zeros(n, dtype=bool))


def _joined(
    distances, samples, distinct, inverse, search, n_neighbors: int | None
) -> dict[str, Any]:
    """A graph's fields from the symmetric distances between the distinct samples, its pieces joined."""
    bridges, component = _bridges(distances, samples, inverse)
    return {
        "distances": distances,
        "bridges": bridges,
        "distinct": distinct,
        "inverse": inverse,
        "components": component[inverse],
        "search": search,
        "n_neighbors": n_neighbors,
        "recall": getattr(search, "recall_", np.nan if n_neighbors is None else 1.0),
    }


def _found_anew(search, samples: np.ndarray, rows: np.ndarray) -> sp.csr_array:
    """Symmetric distances between some samples, given by their rows, and their neighbours."""
    if not len(rows):
        return sp.csr_array((len(samples), len(samples)))
    found = sp.csr_array(search.transform(samples[rows]))
    place = sp.csr_array(
        (np.ones(len(rows)), (rows, np.arange(len(rows)))),
        shape=(len(samples), len(rows)),
    )
    return _symmetric(sp.csr_array(place @ found))


def _symmetric(
    distances: sp.csr_array | NeighborTable,
) -> sp.csr_array | ResidentMatrix:
    """An entry wherever either sample is a neighbour of the other, none on the diagonal."""
    if isinstance(distances, NeighborTable):
        return distances.symmetric()
    distances = distances.maximum(distances.T)
    distances = sp.csr_array(distances - sp.diags_array(distances.diagonal()))
    distances.eliminate_zeros()
    distances.sort_indices()
    return distances


def _searched(
    search, X: np.ndarray, *, euclidean: bool
) -> sp.csr_array | NeighborTable:
    """Distances from each sample to its neighbours; copies are exactly 0 apart, where brute force rounds."""
    if isinstance(search, DeviceSearch):
        return search.fit(X).table()
    distances = sp.csr_array(search.fit(X).transform(X))
    _require_square(distances, len(X))
    if not euclidean:
        _require_distances(distances)
        return distances
    if isinstance(search, ApproximateSearch | TreeSearch):
        return distances
    tiny = np.flatnonzero(distances.data < 1e-6 * np.abs(X - X.mean(axis=0)).max())
    gap = X[row_of(distances)[tiny]] - X[distances.indices[tiny]]
    distances.data[tiny] = np.linalg.norm(gap, axis=1)
    return distances


def _require_square(distances: sp.csr_array, n_samples: int) -> None:
    if distances.shape != (n_samples, n_samples):
        raise ValueError(
            f"`neighbors` must give distances of shape {(n_samples, n_samples)} for its own training samples; "
            f"got {distances.shape}. Use an object like sklearn.neighbors.KNeighborsTransformer(mode='distance')."
        )


def _require_distances(graph: sp.csr_array) -> None:
    if graph.nnz and (graph.data == 1).all():
        raise ValueError(
            "the neighbour graph must hold distances; got ones only, which looks like connectivities. "
            "Use mode='distance'."
        )


def _limited(search, n_neighbors: int | None, n_samples: int) -> int | None:
    """Fewer neighbours in an exact search when merging copies left fewer samples than were asked for."""
    if n_neighbors is None or n_neighbors < n_samples:
        return n_neighbors
    (search[-1] if isinstance(search, Pipeline) else search).n_neighbors = n_samples - 1
    return n_samples - 1


def row_of(matrix: sp.csr_array) -> np.ndarray:
    """The row of every stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _merged(
    distances: sp.csr_array, group: np.ndarray, column_group: np.ndarray
) -> sp.csr_array:
    """Shortest distances between groups of rows and groups of columns; a group's distance to itself stays 0."""
    row, column, data = (
        group[row_of(distances)],
        column_group[distances.indices],
        distances.data,
    )
    order = np.lexsort((data, column, row))
    row, column, data = row[order], column[order], data[order]
    first = np.r_[True, (np.diff(row) != 0) | (np.diff(column) != 0)][: len(row)]
    shape = (group.max(initial=-1) + 1, column_group.max() + 1)
    return sp.csr_array((data[first], (row[first], column[first])), shape=shape)


def _copies(distances: sp.csr_array | NeighborTable) -> np.ndarray | None:
    """The group of copies that each sample belongs to, or None when all samples differ."""
    if isinstance(distances, NeighborTable):
        edges = distances.copies()
    else:
        row = row_of(distances)
        zero = (distances.data == 0) & (row != distances.indices)
        edges = sp.csr_array(
            (np.ones(zero.sum()), (row[zero], distances.indices[zero])),
            shape=distances.shape,
        )
    return connected_components(edges, directed=False)[1] if edges.nnz else None


def _bridges(distances, X, inverse) -> tuple[np.ndarray, np.ndarray]:
    """Shortest edges that join the components, (n_components - 1, 2), and each distinct sample's component."""
    if isinstance(distances, ResidentMatrix):
        if distances.components() == 1:
            return np.empty((0, 2), dtype=int), np.zeros(distances.shape[0], dtype=int)
        distances = distances.tocsr()
    count, label = connected_components(distances, directed=False)
    size = np.bincount(label[inverse])
    rank = np.argsort(np.argsort(-size, kind="stable"), kind="stable")
    label = rank[label]
    if count == 1:
        return np.empty((0, 2), dtype=int), label
    sizes = ", ".join(str(s) for s in np.sort(size)[::-1][:5]) + (
        ", ..." if count > 5 else ""
    )
    found = f"the neighbour graph has {count} components of {sizes} samples"
    if X is None:
        raise ValueError(
            f"a precomputed graph must be connected; {found}. Give more neighbours to each sample, or pass the "
            "samples themselves so that the components can be joined."
        )
    warnings.warn(
        f"{found}; they were joined by the shortest edges between them, so the lowest functions tell the "
        "components apart. Raise `n_neighbors`, or work on the largest component: fit X[estimator.components_ == 0].",
        DisconnectedGraphWarning,
        stacklevel=2,
    )
    return _shortest_edges(X, label), label


def _shortest_edges(X: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Edges of the shortest tree over the components (Boruvka's rounds)."""
    edges: list[tuple[int, int]] = []
    merged = label.copy()
    while merged.any():
        found = []
        for c in range(1, merged.max() + 1):
            inside, outside = np.flatnonzero(merged == c), np.flatnonzero(merged != c)
            near = NearestNeighbors(n_neighbors=1, n_jobs=os.cpu_count()).fit(
                X[outside]
            )
            d, j = near.kneighbors(X[inside])
            best = int(np.argmin(d))
            found.append(
                (float(d[best, 0]), int(inside[best]), int(outside[j[best, 0]]))
            )
        for _, a, b in sorted(found):
            if merged[a] != merged[b]:
                edges.append((a, b))
                merged[merged == merged[a]] = merged[b]
        merged = np.unique(merged, return_inverse=True)[1]
        merged = np.argsort(
            np.argsort(-np.bincount(merged), kind="stable"), kind="stable"
        )[merged]
    return np.array(edges)
