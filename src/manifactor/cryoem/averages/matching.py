"""Weights under which every bin has the same distribution of the other factors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor._support.parameters import require_choice, require_count
from manifactor.runs.places import Place


@dataclass(frozen=True)
class MatchingSettings:
    """Settings of `match` and `joint_cells`."""

    # Samples of the smallest bin that a joint cell of the other factors should hold.
    samples_per_cell: int = 8

    # One cell holds nothing still. More cells than these of one factor gain nothing that counts; a
    # surface needs more of them than a line.
    min_cells: int = 2
    max_cells: int = 12
    max_cells_of_surfaces: int = 48

    @property
    def min_samples(self) -> int:
        """Samples below which a bin cannot be matched."""
        return self.min_cells * self.samples_per_cell

    def cells(self, topology: str, affordable: float) -> int:
        """Return the number of cells of one factor."""
        most = self.max_cells_of_surfaces if topology == "other" else self.max_cells
        return int(np.clip(affordable, self.min_cells, most))


@dataclass(frozen=True)
class Matching:
    """Weights under which all bins have one distribution of the other factors."""

    # (n,): sum to 1 in every matched bin; 0 for samples in no bin, in a bin too small to match, or
    # where the other factors have values that some bin lacks
    weights: np.ndarray
    # (n_bins,): (sum w)^2 / sum w^2: how many equally weighted samples average noise as well. 0 for
    # a bin without a mean.
    effective_sizes: np.ndarray
    counts: np.ndarray  # (n_bins,): samples of each bin before matching
    n_cells: int  # cells of the other factors over which the bins agree
    dropped: float  # share of the samples in bins whose weight is 0
    # Largest difference between two bins' means of another factor, in its standard deviations,
    # before and after
    unevenness: tuple[float, float]


def match(
    labels: np.ndarray,
    others: Sequence[Place],
    *,
    n_bins: int,
    cells: int | None = None,
    settings: MatchingSettings = MatchingSettings(),
) -> Matching:
    """Compute weights such that the other factors have one distribution in every bin.

    The other factors are cut into cells of about equally many samples. Over the cells all bins get
    one distribution, the harmonic mean of their counts: of all common distributions it has the
    least sum over the bins of 1 / effective size. It is 0 in a cell that some bin lacks, so that
    all bins are averaged over the same places.

    Shapes: labels (n,).
    """
    labels = np.asarray(labels)
    _require_labels(labels, n_bins)
    _require_places(others, len(labels))
    counts = np.bincount(labels[labels >= 0], minlength=n_bins)
    # With nothing to hold still, a mean of one sample is a mean.
    used = _large_enough(counts, settings.min_samples if others else 1)

    # A label of -1 would index the last bin; the first condition excludes it.
    inside = np.flatnonzero((labels >= 0) & used[labels])
    bins, places = labels[inside], [place[inside] for place in others]
    cell = joint_cells(
        places,
        smallest=int(counts[used].min()),
        cells=cells,
        n_samples=len(inside),
        settings=settings,
    )
    table = _count_table(bins, cell, n_bins)
    target = _common_distribution(table, used)
    # All samples of a bin in one cell share the weight that the cell is to have.
    weights = np.zeros(len(labels))
    weights[inside] = target[cell] / table[bins, cell]

    before = _unevenness(np.ones(len(inside)), bins, places)
    after = _unevenness(weights[inside], bins, places)
    return Matching(
        weights=weights,
        effective_sizes=effective_sizes(weights, labels, n_bins=n_bins),
        counts=counts,
        n_cells=int(np.count_nonzero(target)),
        dropped=float(1 - np.count_nonzero(weights) / counts.sum()),
        unevenness=(before, after),
    )


def effective_sizes(weights: np.ndarray, labels: np.ndarray, *, n_bins: int) -> np.ndarray:
    """Return (sum w)^2 / sum w^2 of every bin, 0 for one without weight.

    >>> weights, labels = np.array([1.0, 1.0, 3.0]), np.array([0, 0, 1])
    >>> effective_sizes(weights, labels, n_bins=3).tolist()
    [2.0, 1.0, 0.0]
    """
    inside = labels >= 0
    bins, w = labels[inside], weights[inside]
    sums = np.bincount(bins, w, minlength=n_bins)
    squares = np.bincount(bins, w**2, minlength=n_bins)
    return np.divide(sums**2, squares, out=np.zeros(n_bins), where=squares > 0)


def joint_cells(
    places: Sequence[Place],
    *,
    smallest: int,
    cells: int | None,
    n_samples: int,
    settings: MatchingSettings = MatchingSettings(),
) -> np.ndarray:
    """Return the joint cell of every sample, counted from 0 without gaps."""
    joint = np.zeros(n_samples, dtype=int)
    for place in places:
        n_cells = cells
        if n_cells is None:
            n_joint = smallest / settings.samples_per_cell
            # The root of a whole power may come out just below the whole number.
            affordable = n_joint ** (1 / len(places)) + 1e-9
            n_cells = settings.cells(place.topology, affordable)
        require_count("cells", n_cells, low=1, high=1000)
        points = _unrolled(place).reshape(n_samples, -1)
        own = _even_cells(points, n_cells)
        # Most joint cells of several factors are empty; `unique` closes the gaps.
        joint = np.unique(joint * n_cells + own, return_inverse=True)[1]
    return joint


def _unrolled(place: Place) -> np.ndarray:
    """Return the coordinate; a circle's counted from the end of its largest gap.

    So no cell reaches across the gap.
    """
    if place.topology != "circle":
        return place.coordinate
    degrees = place.displayed
    angle = np.sort(degrees % 360)
    gaps = np.diff(angle, prepend=angle[-1] - 360)
    return (degrees - angle[gaps.argmax()]) % 360


def _even_cells(points: np.ndarray, n_cells: int) -> np.ndarray:
    """Return the labels of boxes with equally many of the points, (n, d).

    The longest side is cut first; if d is 1, the boxes are quantiles.
    """
    labels = np.zeros(len(points), dtype=int)
    if n_cells == 1 or len(points) <= 1:
        return labels
    n_low = n_cells // 2
    longest = points[:, points.std(axis=0).argmax()]
    # Stable, so that samples at one place are divided the same way every time.
    order = np.argsort(longest, kind="stable")
    low, high = np.split(order, [len(points) * n_low // n_cells])
    labels[low] = _even_cells(points[low], n_low)
    labels[high] = n_low + _even_cells(points[high], n_cells - n_low)
    return labels


def _large_enough(counts: np.ndarray, least: int) -> np.ndarray:
    """Return which bins can be matched."""
    if counts.max() < least:
        raise ValueError(
            f"A bin must have at least {least} samples to be averaged; the fullest of "
            f"{len(counts)} bins has {counts.max()}. Take fewer bins (--bins) or add "
            "samples."
        )
    return counts >= least


def _count_table(bins: np.ndarray, cell: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the number of samples of every bin in every cell, (n_bins, n_cells)."""
    n_cells = int(cell.max()) + 1
    counts = np.bincount(bins * n_cells + cell, minlength=n_bins * n_cells)
    return counts.reshape(n_bins, n_cells)


