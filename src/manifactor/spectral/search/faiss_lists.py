"""Samples in the inverted lists of faiss, and the nearest candidates in them.

Samples lie in lists around centres; a query is compared with the lists of the nearest centres only.
The lists hold the samples as codes of half precision, relative to their centre. Distances of the
candidates that the codes name are computed from the samples themselves: every neighbour has its
exact distance, and copies are 0 apart.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.errors import one_line
from manifactor._support.extras import extra


@dataclass(frozen=True)
class FaissSettings:
    """Settings of `ApproximateSearch`."""

    # Numbers of the samples per step of the work: the samples are never copied whole.
    numbers_per_step: int = 2**19

    # More and smaller lists cost more to assign and to select than they save.
    samples_per_list: int = 256
    most_lists: int = 8192

    # Of k-means; 64 samples for each list and 10 iterations gain at most .005 of recall.
    training_samples_per_list: int = 16
    kmeans_iterations: int = 4

    # To which samples are scaled: well within half precision, which ends at 2**16 and at 2**-24.
    largest_code: float = 2.0**12

    # Where the lists of a query hold too few samples, it looks through so many times as many lists.
    short_list_growth: int = 4

    # Samples whose exact neighbours measure the recall.
    recall_samples: int = 1000

    # Distances that differ by less, relatively, are ties, and either one is right.
    tie_tolerance: float = 1e-6

    # Candidates for each neighbour, tried in this order; more than one is needed where the codes
    # cannot tell close samples apart.
    candidates_per_neighbor: tuple[int, ...] = (1, 2, 4)

    # Lists in which candidates are compared hold so many times the most candidates.
    list_margin: int = 4

    # Fraction of the allowed misses that the rounding of the codes may cause.
    rounding_misses: float = 0.25

    # The number of searched lists grows by one and by one in so many.
    effort_growth: int = 4


@dataclass(frozen=True)
class Codes:
    """Samples in lists of compressed codes."""

    samples: np.ndarray  # (n_samples, n_features): as given
    mean: np.ndarray  # (n_features,)
    # A power of two that takes the largest centred number to about `FaissSettings.largest_code`
    scale: float
    lists: Any
    settings: FaissSettings = FaissSettings()

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
            more = min(self.settings.short_list_growth * effort, self.n_lists)
            found[short] = self.candidates(X[short], width, more)
        return found


def encode(X: np.ndarray, *, settings: FaissSettings = FaissSettings()) -> Codes:
    """Return samples, (n_samples, n_features), in lists of codes."""
    n_samples, n_features = X.shape
    n_lists = n_samples // settings.samples_per_list
    n_lists = int(np.clip(n_lists, 1, settings.most_lists))
    mean, scale = _mean_and_scale(X, settings)
    training = _training_samples(X, n_lists, mean, scale, settings)
    with faiss_package() as faiss:
        lists = faiss.index_factory(n_features, f"IVF{n_lists},SQfp16")
        lists.cp.niter = settings.kmeans_iterations
        # faiss prints a warning if there are fewer samples than its usual minimum.
        lists.cp.min_points_per_centroid = 1
        lists.train(training)
    for part in row_blocks(n_samples, n_features, settings):
        scaled = _scaled(X[part], mean, scale)
        with faiss_package():
            lists.add(scaled)
    return Codes(X, mean, scale, lists, settings)


def nearest_candidates(
    codes: Codes, X: np.ndarray, n_found: int, *, width: int, effort: int, n_threads: int = 1
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
        for queries in row_blocks(len(X), max(n_features, width), codes.settings):
            found = codes.candidates(X[queries], width, effort)
            fill = partial(
                fill_nearest,
                distances[queries],
                neighbors[queries],
                codes.samples,
                X[queries],
                found,
            )
            blocks = row_blocks(len(found), width * n_features, codes.settings)
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


def row_blocks(n_rows: int, n_columns: int, settings: FaissSettings) -> Iterator[slice]:
    """Return slices of rows that hold about `numbers_per_step` numbers."""
    return gen_batches(n_rows, max(1, settings.numbers_per_step // n_columns))


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


def _training_samples(
    X: np.ndarray, n_lists: int, mean: np.ndarray, scale: float, settings: FaissSettings
) -> np.ndarray:
    """Return scaled samples for k-means, drawn at random, always the same."""
    n_samples, n_features = X.shape
    count = min(n_samples, settings.training_samples_per_list * n_lists)
    rows = np.random.default_rng(0).choice(n_samples, count, replace=False)
    rows = np.sort(rows)
    blocks = row_blocks(count, n_features, settings)
    return np.concatenate([_scaled(X[rows[part]], mean, scale) for part in blocks])


def _mean_and_scale(X: np.ndarray, settings: FaissSettings) -> tuple[np.ndarray, float]:
    """Return the mean, (n_features,), and the scale of `Codes`."""
    total, low, high = np.zeros(X.shape[1]), np.inf, -np.inf
    for part in row_blocks(len(X), X.shape[1], settings):
        total += X[part].sum(axis=0, dtype=np.float64)
        low = np.minimum(low, X[part].min(axis=0))
        high = np.maximum(high, X[part].max(axis=0))
    mean = total / len(X)
    largest = float(max((high - mean).max(), (mean - low).max()))
    if largest == 0:
        return mean, 1.0
    # A power of two: scaling rounds nothing.
    return mean, settings.largest_code / 2.0 ** np.frexp(largest)[1]


def _scaled(X: np.ndarray, mean: np.ndarray, scale: float) -> np.ndarray:
    """Return centred and scaled samples in the single precision of faiss."""
    return ((X - mean) * scale).astype(np.float32, order="C")
