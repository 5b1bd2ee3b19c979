"""Bins along a factor, and weights under which every bin has the same distribution of the other factors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor._support.parameters import require_choice, require_count
from manifactor.runs.places import Place

PER_CELL = 8  # samples of the smallest bin that a cell of the other factors should have
MOST_CELLS = {
    "interval": 12,
    "circle": 12,
    "other": 48,
}  # of one other factor; finer ones gain nothing that counts
LEAST = 2 * PER_CELL  # samples without which a bin cannot be matched: two cells


@dataclass(frozen=True)
class Matching:
    """Weights under which all bins have one distribution of the other factors.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        Sum to 1 in every matched bin; 0 for samples in no bin, in a bin too small to match, or where the other factors
        have values that some bin lacks.
    effective_sizes : ndarray of shape (n_bins,)
        (sum w)^2 / sum w^2: how many equally weighted samples average noise as well. 0 for a bin without a mean.
    counts : ndarray of shape (n_bins,)
        Samples of each bin before matching.
    n_cells : int
        Cells of the other factors over which the bins agree.
    dropped : float
        Share of the samples in bins whose weight is 0.
    unevenness : tuple of float
        Largest difference between two bins' means of another factor, in its standard deviations, before and after.
    """

    weights: np.ndarray
    effective_sizes: np.ndarray
    counts: np.ndarray
    n_cells: int
    dropped: float
    unevenness: tuple[float, float]


def bin_labels(
    coordinate: np.ndarray, topology: str, *, n_bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """The bin of every sample and the coordinate of every bin's centre.

    Parameters
    ----------
    coordinate : ndarray of shape (n,)
        In [0, 1] on an interval; degrees on a circle, where any turn more or less is the same place.
    topology : "interval" or "circle"
    n_bins : int
        Bins of equal width. A circle's first bin is centred at 0 and reaches across it.

    Returns
    -------
    labels : ndarray of shape (n,)
    centres : ndarray of shape (n_bins,)

    Examples
    --------
    >>> labels, centres = bin_labels(np.array([350.0, 10.0, 90.0]), "circle", n_bins=4)
    >>> labels.tolist(), centres.tolist()
    ([0, 0, 1], [0.0, 90.0, 180.0, 270.0])
    """
    require_choice(
        "topology", topology, tuple(_BINS), "(another shape has no bins along it)"
    )
    require_count("n_bins", n_bins, 1, 10_000)
    coordinate = np.asarray(coordinate, dtype=float)
    if coordinate.ndim != 1 or not np.isfinite(coordinate).all():
        raise ValueError(
            f"`coordinate` must be one finite number for each sample; got shape {coordinate.shape} with "
            f"{int((~np.isfinite(coordinate)).sum())} NaN or inf values. Remove those samples."
        )
    return _BINS[topology](coordinate, n_bins)


def _interval_bins(
    coordinate: np.ndarray, n_bins: int
) -> tuple[np.ndarray, np.ndarray]:
    if coordinate.size and not 0 <= coordinate.min() <= coordinate.max() <= 1:
        raise ValueError(
            f"`coordinate` of an interval must lie in [0, 1]; got values from {coordinate.min():g} to "
            f"{coordinate.max():g}. Rescale it, or call it a circle if it is an angle in degrees."
        )
    labels = np.minimum((coordinate * n_bins).astype(int), n_bins - 1)
    return labels, (np.arange(n_bins) + 0.5) / n_bins


def _circle_bins(coordinate: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    width = 360 / n_bins
    return np.floor(coordinate / width + 0.5).astype(int) % n_bins, np.arange(
        n_bins
    ) * width


_BINS = {"interval": _interval_bins, "circle": _circle_bins}


def grid_labels(rows: np.ndarray, columns: np.ndarray, *, n_columns: int) -> np.ndarray:
    """The cell, counted row by row, of every sample on the grid of two factors' bins; -1 for one in no bin.

    Examples
    --------
    >>> grid_labels(np.array([0, 1, 1]), np.array([2, 0, -1]), n_columns=3).tolist()
    [2, 3, -1]
    """
    return np.where((rows < 0) | (columns < 0), -1, rows * n_columns + columns)


def match(
    labels: np.ndarray,
    others: Sequence[Place],
    *,
    n_bins: int,
    cells: int | None = None,
) -> Matching:
    """Weights such that in every bin the other factors have the same distribution.

    The other factors are cut into cells of about equally many samples. Over the cells all bins get one distribution,
    the harmonic mean of their counts: of all common distributions it has the least sum over the bins of 1 / effective
    size. It is 0 in a cell that some bin lacks, so that no bin speaks of places that another has never seen.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        The bin of every sample; -1 for none.
    others : sequence of Place
        The factors to hold still. If there are none, all samples of a bin weigh the same.
    n_bins : int
        A bin with fewer than 16 samples cannot be matched: it gets no weight and takes no part.
    cells : int, optional
        Cells of each other factor; by default so many that the smallest bin has about 8 samples in a joint cell, but
        at least 2 and at most 12 of an interval or a circle and 48 of another shape.
    """
    labels = np.asarray(labels)
    _require_places(labels, others, n_bins)
    counts = np.bincount(labels[labels >= 0], minlength=n_bins)
    used = _large_enough(counts, LEAST if others else 1)
    inside = np.flatnonzero((labels >= 0) & used[labels])
    bins, places = labels[inside], [place[inside] for place in others]
    cell = joint_cells(
        places, smallest=int(counts[used].min()), cells=cells, n_samples=len(inside)
    )
    table = _table(bins, cell, n_bins)
    target = _common_distribution(table, used)
    weights = np.zeros(len(labels))
    weights[inside] = target[cell] / table[bins, cell]
    return Matching(
        weights=weights,
        effective_sizes=effective_sizes(weights, labels, n_bins=n_bins),
        counts=counts,
        n_cells=int(np.count_nonzero(target)),
        dropped=float(1 - np.count_nonzero(weights) / counts.sum()),
        unevenness=(
            _unevenness(np.ones(len(inside)), bins, places),
            _unevenness(weights[inside], bins, places),
        ),
    )


def effective_sizes(
    weights: np.ndarray, labels: np.ndarray, *, n_bins: int
) -> np.ndarray:
    """(sum w)^2 / sum w^2 of every bin, 0 for one without weight.

    Examples
    --------
    >>> effective_sizes(np.array([1.0, 1.0, 3.0]), np.array([0, 0, 1]), n_bins=3).tolist()
    [2.0, 1.0, 0.0]
    """
    sums, squares = (_sums(labels, power, n_bins) for power in (weights, weights**2))
    return np.divide(sums**2, squares, out=np.zeros(n_bins), where=squares > 0)


def _sums(labels: np.ndarray, values: np.ndarray, n_bins: int) -> np.ndarray:
    """The values summed in every bin; those in no bin are left out."""
    inside = labels >= 0
    return np.bincount(labels[inside], values[inside], minlength=n_bins)


def _large_enough(counts: np.ndarray, least: int) -> np.ndarray:
    """Which bins can be matched."""
    if counts.max() < least:
        raise ValueError(
            f"A bin must have at least {least} samples to be averaged; the fullest of {len(counts)} bins has "
            f"{counts.max()}. Take fewer bins (--bins) or add samples."
        )
    return counts >= least


def joint_cells(
    places: Sequence[Place], *, smallest: int, cells: int | None, n_samples: int
) -> np.ndarray:
    """The joint cell of every sample, counted from 0 without gaps; `smallest` is the size of the smallest bin."""
    joint = np.zeros(n_samples, dtype=int)
    for place in places:
        affordable = (smallest / PER_CELL) ** (1 / len(places)) + 1e-9
        n_cells = (
            int(np.clip(affordable, 2, MOST_CELLS[place.topology]))
            if cells is None
            else cells
        )
        own = _even_cells(
            _unrolled(place).reshape(n_samples, -1),
            require_count("cells", n_cells, 1, 1000),
        )
        joint = np.unique(joint * n_cells + own, return_inverse=True)[1]
    return joint


def _unrolled(place: Place) -> np.ndarray:
    """The coordinate; a circle's counted from the end of its largest gap, so that no cell reaches across that."""
    if place.topology != "circle":
        return place.coordinate
    angle = np.sort(place.coordinate % 360)
    gaps = np.diff(angle, prepend=angle[-1] - 360)
    return (place.coordinate - angle[gaps.argmax()]) % 360


