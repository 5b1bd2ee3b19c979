"""Bins of equal width along a factor, and on the grid of two factors."""

import numpy as np

from manifactor._support.parameters import require_choice, require_count


def bin_labels(
    coordinate: np.ndarray, topology: str, *, n_bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin of every sample and the coordinate of every bin's centre.

    >>> labels, centres = bin_labels(np.array([350.0, 10.0, 90.0]), "circle", n_bins=4)
    >>> labels.tolist(), centres.tolist()
    ([0, 0, 1], [0.0, 90.0, 180.0, 270.0])

    Shapes: coordinate (n,) -> labels (n,), centres (n_bins,).
    """
    require_choice("topology", topology, tuple(_BINS), "(another shape has no bins along it)")
    # More bins than that are a mistake, such as samples counted instead of bins.
    require_count("n_bins", n_bins, low=1, high=10_000)
    coordinate = np.asarray(coordinate, dtype=float)
    finite = np.isfinite(coordinate)
    if coordinate.ndim != 1 or not finite.all():
        raise ValueError(
            f"`coordinate` must be one finite number for each sample; got shape "
            f"{coordinate.shape} with {int((~finite).sum())} NaN or inf values. Remove "
            "those samples."
        )
    return _BINS[topology](coordinate, n_bins)


def _interval_bins(coordinate: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    if coordinate.size and not 0 <= coordinate.min() <= coordinate.max() <= 1:
        raise ValueError(
            f"`coordinate` of an interval must lie in [0, 1]; got values from "
            f"{coordinate.min():g} to {coordinate.max():g}. Rescale it, or call it a "
            "circle if it is an angle in degrees."
        )
    # The upper end belongs to the last bin.
    labels = np.minimum((coordinate * n_bins).astype(int), n_bins - 1)
    centres = (np.arange(n_bins) + 0.5) / n_bins
    return labels, centres


def _circle_bins(coordinate: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    width = 360 / n_bins
    # Half a bin on: the first one is centred at 0, so that none has an end there.
    labels = np.floor(coordinate / width + 0.5).astype(int) % n_bins
    return labels, np.arange(n_bins) * width


_BINS = {"interval": _interval_bins, "circle": _circle_bins}


def grid_labels(rows: np.ndarray, columns: np.ndarray, *, n_columns: int) -> np.ndarray:
    """Return the cell of every sample on the grid of two factors' bins.

    Cells are counted row by row; -1 for a sample in no bin.

    >>> grid_labels(np.array([0, 1, 1]), np.array([2, 0, -1]), n_columns=3).tolist()
    [2, 3, -1]
    """
    in_no_bin = (rows < 0) | (columns < 0)
    return np.where(in_no_bin, -1, rows * n_columns + columns)
