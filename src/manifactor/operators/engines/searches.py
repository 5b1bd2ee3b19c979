"""The neighbour searches of the host: exact ones, an approximate one, and the caller's own."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from manifactor._support.errors import extra, one_line
from manifactor._support.threads import cores, thread_count
from manifactor.operators.engines.gpu import sparse_rows

log = logging.getLogger("manifactor")

# Samples above which a tree puts those of a leaf next to each other; fewer stay in the caches
# whatever their order. The search of 100,000 then takes .6 of the time.
ORDERED_ABOVE = 50_000

# In more columns a tree compares a sample with nearly all others, one by one; products of matrices
# are faster at every size that was measured (3,000 to 50,000 samples).
TREE_DIMENSIONS = 8


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
        """Index the samples and return distances to their neighbours, (n_samples, n_samples)."""
        return self.fit(X).transform(X)

    def sample_order(self, X) -> np.ndarray:
        """Return the order in which the search prefers the samples, (n_samples,)."""
        return np.arange(X.shape[0])

    def among(self, rows: np.ndarray) -> "NeighborSearch":
        """Return a search among some of the samples that it is for, not fitted."""
        return clone(self, safe=False)


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


class TreeSearch(NeighborSearch):
    """Exact search by SciPy's k-d tree, in two thirds of the time of KNeighborsTransformer."""

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
        """Return distances to `n_neighbors` + 1 samples, a known query itself among them."""
        count = min(self.n_neighbors + 1, self.tree_.n)
        distances, indices = self.tree_.query(X, count, workers=thread_count(self.n_jobs))
        return sparse_rows(distances, indices, self.tree_.n)


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
        distances.data[tiny] = np.linalg.norm(X[rows] - X[distances.indices[tiny]], axis=1)
        return distances


# An approximate search by faiss that measures its recall and ensures a minimum.
#
# Samples lie in lists around centres; a query is compared with the lists of the nearest centres
# only. The lists hold the samples as codes of half precision, relative to their centre. Distances
# of the candidates that the codes name are computed from the samples themselves: every neighbour
# has its exact distance, and copies are 0 apart.

# Numbers of the samples per step of the work: the samples are never copied whole.
NUMBERS_PER_STEP = 2**19

# More and smaller lists cost more to assign and to select than they save.
SAMPLES_PER_LIST = 256

# To which samples are scaled: well within half precision, which ends at 2**16 and at 2**-24.
LARGEST_CODE = 2.0**12

# Share of the true neighbours that is found at least.
LEAST_RECALL = 0.99


