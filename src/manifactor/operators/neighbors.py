"""The graph of nearest neighbours: copies are merged, components joined."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_argmin_min

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice, given
from manifactor._support.threads import cores, map_panels
from manifactor.operators.engines.cells import DeviceSearch, NeighborTable
from manifactor.operators.engines.gpu import ResidentMatrix, require_device, resident
from manifactor.operators.engines.searches import (
    TREE_DIMENSIONS,
    ApproximateSearch,
    BruteSearch,
    CustomSearch,
    NeighborSearch,
    TreeSearch,
    require_distances,
)
from manifactor.operators.metric import LocalMetric, MetricSearch

log = logging.getLogger("manifactor")

SEARCHES = {"kd_tree": TreeSearch, "brute": BruteSearch, "faiss": ApproximateSearch}

# Default number of neighbours: the lowest 30 functions of flat 2-D and 3-D shapes were most
# accurate between 64 and 128.
N_NEIGHBORS = 64

# Samples above which faiss costs half of a tree in 6 dimensions, and a fifth of brute force in 16
# and 64.
APPROXIMATE_ABOVE = 50_000

# Up to this number of dimensions a tree is fastest for any number of samples.
FEW_DIMENSIONS = 5


def choose_search(
    n_samples: int, n_features: int, *, method: Any = "auto", device: str = "cpu"
) -> Choice:
    """Choose the search for samples of this shape."""
    if not isinstance(method, str):
        return given("custom")
    if method != "auto":
        return given(method)
    if device != "cpu":
        return Choice("cells", "exact; it runs on the device")
    exact, fastest = "brute", "comparing all pairs is fastest in many dimensions"
    if n_features <= TREE_DIMENSIONS:
        exact, fastest = "kd_tree", "a tree is fastest in few dimensions"
    if n_samples <= APPROXIMATE_ABOVE or n_features <= FEW_DIMENSIONS:
        return Choice(exact, f"exact; {fastest}")
    many = f"there are more than {APPROXIMATE_ABOVE:,} samples"
    # Not imported here: loading faiss is left to the fit of the search.
    if find_spec("faiss") is not None:
        return Choice("faiss", f"approximate, as {many}; its recall is measured")
    log.warning(
        "the exact search (%s) of %d samples in %d dimensions takes time that grows "
        "with the square of the number of samples; faiss would save most of it: "
        "pip install 'manifactor[ann]'.",
        exact,
        n_samples,
        n_features,
    )
    return Choice(exact, f"exact; {many}, but the package faiss is not installed")


def make_search(
    method: str, n_neighbors: int, *, n_jobs: int | None = -1, device: str = "cpu"
) -> NeighborSearch:
    """Return a Euclidean search by name: "kd_tree", "brute", "faiss" or "cells"."""
    if method == "cells":
        return DeviceSearch(n_neighbors, device=require_device(device))
    return SEARCHES[method](n_neighbors, n_jobs=n_jobs)


def symmetric(distances: sp.csr_array | NeighborTable) -> sp.csr_array | ResidentMatrix:
    """Return an entry wherever either sample is a neighbour, none on the diagonal."""
    if isinstance(distances, NeighborTable):
        return distances.symmetric()
    # Indices of 4 bytes, where the symmetric form allows it.
    if max(2 * distances.nnz, *distances.shape) <= np.iinfo(np.int32).max:
        pattern = (
            part.astype(np.int32, copy=False) for part in (distances.indices, distances.indptr)
        )
        distances = sp.csr_array((distances.data, *pattern), shape=distances.shape)
    # Both directions of an edge have the same distance, or one of them none.
    distances = distances.maximum(distances.T)
    diagonal = distances.diagonal()
    if diagonal.any():  # only a matrix of the caller's has one
        distances = sp.csr_array(distances - sp.diags_array(diagonal))
    distances.eliminate_zeros()
    distances.sort_indices()
    return distances


class DisconnectedGraphWarning(UserWarning):
    """The neighbour graph had several components, which were joined."""


def join_components(
    distances: sp.csr_array | ResidentMatrix, samples: np.ndarray | None, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the component of each distinct sample, the largest first, and edges that join them."""
    none = np.empty((0, 2), dtype=int)
    if isinstance(distances, ResidentMatrix):
        # Counted on the device: a graph that has to be copied to the host is rare.
        if distances.components() == 1:
            return np.zeros(distances.shape[0], dtype=int), none
        distances = distances.tocsr()
    count, label = connected_components(distances, directed=False)
    size = np.bincount(label[inverse])
    label = _rank(size)[label]
    if count == 1:
        return label, none
    if samples is None:
        raise ValueError(
            f"a precomputed graph must be connected; {_in_words(size)}. Give more neighbours to "
            "each sample, or pass the samples themselves so that the components can be joined."
        )
    return label, _shortest_edges(samples, label)


