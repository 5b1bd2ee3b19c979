"""Weights under which every bin has the same distribution of the other factors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.runs.places import Place

# Samples of the smallest bin that a joint cell of the other factors should hold.
FEWEST_IN_CELL = 8


@dataclass(frozen=True)
class Matching:
    """Weights under which all bins have one distribution of the other factors."""

    # (n,): sum to 1 in every matched bin; 0 for samples in no bin, in a bin too small to match, or
    # where the other factors have values that some bin lacks
    weights: np.ndarray
    # (n_bins,): (sum w)^2 / sum w^2: how many equally weighted samples average noise as well, or 0
    effective_sizes: np.ndarray
    counts: np.ndarray  # (n_bins,): samples of each bin before matching
    n_cells: int  # cells of the other factors over which the bins agree
    dropped: float  # share of the samples in bins whose weight is 0
    # Largest difference between two bins' means of another factor, in its standard deviations,
    # before and after
    unevenness: tuple[float, float]


def match(labels: np.ndarray, others: Sequence[Place], *, n_bins: int) -> Matching:
    """Compute the weights of samples with labels of bins, -1 for none.

    The other factors are cut into cells of about equally many samples. Over the cells all bins get
    one distribution, the harmonic mean of their counts: of all common distributions it has the
    least sum over the bins of 1 / effective size. It is 0 in a cell that some bin lacks, so that
    all bins are averaged over the same coordinates.
    """
    counts = np.bincount(labels[labels >= 0], minlength=n_bins)
    # One cell holds nothing still, so a bin needs two. With nothing to hold still, a mean of one
    # sample is a mean.
    least = 2 * FEWEST_IN_CELL if others else 1
    used = counts >= least
    if not used.any():
        raise ValueError(
            f"A bin must have at least {least} samples to be averaged; the fullest of "
            f"{n_bins} bins has {counts.max()}. Take fewer bins (--bins) or add samples."
        )
    # A label of -1 would index the last bin; the first condition excludes it.
    inside = np.flatnonzero((labels >= 0) & used[labels])
    bins, places = labels[inside], [place[inside] for place in others]
    cell = joint_cells(places, smallest=int(counts[used].min()), n_samples=len(inside))
    n_cells = int(cell.max()) + 1
    table = np.bincount(bins * n_cells + cell, minlength=n_bins * n_cells).reshape(n_bins, -1)
    target = _common_distribution(table, used)
    # All samples of a bin in one cell share the weight that the cell is to have.
    shares = target[cell] / table[bins, cell]
    weights = np.zeros(len(labels))
    weights[inside] = shares
    sums, squares = (np.bincount(bins, w, minlength=n_bins) for w in (shares, shares**2))
    before = _unevenness(np.ones(len(inside)), bins, places)
    after = _unevenness(shares, bins, places)
    return Matching(
        weights=weights,
        effective_sizes=np.divide(sums**2, squares, out=np.zeros(n_bins), where=squares > 0),
        counts=counts,
        n_cells=int(np.count_nonzero(target)),
        dropped=float(1 - np.count_nonzero(weights) / counts.sum()),
        unevenness=(before, after),
    )


def joint_cells(places: Sequence[Place], *, smallest: int, n_samples: int) -> np.ndarray:
    """Return the joint cell of every sample, from 0; the `smallest` bin limits their number."""
    joint = np.zeros(n_samples, dtype=int)
    for place in places:
        # The root of a whole power may come out just below the whole number.
        affordable = (smallest / FEWEST_IN_CELL) ** (1 / len(places)) + 1e-9
        # More cells than these of one factor gain nothing that counts; a surface needs more of them
        # than a line.
        n_cells = int(np.clip(affordable, 2, 48 if place.topology == "other" else 12))
        own = _even_cells(unrolled(place).reshape(n_samples, -1), n_cells)
        # Most joint cells of several factors are empty; `unique` closes the gaps.
        joint = np.unique(joint * n_cells + own, return_inverse=True)[1]
    return joint


def unrolled(place: Place) -> np.ndarray:
    """Return the coordinate; a circle's from its largest gap, which no cell then reaches across."""
    if place.topology != "circle":
        return place.coordinate
    degrees = place.displayed
    angle = np.sort(degrees % 360)
    gaps = np.diff(angle, prepend=angle[-1] - 360)
    return (degrees - angle[gaps.argmax()]) % 360


def _even_cells(points: np.ndarray, n_cells: int) -> np.ndarray:
    """Return the labels of boxes with equally many points, (n, d), of which the longest are cut."""
    labels = np.zeros(len(points), dtype=int)
    if n_cells == 1 or len(points) <= 1:
        return labels
    n_low = n_cells // 2
    # Stable, so that samples at one place are divided the same way every time.
    order = np.argsort(points[:, points.std(axis=0).argmax()], kind="stable")
    low, high = np.split(order, [len(points) * n_low // n_cells])
    labels[low] = _even_cells(points[low], n_low)
    labels[high] = n_low + _even_cells(points[high], n_cells - n_low)
    return labels


def _common_distribution(table: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the shares of cells that all used bins can have, from counts, (n_bins, n_cells)."""
    counts = table[used]
    shared = (counts > 0).all(axis=0)
    if not shared.any():
        n_filled = np.count_nonzero(counts, axis=1)
        poorest = int(np.flatnonzero(used)[n_filled.argmin()])
        lacking = int((table[poorest] == 0).sum())
        raise ValueError(
            f"All bins must share some coordinates of the other factors; none of the "
            f"{table.shape[1]} cells of the other factors has samples of all "
            f"{len(counts)} bins: bin {poorest} lacks {lacking} of them. Take fewer "
            "bins (--bins), or average without matching."
        )
    # With shares t_c and counts n_bc, a bin's 1 / effective size is the sum over cells of t_c^2 /
    # n_bc. Its sum over the bins is least for t_c ~ 1 / sum_b (1 / n_bc).
    harmonic = np.zeros(table.shape[1])
    harmonic[shared] = 1 / (1 / counts[:, shared]).sum(axis=0)
    return harmonic / harmonic.sum()


def _unevenness(weights: np.ndarray, labels: np.ndarray, places: Sequence[Place]) -> float:
    """Return the largest difference of two bins' weighted means of a factor, in its deviations."""
    sums = np.bincount(labels, weights)
    filled = sums > 0
    largest = 0.0
    for place in places:
        for feature in place.features.T:
            means = np.bincount(labels, weights * feature)[filled] / sums[filled]
            # A feature that is the same everywhere has no spread to divide by.
            largest = max(largest, float(np.ptp(means) / (feature.std() or 1.0)))
    return largest
