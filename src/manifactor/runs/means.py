"""Weighted mean images or volumes of bins, in one pass over the samples.

The samples need not fit into memory.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.stacks import ImageArray, ImageSource
from manifactor.cryoem.views import View


def weighted_means(
    images: View | ImageSource | ImageArray,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    rows: np.ndarray | None = None,
    n_blocks: int = 8,
    workers: Workers = Here(),
    report: Callable[[float], None] = ignored,
) -> np.ndarray:
    """Compute the weighted mean of every bin of images that workers read.

    >>> images = ImageArray(np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]))
    >>> labels, weights = np.array([0, 0, -1]), np.array([3.0, 1.0, 1.0])
    >>> weighted_means(images, labels, weights=weights, n_bins=2).tolist()
    [[1.5, 2.5], [0.0, 0.0]]

    Shapes: labels (n,), weights (n,) -> (n_bins, *shape).
    """
    labels, weights = _checked(labels, weights)
    pieces = images.block_rows(rows, n_blocks=n_blocks)
    # A worker holds the sums of those bins only that its images are in.
    bins = [np.unique(labels[rows], return_inverse=True) for rows in pieces]
    jobs = [
        (images[rows], place, weights[rows], len(present))
        for rows, (present, place) in zip(pieces, bins, strict=True)
    ]
    found = workers.map(_piece_sums, jobs, report=report)
    sums: np.ndarray | None = None
    for (present, _), part in zip(bins, found, strict=True):
        if sums is None:
            sums = np.zeros((n_bins, *part.shape[1:]))
        # The first may be -1, that of samples in no bin, which are not summed.
        first = int(present[0] < 0)
        sums[present[first:]] += part[first:]
    if sums is None:
        raise ValueError("`images` must hold samples; got none.")
    return _divided(sums.reshape(n_bins, -1), labels, weights, sums.shape[1:])


def _piece_sums(
    images: View | ImageSource | ImageArray, labels: np.ndarray, weights: np.ndarray, n_bins: int
) -> np.ndarray:
    """Read one piece of the images, and return their sums, (n_bins, *shape)."""
    sums, shape = _weighted_sums(images.blocks(), labels, weights, n_bins)
    return sums.reshape(n_bins, *shape)


def _checked(labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and weights; samples in no bin have no weight."""
    labels, weights = np.asarray(labels), np.asarray(weights, dtype=float)
    if labels.shape != weights.shape or labels.ndim != 1:
        raise ValueError(
            f"`labels` and `weights` must have one entry for each sample; got shapes "
            f"{labels.shape} and {weights.shape}. Give those of the same samples."
        )
    # A label of -1 would index the last bin; without weight it never does.
    return labels, np.where(labels >= 0, weights, 0)


def _divided(
    sums: np.ndarray, labels: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Return the means of bins, given the sums."""
    n_bins = len(sums)
    # Samples in no bin have no weight by now, so any bin may count them.
    total = np.bincount(np.maximum(labels, 0), weights, minlength=n_bins)
    total = total[:, None]
    # In place: sums of large volumes fill much of the memory.
    means = np.divide(sums, total, out=sums, where=total > 0)
    return means.reshape(n_bins, *shape).astype(np.float32)


def _weighted_sums(
    blocks, labels: np.ndarray, weights: np.ndarray, n_bins: int
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the weighted sums of every bin, (n_bins, n_pixels), and a sample's shape.

    Sums are in float64: small changes on a large offset survive many samples.
    """
    sums: np.ndarray | None = None
    shape: tuple[int, ...] = ()
    for rows, block in blocks:
        shape = block.shape[1:]
        if sums is None:
            sums = np.zeros((n_bins, int(np.prod(shape))))
        # A sparse product reads the block once, however many bins there are.
        summing = _summing_matrix(labels[rows], weights[rows], n_bins)
        sums += summing @ block.reshape(len(block), -1)
    if sums is None:
        raise ValueError("`blocks` must yield samples; got none.")
    return sums, shape


def _summing_matrix(labels: np.ndarray, weights: np.ndarray, n_bins: int) -> sp.csr_array:
    """Return the sparse (n_bins, m) matrix that sums a block's samples."""
    # A sample without weight has no entry, so that its NaN cannot spoil a sum.
    kept = np.flatnonzero(weights)
    entries = (weights[kept], (labels[kept], kept))
    return sp.csr_array(entries, shape=(n_bins, len(labels)))