def _table(bins: np.ndarray, cell: np.ndarray, n_bins: int) -> np.ndarray:
    """Number of samples of every bin, (n_bins, n_cells), in every cell."""
    n_cells = int(cell.max()) + 1
    return np.bincount(bins * n_cells + cell, minlength=n_bins * n_cells).reshape(
        n_bins, n_cells
    )


def _even_cells(points: np.ndarray, n_cells: int) -> np.ndarray:
    """Labels of boxes with equally many points, (n, d): the longest side is cut first; quantiles if d is 1."""
    labels = np.zeros(len(points), dtype=int)
    if n_cells > 1 and len(points) > 1:
        order = np.argsort(points[:, points.std(axis=0).argmax()], kind="stable")
        low, high = np.split(order, [len(points) * (n_cells // 2) // n_cells])
        labels[low] = _even_cells(points[low], n_cells // 2)
        labels[high] = n_cells // 2 + _even_cells(points[high], n_cells - n_cells // 2)
    return labels


def _common_distribution(table: np.ndarray, used: np.ndarray) -> np.ndarray:
    """The distribution over the cells, (n_cells,), that all used bins of the counts, (n_bins, n_cells), can have."""
    counts = table[used]
    shared = (counts > 0).all(axis=0)
    if not shared.any():
        poorest = int(np.flatnonzero(used)[np.count_nonzero(counts, axis=1).argmin()])
        raise ValueError(
            f"All bins must share some places of the other factors; none of the {table.shape[1]} cells of the other "
            f"factors has samples of all {len(counts)} bins: bin {poorest} lacks "
            f"{int((table[poorest] == 0).sum())} of them. Take fewer bins (--bins), or average without matching."
        )
    harmonic = np.zeros(table.shape[1])
    harmonic[shared] = 1 / (1 / counts[:, shared]).sum(axis=0)
    return harmonic / harmonic.sum()


def _unevenness(
    weights: np.ndarray, labels: np.ndarray, places: Sequence[Place]
) -> float:
    """Largest difference between two bins' weighted means of any of the factors, in standard deviations; 0 for none."""
    sums = np.bincount(labels, weights)
    return max(
        (
            _range(feature, weights, labels, sums)
            for place in places
            for feature in place.features.T
        ),
        default=0.0,
    )


def _range(
    feature: np.ndarray, weights: np.ndarray, labels: np.ndarray, sums: np.ndarray
) -> float:
    """Largest difference between two bins' weighted means of one feature, in its standard deviations."""
    means = np.bincount(labels, weights * feature)[sums > 0] / sums[sums > 0]
    return float(np.ptp(means) / (feature.std() or 1.0))


def _require_places(labels: np.ndarray, others: Sequence[Place], n_bins: int) -> None:
    """Refuse labels that are no bins and factors of other samples."""
    require_count("n_bins", n_bins, 1, 100_000_000)
    if (
        labels.ndim != 1
        or not labels.size
        or labels.dtype.kind not in "iu"
        or not -1 <= labels.min() <= labels.max() < n_bins
    ):
        raise ValueError(
            f"`labels` must be one whole number in [-1, {n_bins - 1}] for each sample; got an array of shape "
            f"{labels.shape} and type {labels.dtype}. Make it with bin_labels."
        )
    for place in others:
        require_choice("topology", place.topology, ("interval", "circle", "other"))
        if (
            len(place.coordinate) != len(labels)
            or not np.isfinite(place.coordinate).all()
        ):
            raise ValueError(
                f"The other factors must have a finite coordinate for each of the {len(labels)} samples; got shape "
                f"{np.shape(place.coordinate)}. Give all factors of the same run."
            )