class ApproximateSearch(NeighborSearch):
    """Distances to most of the nearest neighbours.

    `recall_` is the fraction of the true neighbours that is found, measured on 1,000 samples; ties
    count as found. `effort_` is the number of lists that are searched for each query, and
    `n_candidates_` that of the candidates of which the nearest are returned.
    """

    def fit(self, X, y=None) -> "ApproximateSearch":
        """Put the samples into lists, and find how many of these to search."""
        with _faiss_threads(self.n_jobs) as n_threads:
            self._encode(np.asarray(X))
            self.n_candidates_, self.effort_, self.recall_ = self._least_effort(n_threads)
        log.info(
            "approximate neighbours: recall %.4f with %d of %d lists",
            self.recall_,
            self.effort_,
            self.lists_.nlist,
        )
        return self

    def transform(self, X) -> sp.csr_array:
        """Return distances to `n_neighbors` + 1 samples, (n_queries, n_samples), nearest first."""
        with _faiss_threads(self.n_jobs) as n_threads:
            found = self._nearest(np.asarray(X), self.n_candidates_, self.effort_, n_threads)
        return sparse_rows(*found, len(self.samples_))

    def _encode(self, X: np.ndarray) -> None:
        """Put samples, (n_samples, n_features), into lists of codes."""
        n_samples, n_features = X.shape
        n_lists = int(np.clip(n_samples // SAMPLES_PER_LIST, 1, 8192))
        total, low, high = np.zeros(n_features), np.inf, -np.inf
        for part in row_blocks(n_samples, n_features):
            total += X[part].sum(axis=0, dtype=np.float64)
            low = np.minimum(low, X[part].min(axis=0))
            high = np.maximum(high, X[part].max(axis=0))
        mean = total / n_samples
        largest = float(max((high - mean).max(), (mean - low).max()))
        # A power of two: scaling rounds nothing.
        scale = LARGEST_CODE / 2.0 ** np.frexp(largest)[1] if largest else 1.0
        self.samples_, self.mean_, self.scale_ = X, mean, scale
        # Drawn at random, always the same.
        count = min(n_samples, 16 * n_lists)
        rows = np.sort(np.random.default_rng(0).choice(n_samples, count, replace=False))
        blocks = row_blocks(count, n_features)
        lists = extra("faiss").index_factory(n_features, f"IVF{n_lists},SQfp16")
        # 10 iterations, and 64 samples for each list, gain at most .005 of recall.
        lists.cp.niter = 4
        # faiss prints a warning if there are fewer samples than its usual minimum.
        lists.cp.min_points_per_centroid = 1
        lists.train(np.concatenate([self._scaled(X[rows[part]]) for part in blocks]))
        for part in row_blocks(n_samples, n_features):
            lists.add(self._scaled(X[part]))
        self.lists_ = lists

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        """Return centred and scaled samples in the single precision of faiss."""
        return ((X - self.mean_) * self.scale_).astype(np.float32, order="C")

    def _candidates(self, X: np.ndarray, width: int, effort: int) -> np.ndarray:
        """Return the nearest samples by their codes in `effort` lists, (n, width)."""
        searched = extra("faiss").SearchParametersIVF(nprobe=effort)
        _, found = self.lists_.search(self._scaled(X), width, params=searched)
        # faiss fills up with -1 if the lists hold fewer samples than were asked for.
        short = np.flatnonzero(found[:, -1] < 0)
        if len(short) and effort < self.lists_.nlist:
            found[short] = self._candidates(X[short], width, min(4 * effort, self.lists_.nlist))
        return found

    def _nearest(
        self, X: np.ndarray, width: int, effort: int, n_threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest candidates, (n_queries, n_neighbors + 1), and exact distances."""
        shape, n_features = (len(X), self.n_neighbors + 1), X.shape[1]
        distances = np.empty(shape)
        # 32-bit indices take half of the memory wherever they suffice.
        small = max(distances.size, len(self.samples_)) < 2**31
        neighbors = np.empty(shape, dtype=np.int32 if small else np.int64)
        with ThreadPoolExecutor(n_threads) as pool:
            for queries in row_blocks(len(X), max(n_features, width)):
                found = self._candidates(X[queries], width, effort)
                filled = distances[queries], neighbors[queries]
                fill = partial(fill_nearest, *filled, self.samples_, X[queries], found)
                list(pool.map(fill, row_blocks(len(found), width * n_features)))
        return distances, neighbors

    def _least_effort(self, n_threads: int) -> tuple[int, int, float]:
        """Return the least numbers of candidates and lists for `LEAST_RECALL`, and the recall."""
        samples, most_lists = self.samples_, self.lists_.nlist
        # Not the seed that drew the training samples of the lists.
        rows = np.random.default_rng(1).choice(len(samples), min(len(samples), 1000), replace=False)
        queries = samples[np.sort(rows)]
        # Distances that differ by less are ties, and either one is right.
        radius = self._exact_radius(queries) * (1 + 1e-6)

        def recall(width: int, effort: int) -> float:
            distances, _ = self._nearest(queries, width, effort, n_threads)
            # The first neighbour of a query is the query itself.
            return float((distances[:, 1:] <= radius[:, None]).mean())

        # First the candidates: codes may cause a quarter of the allowed misses. Then the lists.
        # More than one for each neighbour are needed where the codes cannot tell close samples
        # apart.
        *fewer, most = (min((self.n_neighbors + 1) * k, len(samples)) for k in (1, 2, 4))
        # So many lists hold the most candidates and more: what is missed is not due to the number
        # of lists.
        plenty = min(most_lists, 1 + 4 * most // SAMPLES_PER_LIST)
        enough = recall(most, plenty) - 0.25 * (1 - LEAST_RECALL)
        n_candidates = next((few for few in fewer if recall(few, plenty) >= enough), most)
        # Geometric growth takes few tries, and the last one searches about a quarter more lists
        # than needed at most.
        n_lists = 1
        while (reached := recall(n_candidates, n_lists)) < LEAST_RECALL:
            if n_lists == most_lists:
                raise ValueError(
                    f"a recall of {LEAST_RECALL:g} was not reached: {reached:.3f} "
                    "with all lists searched, as many samples are almost copies. "
                    "Search exactly: set `neighbors` to 'brute' or 'kd_tree'."
                )
            n_lists = min(most_lists, n_lists + 1 + n_lists // 4)
        return n_candidates, n_lists, reached

    def _exact_radius(self, queries: np.ndarray) -> np.ndarray:
        """Return the exact distance of each query's last neighbour, (n_queries,)."""
        samples, n_found = self.samples_, self.n_neighbors + 1
        nearest = np.empty((len(queries), 0), dtype=np.int64)
        for part in row_blocks(*samples.shape):
            # In double precision, and centred: inner products lose fewer digits.
            block = samples[part] - self.mean_
            search = NearestNeighbors(n_neighbors=min(n_found, len(block)), algorithm="brute")
            found = search.fit(block).kneighbors(queries - self.mean_, return_distance=False)
            candidates = np.c_[nearest, found + part.start]
            nearest = candidates[:, :n_found].copy()
            distances = np.empty(nearest.shape)
            for some in row_blocks(len(queries), candidates.shape[1] * samples.shape[1]):
                fill_nearest(distances, nearest, samples, queries, candidates, some)
        return distances[:, -1]


def fill_nearest(distances, neighbors, samples, X, candidates, part: slice) -> None:
    """Write distances and indices of the nearest candidates of the queries in `part`."""
    gap = samples[candidates[part]] - X[part, None].astype(np.float64)
    square = np.einsum("ijk,ijk->ij", gap, gap)
    order = np.argsort(square, axis=1, kind="stable")[:, : distances.shape[1]]
    distances[part] = np.sqrt(np.take_along_axis(square, order, axis=1))
    neighbors[part] = np.take_along_axis(candidates[part], order, axis=1)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Return slices of rows that hold about `NUMBERS_PER_STEP` numbers."""
    return gen_batches(n_rows, max(1, NUMBERS_PER_STEP // n_columns))


@contextmanager
def _faiss_threads(n_jobs: int | None) -> Iterator[int]:
    """Limit numerical libraries to some threads; errors of faiss become one line."""
    extra("faiss")  # the limit reaches only libraries that are loaded
    n_threads = thread_count(n_jobs)
    try:
        with threadpool_limits(n_threads if n_threads < cores() else None):
            yield n_threads
    # Of C++, and of a package whose parts do not belong together.
    except (RuntimeError, AssertionError, AttributeError) as error:
        if "start new thread" in str(error):
            raise  # Python's own, which the command explains
        raise ValueError(
            "the approximate search failed in the package faiss "
            f"({type(error).__name__}: {one_line(error)}). Install faiss-cpu again, or search "
            "exactly: set `neighbors` to 'brute' or 'kd_tree'."
        ) from error
