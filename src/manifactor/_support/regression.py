"""Regression on nearest neighbours, which predicts each sample by those around it."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree


def neighbour_means(
    source: np.ndarray, n_neighbors: int, *, serial_limit: int = 2000
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that averages values over each sample's nearest neighbours.

    >>> line = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> neighbour_means(line, 1)(line).ravel().tolist()
    [1.0, 0.0, 6.0, 5.0]

    Shapes: source (n, d).
    """
    n = len(source)
    if source.shape[1] == 1:
        near = nearest_on_line(source[:, 0], source[:, 0], n_neighbors + 1)
    else:
        workers = 1 if n <= serial_limit else -1
        _, near = KDTree(source).query(source, n_neighbors + 1, workers=workers)
    near = without_itself(near, np.arange(n))
    # Every row has as many entries, so that the pointers of the CSR array are a range.
    pointers = np.arange(n + 1) * n_neighbors
    ones = np.ones(near.size)
    around = sp.csr_array((ones, near.ravel(), pointers), shape=(n, n))

    def means(values: np.ndarray) -> np.ndarray:
        return (around @ values) / n_neighbors

    return means


def without_itself(near: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the neighbours of samples without the samples themselves, (m, k - 1).

    A sample with k copies or more may be missing among its neighbours. These are all copies then,
    and the last one is left out.

    >>> without_itself(np.array([[0, 1, 2], [2, 0, 3]]), np.array([1, 4]))
    array([[0, 2],
           [2, 0]])

    Shapes: near (m, k), own (m,).
    """
    itself = near == own[:, None]
    itself[~itself.any(axis=1), -1] = True
    return near[~itself].reshape(len(near), near.shape[1] - 1)


def nearest_on_line(places: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """Return which of places, (n,), are nearest to others, (m,), in ascending order.

    They are a run of the ordered places: it begins with the first one that is not farther away than
    the one `count` places after it.

    >>> nearest_on_line(np.array([5.0, 0.0, 6.0, 1.0]), np.array([0.2, 4.0]), 2)
    array([[1, 3],
           [0, 2]])

    Returns (m, count).
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted((ordered[:-count] + ordered[count:]) / 2, at)
    return order[first[:, None] + np.arange(count)]


def neighbour_sums(weights: np.ndarray, near: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return weighted sums of values over neighbours, (m, c, q).

    As a sparse product, so that values are not copied for each neighbourhood.

    >>> values = np.array([[1.0], [10.0], [100.0]])
    >>> neighbour_sums(np.array([[[1, 2]]]), np.array([[0, 2]]), values).ravel()
    array([201.])

    Shapes: weights (m, c, k), near (m, k), values (n, q).
    """
    m, c, k = weights.shape
    columns = np.repeat(near, c, axis=0).ravel()
    pointers = np.arange(0, weights.size + 1, k)
    entries = (weights.ravel(), columns, pointers)
    matrix = sp.csr_array(entries, shape=(m * c, len(values)))
    return (matrix @ values).reshape(m, c, -1)
