"""Samples near a place, on one factor with the others matched, or on all factors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from manifactor._support.values import ceil_div
from manifactor.cryoem.matching import joint_cells
from manifactor.runs.places import Place


@dataclass(frozen=True)
class Strata:
    """Samples in cells, each searched by itself, so that every cell is represented."""

    trees: tuple[cKDTree, ...]  # of the features of each cell's samples
    rows: tuple[np.ndarray, ...]  # these samples
    unit: np.ndarray  # (d,): what the features were divided by

    def nearest(self, point: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return about `count` samples near a point, the nearest first, and weights.

        Each cell gives as many samples as any other, at least one, and has a weight in proportion
        to its size.
        """
        point = point / self.unit
        each = ceil_div(count, len(self.trees))
        total = sum(map(len, self.rows))
        rows, weights, distances = [], [], []
        for tree, own in zip(self.trees, self.rows, strict=True):
            # As a list: for a single rank `query` drops the axis.
            ranks = np.arange(1, min(each, len(own)) + 1)
            distance, found = tree.query(point, k=ranks)
            rows.append(own[found])
            distances.append(distance)
            weight = len(own) / (total * len(found))
            weights.append(np.full(len(found), weight))
        # The page shows the first of them as the nearest samples.
        order = np.argsort(np.concatenate(distances), kind="stable")
        return np.concatenate(rows)[order], np.concatenate(weights)[order]


def strata(features: np.ndarray, unit: np.ndarray, cell: np.ndarray) -> Strata:
    """Return strata of samples by features, (n, d), units, (d,), and cells, (n,)."""
    order = np.argsort(cell, kind="stable")
    next_cell = np.flatnonzero(np.diff(cell[order])) + 1
    rows = tuple(np.split(order, next_cell))
    scaled = [features[own] / unit for own in rows]
    # A balanced tree takes longer to build than all searches together.
    trees = [cKDTree(each, balanced_tree=False) for each in scaled]
    return Strata(tuple(trees), rows, unit)


def matched(places: Sequence[Place], factor: int, *, count: int) -> Strata:
    """Return samples by their place on one factor, in cells of the others.

    The nearest of every cell together are near on the factor and spread over the others as all
    samples are. What changes along the factor is then the factor's own, even where the factors
    depend on each other.
    """
    others = [place for i, place in enumerate(places) if i != factor]
    n_samples = len(places[factor])
    cell = joint_cells(others, smallest=count, n_samples=n_samples)
    features = places[factor].features
    # One factor has one unit.
    return strata(features, np.ones(features.shape[1]), cell)


def held(places: Sequence[Place]) -> Strata:
    """Return samples by their places on all factors at once.

    Each factor is in units of its standard deviation.
    """
    features = [place.features for place in places]
    units = [_unit(each) for each in features]
    # All factors are held: nothing is left to match.
    one_cell = np.zeros(len(features[0]), dtype=int)
    return strata(np.hstack(features), np.concatenate(units), one_cell)


def _unit(features: np.ndarray) -> np.ndarray:
    """Return one unit for all columns of a factor, (d,), so that its shape is kept."""
    spread = features.std(axis=0).max()
    # A constant coordinate has no spread to divide by.
    return np.full(features.shape[1], spread or 1.0)


def near(
    strata: Strata,
    places: Sequence[Place],
    at: Sequence[Sequence[float]],
    *,
    factor: int | None,
    count: int,
) -> tuple[np.ndarray, np.ndarray, dict[int, float]]:
    """Return about `count` samples near a place, the nearest first, and their weights.

    Then, by factor, how far they reach. The strata are `matched` on a factor, or `held` (None).
    """
    features = [_single(*pair).features[0] for pair in zip(places, at, strict=True)]
    point = np.concatenate(features) if factor is None else features[factor]
    rows, weights = strata.nearest(point, count)
    # Matched samples are spread over the other factors: no reach to tell.
    measured = range(len(at)) if factor is None else [factor]
    return rows, weights, {f: reach(places[f], at[f], rows) for f in measured}


def reach(place: Place, at: Sequence[float], rows: np.ndarray) -> float:
    """Return the distance from a place within which nine in ten samples lie.

    In the unit that is displayed: degrees on a circle.
    """
    point = _single(place, at)
    difference = np.abs(place.displayed[rows] - point.displayed)
    if place.topology == "circle":
        # The shorter way round.
        difference = np.minimum(difference % 360, -difference % 360)
    if difference.ndim > 1:
        difference = np.linalg.norm(difference, axis=1)
    return float(np.quantile(difference, 0.9))


def _single(place: Place, at: Sequence[float]) -> Place:
    """Return one place of the same kind, from its displayed coordinate."""
    shape = (1, *place.coordinate.shape[1:])
    values = np.reshape(np.asarray(at, dtype=float), shape)
    return Place.from_displayed(values, place.topology)