def _common_distribution(table: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the distribution over the cells, (n_cells,), that all used bins can have.

    `table` holds the counts, (n_bins, n_cells).
    """
    counts = table[used]
    shared = (counts > 0).all(axis=0)
    if not shared.any():
        n_filled = np.count_nonzero(counts, axis=1)
        poorest = int(np.flatnonzero(used)[n_filled.argmin()])
        lacking = int((table[poorest] == 0).sum())
        raise ValueError(
            f"All bins must share some places of the other factors; none of the "
            f"{table.shape[1]} cells of the other factors has samples of all "
            f"{len(counts)} bins: bin {poorest} lacks {lacking} of them. Take fewer "
            "bins (--bins), or average without matching."
        )
    # With shares t_c and counts n_bc, a bin's 1 / effective size is the sum over cells of t_c^2 /
    # n_bc. Its sum over the bins is least for t_c ~ 1 / sum_b (1 / n_bc).
    harmonic = np.zeros(table.shape[1])
    reciprocals = 1 / counts[:, shared]
    harmonic[shared] = 1 / reciprocals.sum(axis=0)
    return harmonic / harmonic.sum()


def _unevenness(weights: np.ndarray, labels: np.ndarray, places: Sequence[Place]) -> float:
    """Return the largest difference between two bins' weighted means of any factor.

    It is in standard deviations of the factor's features; 0 without factors.
    """
    sums = np.bincount(labels, weights)
    largest = 0.0
    for place in places:
        for feature in place.features.T:
            largest = max(largest, _range_of_means(feature, weights, labels, sums))
    return largest


def _range_of_means(
    feature: np.ndarray, weights: np.ndarray, labels: np.ndarray, sums: np.ndarray
) -> float:
    filled = sums > 0
    means = np.bincount(labels, weights * feature)[filled] / sums[filled]
    # A feature that is the same everywhere has no spread to divide by.
    return float(np.ptp(means) / (feature.std() or 1.0))


def _require_labels(labels: np.ndarray, n_bins: int) -> None:
    """Refuse labels that are not bins."""
    # The grid of two factors with as many bins as `bin_labels` allows, 10,000 each.
    require_count("n_bins", n_bins, low=1, high=100_000_000)
    # Floats are refused: rounding them would hide a coordinate given for a label.
    whole_numbers = labels.ndim == 1 and labels.size and labels.dtype.kind in "iu"
    if not (whole_numbers and -1 <= labels.min() <= labels.max() < n_bins):
        raise ValueError(
            f"`labels` must be one whole number in [-1, {n_bins - 1}] for each sample; "
            f"got an array of shape {labels.shape} and type {labels.dtype}. Make it "
            "with bin_labels."
        )


def _require_places(others: Sequence[Place], n_samples: int) -> None:
    """Refuse factors of other samples."""
    for place in others:
        require_choice("topology", place.topology, ("interval", "circle", "other"))
        coordinate = place.coordinate
        if len(coordinate) != n_samples or not np.isfinite(coordinate).all():
            raise ValueError(
                f"The other factors must have a finite coordinate for each of the "
                f"{n_samples} samples; got shape {np.shape(coordinate)}. Give all "
                "factors of the same run."
            )
