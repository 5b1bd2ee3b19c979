"""An approximate search by faiss that measures its recall and ensures a minimum."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from manifactor._support.parameters import require_count, require_number
from manifactor._support.threads import cores, thread_count
from manifactor.spectral.search.faiss_lists import (
    Codes,
    FaissSettings,
    encode,
    faiss_package,
    fill_nearest,
    nearest_candidates,
    row_blocks,
)
from manifactor.spectral.search.interface import NeighborSearch

log = logging.getLogger("manifactor")

FLOATS = (np.float64, np.float32)


class ApproximateSearch(NeighborSearch):
    """Distances to most of the nearest neighbours.

    Like scikit-learn's KNeighborsTransformer with ``mode="distance"``.

    `recall_` is the fraction of the true neighbours that is found, measured on 1,000 of the fitted
    samples; ties count as found.
    """

    n_found_: int  # neighbours of each query, a fitted sample itself counted
    effort_: int  # lists that are searched for each query
    n_lists_: int  # number of lists
    n_candidates_: int  # candidates of each query, of which the nearest are returned
    n_features_in_: int  # columns of the fitted samples
    codes_: Codes  # the fitted samples in lists

    def __init__(
        self,
        n_neighbors=64,
        *,
        least_recall=0.99,
        n_jobs=-1,
        settings: FaissSettings = FaissSettings(),
    ):
        """Store the parameters."""
        self.n_neighbors = n_neighbors
        self.least_recall = least_recall
        self.n_jobs = n_jobs
        self.settings = settings

    def fit(self, X, y=None) -> "ApproximateSearch":
        """Put the samples into lists, and find how many of these to search.

        Shapes: X (n_samples, n_features).
        """
        X = np.asarray(validate_data(self, X, dtype=FLOATS))
        most = len(X) - 1
        self.n_found_ = 1 + require_count(
            "n_neighbors", self.n_neighbors, low=1, high=most, n_samples=len(X)
        )
        require_number("least_recall", self.least_recall, low=0, high=1)
        with _threads(self.n_jobs) as n_threads:
            self.codes_ = encode(X, settings=self.settings)
            effort = _least_effort(
                self.codes_, self.n_found_, least_recall=self.least_recall, n_threads=n_threads
            )
        self.n_lists_ = self.codes_.n_lists
        self.n_candidates_ = effort.n_candidates
        self.effort_ = effort.n_lists
        self.recall_ = effort.recall
        log.info(
            "approximate neighbours: recall %.4f with %d of %d lists",
            self.recall_,
            self.effort_,
            self.n_lists_,
        )
        return self

    def transform(self, X) -> sp.csr_array:
        """Return distances to the nearest fitted samples, (n_queries, n_samples).

        Each row has `n_neighbors` + 1 entries, nearest first. A fitted sample is the first of its
        own neighbours, or a copy of it is, at distance 0.

        Shapes: X (n_queries, n_features).
        """
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=FLOATS, reset=False))
        shape = len(X), len(self.codes_.samples)
        with _threads(self.n_jobs) as n_threads:
            distances, neighbors = nearest_candidates(
                self.codes_,
                X,
                self.n_found_,
                width=self.n_candidates_,
                effort=self.effort_,
                n_threads=n_threads,
            )
        # Of the same type as the columns, or SciPy would copy these to the wider one.
        starts = np.arange(0, neighbors.size + 1, self.n_found_, dtype=neighbors.dtype)
        entries = (distances.ravel(), neighbors.ravel(), starts)
        return sp.csr_array(entries, shape=shape)


@dataclass(frozen=True)
class Effort:
    """Candidates and lists of each query, and the recall that they reach."""

    n_candidates: int
    n_lists: int
    recall: float


def _least_effort(codes: Codes, n_found: int, *, least_recall: float, n_threads: int) -> Effort:
    """Return the least effort that reaches `least_recall`.

    First the number of candidates is chosen: the rounding of the codes may cause a quarter of the
    allowed misses. Then the number of lists is raised step by step.
    """
    settings = codes.settings
    queries = _recall_samples(codes.samples, settings)
    recall = partial(
        _recall,
        codes,
        queries,
        _exact_radius(codes, queries, n_found) * (1 + settings.tie_tolerance),
        n_found,
        n_threads,
    )
    n_candidates = _fewest_candidates(codes, n_found, recall, least_recall)
    # Geometric growth takes few tries, and the last one searches about a quarter more lists than
    # needed at most.
    n_lists = 1
    while (reached := recall(n_candidates, n_lists)) < least_recall:
        if n_lists == codes.n_lists:
            raise ValueError(
                f"`least_recall` of {least_recall:g} was not reached: {reached:.3f} "
                "with all lists searched, as many samples are almost copies. Lower it, "
                "or search exactly: set `neighbors` to 'brute' or 'kd_tree'."
            )
        n_lists += 1 + n_lists // settings.effort_growth
        n_lists = min(codes.n_lists, n_lists)
    return Effort(n_candidates, n_lists, reached)


def _fewest_candidates(codes: Codes, n_found: int, recall, least_recall: float) -> int:
    """Return the fewest candidates of a query that lose little to rounding."""
    settings = codes.settings
    n_samples = len(codes.samples)
    ratios = settings.candidates_per_neighbor
    *fewer, most = (min(n_found * ratio, n_samples) for ratio in ratios)
    # So many lists hold the most candidates and more: what is missed is not due to the number of
    # lists.
    plenty = 1 + settings.list_margin * most // settings.samples_per_list
    plenty = min(codes.n_lists, plenty)
    enough = recall(most, plenty) - settings.rounding_misses * (1 - least_recall)
    return next((few for few in fewer if recall(few, plenty) >= enough), most)


def _recall(
    codes: Codes,
    queries: np.ndarray,
    radius: np.ndarray,
    n_found: int,
    n_threads: int,
    n_candidates: int,
    n_lists: int,
) -> float:
    """Return the fraction of the neighbours within the exact radius that is found."""
    distances, _ = nearest_candidates(
        codes, queries, n_found, width=n_candidates, effort=n_lists, n_threads=n_threads
    )
    # The first neighbour of a query is the query itself.
    return float((distances[:, 1:] <= radius[:, None]).mean())


def _recall_samples(X: np.ndarray, settings: FaissSettings) -> np.ndarray:
    """Return some of the samples, drawn at random."""
    count = min(len(X), settings.recall_samples)
    # Not the seed that drew the training samples of the lists.
    rows = np.random.default_rng(1).choice(len(X), count, replace=False)
    return X[np.sort(rows)]


def _exact_radius(codes: Codes, queries: np.ndarray, n_found: int) -> np.ndarray:
    """Return the exact distance of each query's last neighbour, (n_queries,)."""
    samples, settings = codes.samples, codes.settings
    distances = np.empty((len(queries), 0))
    neighbors = np.empty((len(queries), 0), dtype=np.int64)
    for part in row_blocks(len(samples), samples.shape[1], settings):
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
    for part in row_blocks(len(queries), n_found * samples.shape[1], settings):
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
