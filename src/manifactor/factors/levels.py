"""Places at which all samples lie on a factor: levels, or classes if they are few."""

import numpy as np

from manifactor.factors.shapes import widest_gap
from manifactor.statistics import split_at_gaps

# A factor has so many levels at most. Few of them are classes, whose order is no matter.
MOST_LEVELS = 50
LEAST_LEVELS = 6
# Least share of a factor's functions that levels tell. Of a curve in two pieces, which its lowest
# functions do not tell apart further, they tell one of 24.
TOLD_BY_LEVELS = 0.3


def count_levels(coordinate: np.ndarray, functions: np.ndarray, *, closed: bool) -> int:
    """Return the number of places on an interval or a circle at which all samples lie; 1 for none.

    Shapes: coordinate (n,), functions (n, r).
    """
    where = coordinate
    if closed:
        begin, gap = widest_gap(coordinate)
        where = (coordinate - begin - gap / 2) % (2 * np.pi)
    label = _at_gaps(where)
    if label is None:
        label = _on_comb(coordinate / (2 * np.pi) if closed else coordinate, closed=closed)
    if label is None:
        return 1
    size = np.bincount(label)
    means = np.array([np.bincount(label, column) / size for column in functions.T])
    told = (size * (means - functions.mean(axis=0)[:, None]) ** 2).sum(axis=1) / len(label)
    share = told / np.maximum(functions.var(axis=0), np.finfo(float).tiny)
    return len(size) if share.mean() > TOLD_BY_LEVELS else 1


def _at_gaps(where: np.ndarray) -> np.ndarray | None:
    """Return the level of each sample, (n,), where gaps tell them, at any places."""
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    gaps = np.diff(ordered)
    widest = np.argsort(-gaps, kind="stable")

    def labels(count: int) -> np.ndarray:
        return np.searchsorted(np.sort(widest[: count - 1]), np.arange(len(where)))

    found = split_at_gaps(gaps[widest], labels, most=MOST_LEVELS)
    if found is None:
        return None
    last = np.flatnonzero(np.diff(found))
    spread = ordered[np.r_[last, len(where) - 1]] - ordered[np.r_[0, last + 1]]
    # Samples between the places would be a curve with gaps.
    if spread.max() >= gaps[last].min() / 3:
        return None
    label = np.empty_like(found)
    label[order] = found
    return label


def _on_comb(share: np.ndarray, *, closed: bool) -> np.ndarray | None:
    """Return the level of each sample, (n,), at even places around which they spread."""
    # Levels of an interval of a curve are hardly evener than a quarter of a step.
    teeth = np.arange(LEAST_LEVELS - (not closed), MOST_LEVELS + 1, 1.0 if closed else 0.25)
    waves = np.array([np.exp(2j * np.pi * each * share).mean() for each in teeth])
    height = np.abs(waves)
    # A spread of a quarter of a step leaves .29, of a third .11. Coordinates of 80 fitted curves of
    # 500 samples and more have .15 at most, and .11 of 1,000 and more.
    if height.max() < max(0.2, 5 / np.sqrt(len(share))):
        return None
    first = int(np.flatnonzero(height > 0.8 * height.max())[0])
    near = first + int(height[first : first + 4].argmax())
    steps = teeth[near] * share - np.angle(waves[near]) / (2 * np.pi)
    label = np.round(steps).astype(int)
    if closed:
        label %= int(teeth[near])
    else:
        label -= label.min()
        # Beyond both ends lie strays.
        taken = np.flatnonzero(np.bincount(label) > len(label) / (3 * (label.max() + 1)))
        label = np.clip(label, taken[0], taken[-1]) - taken[0]
    size = np.bincount(label, minlength=int(teeth[near]) if closed else 0)
    # Clusters at some of the places are none.
    enough = len(size) >= LEAST_LEVELS and size.min() > len(label) / (3 * len(size))
    return label if enough else None
