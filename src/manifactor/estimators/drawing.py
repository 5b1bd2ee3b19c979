"""Samples that are not in memory: some of them are drawn at random and fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_count


@dataclass(frozen=True)
class DrawSettings:
    """How many samples are drawn and fitted."""

    # Beyond, a fit takes minutes and the places hardly improve.
    most: int = 20_000
    # Every sample needs neighbours, and the spectrum more than the constant function.
    fewest: int = 4
    # Rows of an array without chunks that are read at a time.
    rows_at_once: int = 2**16


def is_lazy(X: Any) -> bool:
    """Return whether this is a Dask array; refuse other collections of Dask."""
    if not hasattr(X, "__dask_graph__"):
        return False
    if not hasattr(X, "rechunk"):
        raise ValueError(
            f"of Dask, `X` must be an array; got {type(X).__name__}. Convert a data "
            "frame: X.to_dask_array(lengths=True)."
        )
    return True


def is_outside_memory(X: Any) -> bool:
    """Return whether this is an array in chunks: of Dask, Zarr or HDF5."""
    # Of HDF5, arrays that were written at once have no chunks.
    of_hdf5 = type(X).__module__.startswith("h5py.")
    return is_lazy(X) or of_hdf5 or _has_chunks(X)


def _has_chunks(X: Any) -> bool:
    of_array = hasattr(X, "dtype") and hasattr(X, "shape")
    return of_array and getattr(X, "chunks", None) is not None


def require_known_shape(X: Any) -> None:
    """Refuse a Dask array of unknown size, and what is no table of numbers."""
    if X.ndim != 2:
        raise ValueError(f"`X` must have one sample a row; got an array of shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"`X` must hold real numbers; got values of type {X.dtype}.")
    if any(np.isnan(size) for size in X.shape):
        raise ValueError(
            "the number of samples of `X` must be known; its chunks are of unknown "
            "size. Call X.compute_chunk_sizes() first."
        )


def drawn_samples(estimator: Any, X: Any, asked: int | str) -> tuple[Any, Any]:
    """Return the samples to fit, and their rows; None for all that were given.

    Shapes: X (n_samples, n_features).
    """
    outside = is_outside_memory(X)
    if not outside and asked in ("auto", "all"):
        return X, None
    if sp.issparse(X):
        raise ValueError(
            "`fit_samples` draws samples; got it with a sparse matrix of distances. Leave it out."
        )
    if outside:
        require_known_shape(X)
    n_samples, n_features = np.shape(X)
    count = draw_count(asked, n_samples)
    if outside:
        estimator.require_room(count, n_features)
    elif count == n_samples:
        return X, None
    seed = check_random_state(estimator.random_state).randint(2**31)
    rows = draw_rows(n_samples, count, np.random.default_rng(seed))
    return take_rows(X, rows), rows


def draw_rows(n_samples: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of `count` random samples, ascending.

    >>> draw_rows(10**9, 3, np.random.default_rng(0))
    array([511136479, 636961686, 850624224])
    """
    return np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))


def draw_count(asked: int | str, n_samples: int, *, settings: DrawSettings = DrawSettings()) -> int:
    """Return how many samples to draw."""
    if asked == "auto":
        return min(n_samples, settings.most)
    if asked == "all":
        return n_samples
    count = require_count("fit_samples", asked, low=settings.fewest, high=10**9)
    return min(count, n_samples)


def require_samples(n_samples: int, *, settings: DrawSettings = DrawSettings()) -> None:
    """Refuse fewer samples than any fit takes."""
    if n_samples < settings.fewest:
        raise ValueError(
            f"a fit needs at least {settings.fewest} samples, one a row, and hundreds "
            f"to show a product; got {n_samples} sample{'s' * (n_samples != 1)}. Add "
            "samples."
        )


def take_rows(X: Any, rows: np.ndarray, *, settings: DrawSettings = DrawSettings()) -> np.ndarray:
    """Return some samples, ascending; chunks that hold none of them are not read."""
    if is_lazy(X):
        return np.asarray(X[rows].compute())
    if not is_outside_memory(X):
        return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
    # HDF5 has no chunks for arrays that were written at once.
    at_once = X.chunks[0] if X.chunks else settings.rows_at_once
    edges = np.append(np.arange(0, X.shape[0], at_once), X.shape[0])
    return take_by_chunks(rows, edges, lambda start, stop: np.asarray(X[start:stop]))


def take_by_chunks(
    rows: np.ndarray, edges: np.ndarray, read: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """Return some samples of a table, chunk by chunk; chunks with none are not read.

    >>> X = np.arange(10.0)
    >>> take_by_chunks(np.array([1, 7]), np.array([0, 5, 10]), lambda i, j: X[i:j])
    array([1., 7.])
    """
    found = []
    for low, high in pairwise(np.searchsorted(rows, edges)):
        if low < high:
            own = rows[low:high]
            block = read(int(own[0]), int(own[-1]) + 1)
            found.append(block[own - own[0]])
    return np.concatenate(found)
