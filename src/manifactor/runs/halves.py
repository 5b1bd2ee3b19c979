"""Averages of half sets: how far a mean image is noise."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manifactor.runs.run import Run


@dataclass(frozen=True)
class HalfAverages:
    """Means of the two half sets of every bin."""

    means: np.ndarray  # (2, n_bins, *shape): zeros where a half has no weight
    filled: np.ndarray  # (2, n_bins): whether the half of a bin has any weight

    @property
    def correlations(self) -> np.ndarray:
        """Correlation over the pixels of the two halves of every bin, (n_bins,).

        nan for a bin that lacks a half.
        """
        one, two = self.means.reshape(2, self.means.shape[1], -1).astype(float)
        one = one - one.mean(axis=1, keepdims=True)
        two = two - two.mean(axis=1, keepdims=True)
        sizes = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
        known = self.filled.all(axis=0) & (sizes > 0)
        products = (one * two).sum(axis=1)
        return np.divide(products, sizes, out=np.full(len(sizes), np.nan), where=known)

    def __str__(self) -> str:
        known = self.correlations[np.isfinite(self.correlations)]
        if not len(known):
            return "no bin has samples of both half sets"
        return f"the averages of half sets correlate by {known.min():.3f} to {known.max():.3f}"


def half_sets(run: Run) -> np.ndarray:
    """Return the half set of every sample, 0 or 1.

    They are those of the particles (rlnRandomSubset, alignments3D/split), or drawn at random, the
    same every time.
    """
    if "particles" in run.record:
        known = run.particles.microscope.get("half set")
        if known is not None and len(np.unique(known)) == 2:
            return np.unique(known, return_inverse=True)[1]
    n_samples = len(run.rows)
    return np.random.default_rng(0).permutation(n_samples) % 2


def half_averages(
    mean: Callable[..., np.ndarray],
    labels: np.ndarray,
    half: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
) -> tuple[np.ndarray, HalfAverages]:
    """Compute the weighted mean of every bin, and of its two halves.

    Shapes: half (n,) -> means (n_bins, *shape).
    """
    # Each half of a bin is a bin of its own, so that images are read once.
    split = np.where(labels >= 0, labels + n_bins * half, -1)
    parts = mean(split, weights=weights, n_bins=2 * n_bins)
    inside = split >= 0
    total = np.bincount(split[inside], weights[inside], minlength=2 * n_bins)
    total = total.reshape(2, n_bins)
    parts = parts.reshape(2, n_bins, *parts.shape[1:])
    both = np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    means = np.einsum("hb,hb...->b...", total / both, parts).astype(np.float32)
    return means, HalfAverages(parts, total > 0)
