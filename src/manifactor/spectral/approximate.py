"""An approximate search by faiss that measures its recall and ensures a minimum.

Samples lie in lists around centres; a query is compared with the lists of the nearest centres only.
The lists hold the samples as codes of half precision, relative to their centre. Distances of the
candidates that the codes name are computed from the samples themselves: every neighbour has its
exact distance, and copies are 0 apart.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from manifactor._support.errors import extra, one_line
from manifactor._support.threads import cores, thread_count
from manifactor.spectral.exact import NeighborSearch, neighbor_rows

log = logging.getLogger("manifactor")

# Numbers of the samples per step of the work: the samples are never copied whole.
NUMBERS_PER_STEP = 2**19

# More and smaller lists cost more to assign and to select than they save.
SAMPLES_PER_LIST = 256

# To which samples are scaled: well within half precision, which ends at 2**16 and at 2**-24.
LARGEST_CODE = 2.0**12

# Share of the true neighbours that is found at least.
LEAST_RECALL = 0.99


@dataclass(frozen=True)
class Codes:
    """Samples in lists of compressed codes."""

    samples: np.ndarray  # (n_samples, n_features): as given
    mean: np.ndarray  # (n_features,)
    scale: float  # a power of two that takes the largest centred number to about `LARGEST_CODE`
    lists: Any

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return self.lists.nlist

    def candidates(self, X: np.ndarray, width: int, effort: int) -> np.ndarray:
        """Return the nearest samples by their codes in `effort` lists, (n, width)."""
        queries = _scaled(X, self.mean, self.scale)
        with faiss_package() as faiss:
            searched = faiss.SearchParametersIVF(nprobe=effort)
            _, found = self.lists.search(queries, width, params=searched)
        # faiss fills up with -1 if the lists hold fewer samples than were asked for.
        short = np.flatnonzero(found[:, -1] < 0)
        if len(short) and effort < self.n_lists:
            found[short] = self.candidates(X[short], width, min(4 * effort, self.n_lists))
        return found


def encode(X: np.ndarray) -> Codes:
    """Return samples, (n_samples, n_features), in lists of codes."""
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
    # Drawn at random, always the same.
    count = min(n_samples, 16 * n_lists)
    rows = np.sort(np.random.default_rng(0).choice(n_samples, count, replace=False))
    blocks = row_blocks(count, n_features)
    training = np.concatenate([_scaled(X[rows[part]], mean, scale) for part in blocks])
    with faiss_package() as faiss:
        lists = faiss.index_factory(n_features, f"IVF{n_lists},SQfp16")
        # 10 iterations, and 64 samples for each list, gain at most .005 of recall.
        lists.cp.niter = 4
        # faiss prints a warning if there are fewer samples than its usual minimum.
        lists.cp.min_points_per_centroid = 1
        lists.train(training)
    for part in row_blocks(n_samples, n_features):
        scaled = _scaled(X[part], mean, scale)
        with faiss_package():
            lists.add(scaled)
    return Codes(X, mean, scale, lists)


def nearest_candidates(
    codes: Codes, X: np.ndarray, n_found: int, *, width: int, effort: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest of the candidates and their exact distances, nearest first.

    Shapes: X (n_queries, n_features) -> distances, neighbors (n_queries, n_found).
    """
    n_features = X.shape[1]
    # 32-bit indices take half of the memory wherever they suffice.
    small = max(len(X) * n_found, len(codes.samples)) < 2**31
    neighbors = np.empty((len(X), n_found), dtype=np.int32 if small else np.int64)
    distances = np.empty((len(X), n_found))
    with ThreadPoolExecutor(n_threads) as pool:
        for queries in row_blocks(len(X), max(n_features, width)):
            found = codes.candidates(X[queries], width, effort)
            fill = partial(
                fill_nearest,
                distances[queries],
                neighbors[queries],
                codes.samples,
                X[queries],
                found,
            )
            blocks = row_blocks(len(found), width * n_features)
            list(pool.map(fill, blocks))
    return distances, neighbors


