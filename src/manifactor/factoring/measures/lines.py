"""Samples on a straight line: one column, or columns that are multiples of one."""

from dataclasses import dataclass

import numpy as np

from manifactor.factoring.prediction import thinned
from manifactor.spectral.neighbors import chosen


@dataclass(frozen=True)
class LineSettings:
    """Settings of `along_line`."""

    # Distance from the line, as a share of its length, that is rounding: of columns that were
    # computed from each other, or of float32 no farther from 0 than the line is long.
    rounding: float = 1e-6
    # Samples that tell nearly always that there is no line.
    screened: int = 100


def along_line(
    X: np.ndarray, rows: np.ndarray, *, settings: LineSettings = LineSettings()
) -> np.ndarray | None:
    """Return where samples lie along a straight line; None if they are on none.

    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0], [6.0, 0.0]])
    >>> along_line(X, np.arange(3)).tolist()
    [0.0, 5.0, 10.0]
    >>> along_line(X, np.arange(4)) is None
    True

    Shapes: X (n, p), rows (n_rows,) -> (n_rows,).
    """
    few = thinned(rows, settings.screened)
    if _along(np.asarray(X[few]), settings) is None:
        return None
    return _along(np.asarray(chosen(X, rows)), settings)


def _along(samples: np.ndarray, settings: LineSettings) -> np.ndarray | None:
    from_first = samples - samples[0]
    distances = np.linalg.norm(from_first, axis=1)
    farthest = int(distances.argmax())
    length = distances[farthest]
    direction = from_first[farthest] / max(length, np.finfo(float).tiny)
    along = from_first @ direction
    beside = from_first - np.outer(along, direction)
    on_line = np.abs(beside).max(initial=0) <= settings.rounding * length
    return along if on_line else None