def _in_words(size: np.ndarray) -> str:
    """Return the number of components and the sizes of the largest."""
    largest, more = ", ".join(map(str, np.sort(size)[:-6:-1])), ", ..." if len(size) > 5 else ""
    return f"the neighbour graph has {len(size)} components of {largest}{more} samples"


def _rank(size: np.ndarray) -> np.ndarray:
    """Return the place of each component, the largest first."""
    return np.argsort(np.argsort(-size, kind="stable"), kind="stable")


def _shortest_edges(X: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the edges of the shortest tree over the components, by Boruvka's algorithm."""
    edges: list[tuple[int, int]] = []
    merged = label.copy()
    while merged.any():
        nearest = [_nearest_outside(X, merged == c) for c in range(1, merged.max() + 1)]
        for _, a, b in sorted(nearest):
            # Two components may choose the same edge, or edges that close a circle.
            if merged[a] != merged[b]:
                edges.append((a, b))
                merged[merged == merged[a]] = merged[b]
        merged = np.unique(merged, return_inverse=True)[1]
        # The largest becomes 0 again: it is the one whose edge would cost the most.
        merged = _rank(np.bincount(merged))[merged]
    return np.array(edges)


def _nearest_outside(X: np.ndarray, component: np.ndarray) -> tuple[float, int, int]:
    """Return the shortest edge from a component to other samples: length and ends."""
    inside, outside = np.flatnonzero(component), np.flatnonzero(~component)
    distances, neighbors = nearest_point(X[outside])(X[inside])
    best = int(np.argmin(distances))
    return float(distances[best]), int(inside[best]), int(outside[neighbors[best]])


def merged(
    rows: np.ndarray, inverse: np.ndarray, copy_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return `distinct` and `inverse` of a graph with one sample for each group of copies."""
    first = np.unique(copy_of, return_index=True)[1]
    # Two samples have one distance, which shows no geometry.
    if len(first) < 3:
        raise ValueError(
            f"at least 3 samples must differ; got {len(inverse)} samples of which {len(first)} are "
            "distinct. Check that the right columns were read."
        )
    return rows[first], copy_of[inverse]


def copy_groups(distances: sp.csr_array | NeighborTable) -> np.ndarray | None:
    """Return the group of copies of each sample, (n,); None if all samples differ."""
    if isinstance(distances, NeighborTable):
        edges = distances.copies()
    else:
        zero = np.flatnonzero(distances.data == 0)
        row = np.searchsorted(distances.indptr, zero, side="right") - 1
        column = distances.indices[zero]
        # On the diagonal, 0 is the distance of a sample to itself.
        others = row != column
        pairs = (row[others], column[others])
        edges = sp.csr_array((np.ones(others.sum()), pairs), shape=distances.shape)
    return connected_components(edges, directed=False)[1] if edges.nnz else None


def shortest_between(
    distances: sp.csr_array, row_group: np.ndarray, column_group: np.ndarray
) -> sp.csr_array:
    """Return the shortest distances between groups of rows and of columns."""
    row, column = row_group[row_of(distances)], column_group[distances.indices]
    order = np.lexsort((distances.data, column, row))
    row, column = row[order], column[order]
    # Sorted by pair of groups and then by distance: the first of each pair is shortest.
    first = np.r_[True, (np.diff(row) != 0) | (np.diff(column) != 0)][: len(row)]
    # `initial`: a matrix of no rows has no largest group.
    shape = (row_group.max(initial=-1) + 1, column_group.max() + 1)
    return sp.csr_array((distances.data[order][first], (row[first], column[first])), shape=shape)


def row_of(matrix: sp.csr_array) -> np.ndarray:
    """Return the row of every stored entry, (n_entries,)."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


# Fields of a graph with one entry for each given sample.
OF_SAMPLES = ("inverse", "components", "outliers", "undrawn")


@dataclass(frozen=True)
class NeighborGraph:
    """Neighbours of the distinct samples, and how the given samples map onto them."""

    # (n_distinct, n_distinct): symmetric; an entry for every pair of which one is a neighbour of
    # the other; never zero
    distances: Any
    bridges: np.ndarray  # (n_components - 1, 2): pairs of distinct samples that join the components
    distinct: np.ndarray  # (n_distinct,): the given sample that each distinct sample is
    inverse: np.ndarray  # (n_samples,): the distinct sample that each given sample is a copy of
    # (n_samples,): the component of each given sample before joining, the largest first
    components: np.ndarray
    # Its ``transform`` finds the neighbours of new samples; None if distances were given
    search: Any
    # The search: "kd_tree", "brute", "faiss", "cells", "metric", "custom" or "precomputed"
    method: Choice
    n_neighbors: int | None  # neighbours that an exact search finds for each sample
    # Fraction of the nearest neighbours that was found, measured; 1 for exact searches, nan for a
    # search of the caller
    recall: float
    # (n_samples,): given samples that were left out of the graph; `inverse` maps them to their
    # nearest neighbour
    outliers: np.ndarray
    # (n_samples,): given samples that were not drawn for the graph; functions are extended to them,
    # and `inverse` maps them to their nearest neighbour
    undrawn: np.ndarray

    @property
    def warned(self) -> tuple[Warned, ...]:
        """A warning if components had to be joined."""
        if not len(self.bridges):
            return ()
        message = (
            f"{_in_words(np.bincount(self.components))}; they were joined by the shortest edges "
            "between them, so the lowest eigenfunctions tell the components apart. Fit each "
            "component by itself, such as X[estimator.components_ == 0], add samples between "
            "them, or raise `n_neighbors`."
        )
        return (Warned(message, DisconnectedGraphWarning),)

    @property
    def weightless(self) -> np.ndarray:
        """Given samples that no distinct one stands for: outliers and undrawn ones."""
        return self.outliers | self.undrawn

    @property
    def order(self) -> np.ndarray:
        """The distinct samples in the order of the given ones, (n_distinct,)."""
        place = np.full(len(self.inverse), -1)
        place[self.distinct] = np.arange(len(self.distinct))
        return place[place >= 0]

    @property
    def multiplicity(self) -> np.ndarray:
        """Number of given samples that each distinct one stands for, (n_distinct,)."""
        kept = self.inverse[~self.weightless]
        return np.bincount(kept, minlength=len(self.distinct)).astype(float)

    def with_copies(self, rows: np.ndarray, copy_of: np.ndarray) -> "NeighborGraph":
        """Return the graph of samples that these are some `rows` of, and all others copies of."""
        each = {name: getattr(self, name)[copy_of] for name in OF_SAMPLES}
        return replace(self, distinct=rows[self.distinct], **each)

    def on_device(self, device: str) -> "NeighborGraph":
        """Return the graph with distances on a device, if no components were joined."""
        stays = len(self.bridges) or not sp.issparse(self.distances)
        if device == "cpu" or stays:
            return self
        return replace(self, distances=resident(self.distances, require_device(device)))

    def with_search(
        self, samples: np.ndarray, n_jobs: int | None, metric: LocalMetric | None = None
    ) -> "NeighborGraph":
        """Return the graph with its search, built again where it can be: archives hold none."""
        method = self.method.value
        if self.search is not None or method not in (*SEARCHES, "cells", "metric"):
            return self
        # The device or the package of the fit need not be there now.
        if method in ("cells", "faiss"):
            method = choose_search(*samples.shape).value
        search = _search(samples, self.n_neighbors or 1, method, metric, n_jobs)
        if metric is not None:
            search = search.among(self.distinct)
        return replace(self, search=search.fit(chosen(samples, self.distinct)))

    def without(self, isolated: np.ndarray, X: np.ndarray) -> "NeighborGraph":
        """Return the graph with some distinct samples as copies of their nearest."""
        kept = np.flatnonzero(~isolated)
        samples = X[self.distinct[kept]]
        # Where each distinct sample is among those kept, or its nearest one is.
        place = np.empty(len(isolated), dtype=int)
        place[kept] = np.arange(len(kept))
        place[isolated] = nearest_point(samples)(X[self.distinct[isolated]])[1]
        search = self.search.among(kept)
        n_neighbors = _limit_neighbors(search, self.n_neighbors, len(kept))
        resides = isinstance(self.distances, ResidentMatrix)
        anew = n_neighbors is None or n_neighbors != self.n_neighbors or resides
        if anew:
            distances = symmetric(search.fit_transform(samples))
        else:
            # Only the neighbours of what was left out miss one.
            bereft = np.intersect1d(self.distances[isolated].indices, kept)
            found = _edges_of(search.fit(samples), samples, place[bereft])
            distances = self.distances[kept][:, kept].maximum(found)
        if resides and sp.issparse(distances):
            distances = resident(distances, self.distances.data.device)
        left = self.distinct[kept], place[self.inverse]
        graph = _assembled(distances, samples, left, search, n_neighbors, self.method)
        # Most edges are those found before, with the recall of then.
        recall = graph.recall if anew else min(self.recall, graph.recall)
        return replace(graph, recall=recall, outliers=self.outliers | isolated[self.inverse])

    def distances_to(self, X) -> sp.csr_array:
        """Return distances of new samples to their neighbours, (n_new, n_distinct)."""
        if self.search is not None:
            return sp.csr_array(self.search.transform(X))
        if self.method.value == "custom":
            raise ValueError(
                "new samples need the `neighbors` object of the fit, which archives do "
                "not hold; fit again with it."
            )
        n_samples = len(self.inverse)
        if X.shape[1] != n_samples:
            raise ValueError(
                "with `neighbors='precomputed'` new samples are rows of distances to "
                f"the {n_samples} training samples; got {X.shape[1]} columns."
            )
        return shortest_between(sp.csr_array(X), np.arange(X.shape[0]), self.inverse)


def neighbor_graph(
    X,
    n_neighbors: int,
    *,
    method: Any = "auto",
    n_jobs: int | None = -1,
    device: str = "cpu",
    metric: LocalMetric | None = None,
) -> NeighborGraph:
    """Return the graph of nearest neighbours: symmetric, connected, copies of samples merged.

    With a metric, distances are in units of the samples' local moves.
    """
    choice = choose_search(*X.shape, method=method, device=device)
    if metric is not None:
        choice = Choice("metric", "distances are in units of local moves")
    if choice.value == "precomputed":
        return _precomputed_graph(sp.csr_array(X), choice)
    search: NeighborSearch
    count: int | None = n_neighbors
    if choice.value == "custom":
        search, count = CustomSearch(clone(method, safe=False)), None
    else:
        search = _search(X, n_neighbors, choice.value, metric, n_jobs, device)
    whole, order = search, search.sample_order(X)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    samples = order, inverse
    while True:
        distinct = chosen(X, samples[0])
        # A local metric has a row for each sample.
        search = whole if metric is None else whole.among(samples[0])
        count = _limit_neighbors(search, count, len(distinct))
        distances = search.fit_transform(distinct)
        copy_of = copy_groups(distances)
        if copy_of is None:
            break
        # Copies took the places of other neighbours, and more copies may lie beyond.
        samples = merged(*samples, copy_of)
    return _assembled(symmetric(distances), distinct, samples, search, count, choice)


def _search(
    X: np.ndarray,
    n_neighbors: int,
    method: str,
    metric: LocalMetric | None,
    n_jobs: int | None,
    device: str = "cpu",
) -> NeighborSearch:
    """Return a search by its name, or by a local metric of all samples."""
    if metric is None:
        return make_search(method, n_neighbors, n_jobs=n_jobs, device=device)
    plain = make_search(choose_search(*X.shape).value, n_neighbors, n_jobs=n_jobs)
    return MetricSearch(n_neighbors, metric, plain)


def chosen(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return some of the samples; X itself, not a copy, if `rows` are all of them."""
    if len(rows) == len(X) and (rows[:-1] < rows[1:]).all():
        return X
    out = np.empty((len(rows), *X.shape[1:]), X.dtype)

    def gather(some: slice) -> None:
        out[some] = X[rows[some]]

    map_panels(gather, len(rows))
    return out


def _precomputed_graph(distances: sp.csr_array, method: Choice) -> NeighborGraph:
    """Return the graph of given distances."""
    require_distances(distances)
    samples = (np.arange(distances.shape[0]),) * 2
    copy_of = copy_groups(distances)
    # Once is enough: all distances of 0 lie inside of the groups.
    if copy_of is not None:
        samples = merged(*samples, copy_of)
        distances = shortest_between(distances, copy_of, copy_of)
    return _assembled(symmetric(distances), None, samples, None, None, method)


def _assembled(
    distances: sp.csr_array | ResidentMatrix,
    distinct: np.ndarray | None,
    samples: tuple[np.ndarray, np.ndarray],
    search: NeighborSearch | None,
    n_neighbors: int | None,
    method: Choice,
) -> NeighborGraph:
    """Return the graph of symmetric distances, its components joined, no outliers."""
    rows, inverse = samples
    label, bridges = join_components(distances, distinct, inverse)
    return NeighborGraph(
        distances=distances,
        bridges=bridges,
        distinct=rows,
        inverse=inverse,
        components=label[inverse],
        search=search,
        method=method,
        n_neighbors=n_neighbors,
        recall=np.nan if search is None else search.recall_,
        outliers=np.zeros(len(inverse), dtype=bool),
        undrawn=np.zeros(len(inverse), dtype=bool),
    )


def _limit_neighbors(search: NeighborSearch, n_neighbors: int | None, n_samples: int) -> int | None:
    """Lower the number of neighbours if merging copies left too few samples."""
    if n_neighbors is None or n_neighbors < n_samples:
        return n_neighbors
    search.n_neighbors = n_samples - 1
    return n_samples - 1


def _edges_of(search: NeighborSearch, samples: np.ndarray, rows: np.ndarray) -> sp.csr_array:
    """Return symmetric distances between some rows of the samples and neighbours."""
    if not len(rows):
        return sp.csr_array((len(samples), len(samples)))
    found = search.transform(samples[rows])
    # A selection matrix puts the rows where they belong among all samples.
    pairs = (rows, np.arange(len(rows)))
    place = sp.csr_array((np.ones(len(rows)), pairs), shape=(len(samples), len(rows)))
    return symmetric(sp.csr_array(place @ found))


def nearest_point(points: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from samples to distance and index of the nearest point."""
    if points.shape[1] <= TREE_DIMENSIONS:
        return partial(KDTree(points).query, workers=cores())
    mean = points.mean(axis=0)
    centred = points - mean
    return lambda X: pairwise_distances_argmin_min(X - mean, centred)[::-1]
