"""Weighted mean images or volumes of bins, in one pass over samples that need not fit into memory."""

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp


def weighted_means(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
) -> np.ndarray:
    """The weighted mean of every bin, (n_bins, *shape) in float32; zeros for a bin without weight.

    Parameters
    ----------
    blocks : iterable of (ndarray of int of shape (m,), ndarray of shape (m, *shape))
        Samples and their images or volumes, in any order.
    labels : ndarray of shape (n,)
        The bin of every sample; -1 for none.
    weights : ndarray of shape (n,)
        Not negative. `bins.match` gives those of matched bins; its `effective_sizes` are 0 where the mean is.

    Examples
    --------
    >>> images = np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> blocks = [(np.array([2, 0]), images[[2, 0]]), (np.array([1]), images[[1]])]
    >>> weighted_means(blocks, np.array([0, 0, -1]), weights=np.array([3.0, 1.0, 1.0]), n_bins=2).tolist()
    [[1.5, 2.5], [0.0, 0.0]]
    """
    labels, weights = np.asarray(labels), np.asarray(weights, dtype=float)
    if labels.shape != weights.shape or labels.ndim != 1:
        raise ValueError(
            f"`labels` and `weights` must have one entry for each sample; got shapes {labels.shape} and "
            f"{weights.shape}. Give those of the same samples."
        )
    weights = np.where(labels >= 0, weights, 0)
    sums, shape = _weighted_sums(blocks, labels, weights, n_bins)
    total = np.bincount(np.maximum(labels, 0), weights, minlength=n_bins)[:, None]
    means = np.divide(sums, total, out=sums, where=total > 0)
    return means.reshape(n_bins, *shape).astype(np.float32)


def _weighted_sums(
    blocks, labels: np.ndarray, weights: np.ndarray, n_bins: int
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Weighted sums of every bin, (n_bins, pixels) in float64, and the shape of a sample."""
    sums: np.ndarray | None = None
    shape: tuple[int, ...] = ()
    for rows, block in blocks:
        shape = block.shape[1:]
        sums = np.zeros((n_bins, int(np.prod(shape)))) if sums is None else sums
        sums += _indicator(labels[rows], weights[rows], n_bins) @ block.reshape(
            len(block), -1
        )
    if sums is None:
        raise ValueError("`blocks` must bring samples; got none.")
    return sums, shape


def _indicator(labels: np.ndarray, weights: np.ndarray, n_bins: int) -> sp.csr_array:
    """The sparse (n_bins, m) matrix that sums a block's samples; one without weight has no entry and is never used."""
    kept = np.flatnonzero(weights)
    return sp.csr_array(
        (weights[kept], (labels[kept], kept)), shape=(n_bins, len(labels))
    )
