"""Neighbours of many samples, approximately: a search by faiss whose recall is measured, and raised until it is enough.

Samples lie in lists around centres; a query looks through the lists of the nearest centres only. There the samples are
held as codes of half precision, relative to their centre. The distances of the candidates that the codes name are
computed from the samples themselves, so what is found is found with its exact distance, and copies are 0 apart.
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
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from manifactor._support.extras import extra
from manifactor._support.parameters import require_count, require_number

log = logging.getLogger("manifactor")

BLOCK = (
    2**19
)  # numbers of the samples that are worked on at a time: the samples are never copied whole
LIST_SIZE, MOST_LISTS = (
    256,
    8192,
)  # more and smaller lists cost more to place and to choose from than they save
TRAINING, ROUNDS = (
    16,
    4,
)  # samples for each list, and rounds, of k-means: 64 and 10 gain at most .005 of recall
JUDGES = 1000  # samples whose exact neighbours measure the recall
WIDTHS = (
    1,
    2,
    4,
)  # candidates for each neighbour; more than one where the codes cannot tell close samples apart
SLACK = 1e-6  # of distances that count as ties
LARGEST = (
    2.0**12
)  # to which samples are scaled: well within half precision, which ends at 2**16 and at 2**-24
FLOATS = (np.float64, np.float32)


class ApproximateSearch(BaseEstimator):
    """Distances to approximately the nearest neighbours, like KNeighborsTransformer(mode="distance").

    Parameters
    ----------
    n_neighbors : int
        Neighbours of each sample, itself not counted.
    least_recall : float
        Share of the true neighbours that must be found, in [0, 1].
    n_jobs : int or None
        Threads; None for all cores.

    Attributes
    ----------
    recall_ : float
        Share of the true neighbours that are found, measured on 1,000 of the fitted samples; ties count as found.
    effort_ : int
        Lists that each query looks through.
    n_lists_ : int
        Lists there are.
    n_candidates_ : int
        Candidates of each query, of which the nearest are returned.
    n_features_in_ : int
        Columns of the fitted samples.
    """

    recall_: float
    effort_: int
    n_lists_: int
    n_candidates_: int
    n_features_in_: int

    def __init__(self, n_neighbors=64, *, least_recall=0.99, n_jobs=None):
        """Remember the parameters."""
        self.n_neighbors = n_neighbors
        self.least_recall = least_recall
        self.n_jobs = n_jobs

    def fit(self, X, y=None) -> "ApproximateSearch":
        """Put the samples into lists, and find how many to look through.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Samples, in memory or mapped from a file; they are kept, not copied.
        y : None
            Ignored.
        """
        X = np.asarray(validate_data(self, X, dtype=FLOATS))
        found = 1 + require_count(
            "n_neighbors", self.n_neighbors, 1, len(X) - 1, len(X)
        )
        require_number("least_recall", self.least_recall, low=0, high=1)
        with _threads(self.n_jobs) as n_threads:
            self._codes = encode(X)
            self.n_lists_ = self._codes.n_lists
            self.n_candidates_, self.effort_, self.recall_ = _least_effort(
                self._codes, found, least_recall=self.least_recall, n_threads=n_threads
            )
        self._found = found
        log.info(
            "approximate neighbours: recall %.4f with %d of %d lists",
            self.recall_,
            self.effort_,
            self.n_lists_,
        )
        return self

    def transform(self, X) -> sp.csr_array:
        """Distances to the nearest fitted samples, (n_queries, n_fitted): `n_neighbors` + 1 a row, nearest first.

        A fitted sample is the first of its own neighbours, or a copy of it is, at distance 0.

        Parameters
        ----------
        X : ndarray of shape (n_queries, n_features)
            The fitted samples, or others.
        """
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=FLOATS, reset=False))
        shape = len(X), len(self._codes.samples)
        with _threads(self.n_jobs) as n_threads:
            distances, neighbors = nearest(
                self._codes,
                X,
                self._found,
                width=self.n_candidates_,
                effort=self.effort_,
                n_threads=n_threads,
            )
        start = np.arange(0, neighbors.size + 1, self._found, dtype=neighbors.dtype)
        return sp.csr_array((distances.ravel(), neighbors.ravel(), start), shape=shape)


@dataclass(frozen=True)
class Codes:
    """Samples in lists of compressed codes.

    Attributes
    ----------
    samples : ndarray of shape (n_samples, n_features)
        As they were given.
    mean : ndarray of shape (n_features,)
    scale : float
        A power of two that takes the largest centred number to about `LARGEST`.
    lists : faiss.IndexIVFScalarQuantizer
    """

    samples: np.ndarray
    mean: np.ndarray
    scale: float
    lists: Any

    @property
    def n_lists(self) -> int:
        """How many lists there are."""
        return self.lists.nlist

    def candidates(self, X: np.ndarray, width: int, effort: int) -> np.ndarray:
        """The samples that the codes in `effort` lists say are nearest, (n_queries, width)."""
        with _faiss() as faiss:
            settings = faiss.SearchParametersIVF(nprobe=effort)
            _, found = self.lists.search(
                _scaled(X, self.mean, self.scale), width, params=settings
            )
        short = np.flatnonzero(
            found[:, -1] < 0
        )  # their lists hold fewer samples than were asked for
        if len(short) and effort < self.n_lists:
            found[short] = self.candidates(
                X[short], width, min(4 * effort, self.n_lists)
            )
        return found


def encode(X: np.ndarray) -> Codes:
    """Samples, (n_samples, n_features), in lists of codes."""
    n, n_columns = X.shape
    n_lists = int(np.clip(n // LIST_SIZE, 1, MOST_LISTS))
    mean, scale = _mean_and_scale(X)
    rows = np.sort(
        np.random.default_rng(0).choice(n, min(n, TRAINING * n_lists), replace=False)
    )
    training = [
        _scaled(X[rows[part]], mean, scale) for part in _parts(len(rows), n_columns)
    ]
    with _faiss() as faiss:
        lists = faiss.index_factory(n_columns, f"IVF{n_lists},SQfp16")
        lists.cp.niter, lists.cp.min_points_per_centroid = (
            ROUNDS,
            1,
        )  # without the minimum, faiss would print
        lists.train(np.concatenate(training))
        for part in _parts(n, n_columns):
            lists.add(_scaled(X[part], mean, scale))
    return Codes(X, mean, scale, lists)


def nearest(
    codes: Codes,
    X: np.ndarray,
    n_found: int,
    *,
    width: int,
    effort: int,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Exact distances to the `n_found` nearest candidates, nearest first, and which samples they are.

    Parameters
    ----------
    codes : Codes
        The samples among which to search.
    X : ndarray of shape (n_queries, n_features)
    n_found : int
        Neighbours of each query.
    width, effort : int
        Candidates of each query, and lists in which they are sought.
    n_threads : int
        Threads that compute distances.

    Returns
    -------
    distances, neighbors : ndarrays of shape (n_queries, n_found)
    """
    small = max(len(X) * n_found, len(codes.samples)) < 2**31
    neighbors = np.empty((len(X), n_found), dtype=np.int32 if small else np.int64)
    distances = np.empty((len(X), n_found))
    with ThreadPoolExecutor(n_threads) as pool:
        for queries in _parts(len(X), max(X.shape[1], width)):
            found = codes.candidates(X[queries], width, effort)
            fill = partial(
                _fill,
                distances[queries],
                neighbors[queries],
                codes.samples,
                X[queries],
                found,
            )
            list(pool.map(fill, _parts(len(found), width * X.shape[1])))
    return distances, neighbors