def fill_nearest(distances, neighbors, samples, X, candidates, part: slice) -> None:
    """Write the nearest candidates of the queries in `part` into two arrays.

    Shapes: distances, neighbors (n_queries, n_found), samples (n_samples, n_features), X
    (n_queries, n_features), candidates (n_queries, width).
    """
    gap = samples[candidates[part]] - X[part, None].astype(np.float64)
    square = np.einsum("ijk,ijk->ij", gap, gap)
    order = np.argsort(square, axis=1, kind="stable")[:, : distances.shape[1]]
    distances[part] = np.sqrt(np.take_along_axis(square, order, axis=1))
    neighbors[part] = np.take_along_axis(candidates[part], order, axis=1)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Return slices of rows that hold about `NUMBERS_PER_STEP` numbers."""
    return gen_batches(n_rows, max(1, NUMBERS_PER_STEP // n_columns))


@contextmanager
def faiss_package() -> Iterator[ModuleType]:
    """Provide the package faiss; its errors become one line that says what to do."""
    faiss = extra("faiss")
    try:
        yield faiss
    # Of C++, and of a package whose parts do not belong together.
    except (RuntimeError, AssertionError, AttributeError) as error:
        message = one_line(error)
        raise ValueError(
            "the approximate search failed in the package faiss "
            f"({type(error).__name__}: {message}). Install faiss-cpu again, or search "
            "exactly: set `neighbors` to 'brute' or 'kd_tree'."
        ) from error


def _scaled(X: np.ndarray, mean: np.ndarray, scale: float) -> np.ndarray:
    """Return centred and scaled samples in the single precision of faiss."""
    return ((X - mean) * scale).astype(np.float32, order="C")


# The search, and the effort that it takes.


class ApproximateSearch(NeighborSearch):
    """Distances to most of the nearest neighbours.

    Like scikit-learn's KNeighborsTransformer with ``mode="distance"``.

    `recall_` is the fraction of the true neighbours that is found, measured on 1,000 of the fitted
    samples; ties count as found. `effort_` is the number of lists that are searched for each query,
    and `n_candidates_` that of the candidates of which the nearest are returned.
    """

    def fit(self, X, y=None) -> "ApproximateSearch":
        """Put the samples into lists, and find how many of these to search.

        Shapes: X (n_samples, n_features).
        """
        with _threads(self.n_jobs) as n_threads:
            self.codes_ = codes = encode(np.asarray(X))
            self.n_candidates_, self.effort_, self.recall_ = _least_effort(
                codes, self.n_neighbors + 1, n_threads
            )
        log.info(
            "approximate neighbours: recall %.4f with %d of %d lists",
            self.recall_,
            self.effort_,
            codes.n_lists,
        )
        return self

    def transform(self, X) -> sp.csr_array:
        """Return distances to the nearest fitted samples, (n_queries, n_samples).

        Each row has `n_neighbors` + 1 entries, nearest first. A fitted sample is the first of its
        own neighbours, or a copy of it is, at distance 0.

        Shapes: X (n_queries, n_features).
        """
        effort = {"width": self.n_candidates_, "effort": self.effort_}
        with _threads(self.n_jobs) as n_threads:
            found = nearest_candidates(
                self.codes_, np.asarray(X), self.n_neighbors + 1, **effort, n_threads=n_threads
            )
        return neighbor_rows(*found, len(self.codes_.samples))


def _least_effort(codes: Codes, n_found: int, n_threads: int) -> tuple[int, int, float]:
    """Return the least effort that reaches `LEAST_RECALL`.

    It is the numbers of candidates and of lists of each query, and the recall that they reach.

    First the number of candidates is chosen: the rounding of the codes may cause a quarter of the
    allowed misses. Then the number of lists is raised step by step.
    """
    samples = codes.samples
    # Not the seed that drew the training samples of the lists.
    rows = np.random.default_rng(1).choice(len(samples), min(len(samples), 1000), replace=False)
    queries = samples[np.sort(rows)]
    # Distances that differ by less are ties, and either one is right.
    radius = _exact_radius(codes, queries, n_found) * (1 + 1e-6)

    def recall(width: int, effort: int) -> float:
        distances, _ = nearest_candidates(
            codes, queries, n_found, width=width, effort=effort, n_threads=n_threads
        )
        # The first neighbour of a query is the query itself.
        return float((distances[:, 1:] <= radius[:, None]).mean())

    # More than one for each neighbour are needed where the codes cannot tell close samples apart.
    *fewer, most = (min(n_found * ratio, len(samples)) for ratio in (1, 2, 4))
    # So many lists hold the most candidates and more: what is missed is not due to the number of
    # lists.
    plenty = min(codes.n_lists, 1 + 4 * most // SAMPLES_PER_LIST)
    enough = recall(most, plenty) - 0.25 * (1 - LEAST_RECALL)
    n_candidates = next((few for few in fewer if recall(few, plenty) >= enough), most)
    # Geometric growth takes few tries, and the last one searches about a quarter more lists than
    # needed at most.
    n_lists = 1
    while (reached := recall(n_candidates, n_lists)) < LEAST_RECALL:
        if n_lists == codes.n_lists:
            raise ValueError(
                f"a recall of {LEAST_RECALL:g} was not reached: {reached:.3f} "
                "with all lists searched, as many samples are almost copies. "
                "Search exactly: set `neighbors` to 'brute' or 'kd_tree'."
            )
        n_lists = min(codes.n_lists, n_lists + 1 + n_lists // 4)
    return n_candidates, n_lists, reached


def _exact_radius(codes: Codes, queries: np.ndarray, n_found: int) -> np.ndarray:
    """Return the exact distance of each query's last neighbour, (n_queries,)."""
    samples = codes.samples
    distances = np.empty((len(queries), 0))
    neighbors = np.empty((len(queries), 0), dtype=np.int64)
    for part in row_blocks(len(samples), samples.shape[1]):
        # In double precision, and centred: inner products lose fewer digits.
        block = samples[part] - codes.mean
        search = NearestNeighbors(n_neighbors=min(n_found, len(block)), algorithm="brute").fit(
            block
        )
        near, which = search.kneighbors(queries - codes.mean)
        distances = np.c_[distances, near]
        neighbors = np.c_[neighbors, which + part.start]
        order = np.argsort(distances, axis=1, kind="stable")[:, :n_found]
        distances = np.take_along_axis(distances, order, axis=1)
        neighbors = np.take_along_axis(neighbors, order, axis=1)
    for part in row_blocks(len(queries), n_found * samples.shape[1]):
        fill_nearest(distances, neighbors, samples, queries, neighbors, part)
    return distances[:, -1]


@contextmanager
def _threads(n_jobs: int | None) -> Iterator[int]:
    """Provide the number of threads, and limit numerical libraries to fewer cores."""
    n_threads = thread_count(n_jobs)
    with faiss_package():
        pass  # the limit reaches only libraries that are loaded
    with threadpool_limits(n_threads if n_threads < cores() else None):
        yield n_threads