def _fill(distances, neighbors, samples, X, candidates, part: slice) -> None:
    """Write the nearest candidates of a part of the queries into `distances` and `neighbors`."""
    gap = samples[candidates[part]] - X[part, None].astype(np.float64)
    square = np.einsum("ijk,ijk->ij", gap, gap)
    order = np.argsort(square, axis=1, kind="stable")[:, : distances.shape[1]]
    distances[part] = np.sqrt(np.take_along_axis(square, order, axis=1))
    neighbors[part] = np.take_along_axis(candidates[part], order, axis=1)


def _least_effort(
    codes: Codes, n_found: int, *, least_recall: float, n_threads: int
) -> tuple[int, int, float]:
    """Candidates and lists of each query that reach the least recall, and the recall they reach.

    As many candidates are asked for as lose at most a quarter of the allowed misses to the rounding of the codes.
    """
    judges = _judges(codes.samples)
    radius = _exact_radius(codes, judges, n_found)

    def recall(width: int, effort: int) -> float:
        distances, _ = nearest(
            codes, judges, n_found, width=width, effort=effort, n_threads=n_threads
        )
        return float((distances[:, 1:] <= radius[:, None] * (1 + SLACK)).mean())

    widths = [min(n_found * width, len(codes.samples)) for width in WIDTHS]
    plenty = min(
        codes.n_lists, 1 + 4 * widths[-1] // LIST_SIZE
    )  # lists that hold the most candidates, and more
    enough = recall(widths[-1], plenty) - (1 - least_recall) / 4
    width = next(
        width
        for width in widths
        if width == widths[-1] or recall(width, plenty) >= enough
    )
    effort = 1
    while (reached := recall(width, effort)) < least_recall:
        if effort == codes.n_lists:
            raise ValueError(
                f"`least_recall` of {least_recall:g} was not reached: {reached:.3f} with all lists searched, as many "
                "samples are almost copies. Lower it, or search exactly: set `neighbors` to 'brute' or 'kd_tree'."
            )
        effort = min(codes.n_lists, effort + 1 + effort // 4)
    return width, effort, reached


def _judges(X: np.ndarray) -> np.ndarray:
    """Some of the samples, drawn at random."""
    rows = np.random.default_rng(1).choice(len(X), min(len(X), JUDGES), replace=False)
    return X[np.sort(rows)]


def _exact_radius(codes: Codes, queries: np.ndarray, n_found: int) -> np.ndarray:
    """Exact distance of each query's last neighbour, (n_queries,), by brute force on blocks of the samples."""
    samples, mean = codes.samples, codes.mean
    distances, neighbors = (
        np.empty((len(queries), 0)),
        np.empty((len(queries), 0), dtype=np.int64),
    )
    for part in _parts(*samples.shape):
        block = samples[part] - mean  # in double precision, and centred, for the digits
        search = NearestNeighbors(
            n_neighbors=min(n_found, len(block)), algorithm="brute"
        ).fit(block)
        near, which = search.kneighbors(queries - mean)
        distances, neighbors = (
            np.c_[distances, near],
            np.c_[neighbors, which + part.start],
        )
        order = np.argsort(distances, axis=1, kind="stable")[:, :n_found]
        distances, neighbors = (
            np.take_along_axis(found, order, axis=1) for found in (distances, neighbors)
        )
    for part in _parts(len(queries), n_found * samples.shape[1]):
        _fill(distances, neighbors, samples, queries, neighbors, part)
    return distances[:, -1]


def _mean_and_scale(X: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean of the samples, (n_features,), and the power of two that takes what is centred to about `LARGEST`."""
    total, low, high = np.zeros(X.shape[1]), np.inf, -np.inf
    for part in _parts(*X.shape):
        total += X[part].sum(axis=0, dtype=np.float64)
        low, high = (
            np.minimum(low, X[part].min(axis=0)),
            np.maximum(high, X[part].max(axis=0)),
        )
    mean = total / len(X)
    largest = float(max((high - mean).max(), (mean - low).max()))
    return mean, LARGEST / 2.0 ** np.frexp(largest)[1] if largest > 0 else 1.0


def _scaled(X: np.ndarray, mean: np.ndarray, scale: float) -> np.ndarray:
    """Centred and scaled samples in the single precision of faiss."""
    return ((X - mean) * scale).astype(np.float32, order="C")


def _parts(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of rows that hold about `BLOCK` numbers."""
    return gen_batches(n_rows, max(1, BLOCK // n_columns))


@contextmanager
def _faiss() -> Iterator[ModuleType]:
    """The package faiss; what fails in it is said in one line, with what to do."""
    try:
        yield extra("faiss")
    except Exception as error:
        if isinstance(
            error.__cause__, ImportError
        ):  # not installed, which `extra` says itself
            raise
        said = " ".join(str(error).split())
        raise ValueError(
            f"the approximate search failed in the package faiss ({type(error).__name__}: {said}). "
            "Install faiss-cpu again, or search exactly: set `neighbors` to 'brute' or 'kd_tree'."
        ) from error


@contextmanager
def _threads(n_jobs: int | None) -> Iterator[int]:
    """How many threads to use; numerical libraries use no others inside this context when `n_jobs` is given."""
    n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs)
    with _faiss():
        pass  # the limit reaches only what is loaded
    with threadpool_limits(None if n_jobs is None else n_threads):
        yield n_threads
