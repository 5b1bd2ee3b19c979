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

    places: Sequence[Place]  # on all factors
    factors: Sequence[int]  # those on which samples are searched
    units: Sequence[float]  # what the features of each factor are divided by
    rows: Sequence[np.ndarray]  # the samples of each cell
    trees: Sequence[cKDTree]  # of their features

    def near(
        self, at: Sequence[Sequence[float]], count: int
    ) -> tuple[np.ndarray, np.ndarray, dict[int, float]]:
        """Return about `count` samples near a place, the nearest first, and their weights.

        Then, by factor that is searched, how far they reach. Each cell gives as many samples as any
        other, at least one, and has a weight in proportion to its size.
        """
        features = [
            _single(self.places[f], at[f]).features[0] / self.units[f] for f in self.factors
        ]
        point = np.concatenate(features)
        each = ceil_div(count, len(self.trees))
        total = sum(map(len, self.rows))
        rows, weights, distances = [], [], []
        for tree, own in zip(self.trees, self.rows, strict=True):
            # As a list: for a single rank `query` drops the axis.
            ranks = np.arange(1, min(each, len(own)) + 1)
            distance, found = tree.query(point, k=ranks)
            rows.append(own[found])
            distances.append(distance)
            weights.append(np.full(len(found), len(own) / (total * len(found))))
        # The page shows the first of them as the nearest samples.
        order = np.argsort(np.concatenate(distances), kind="stable")
        nearest = np.concatenate(rows)[order]
        # Matched samples are spread over the other factors: no reach to tell.
        reached = {f: reach(self.places[f], at[f], nearest) for f in self.factors}
        return nearest, np.concatenate(weights)[order], reached


def strata(places: Sequence[Place], factor: int | None, *, count: int) -> Strata:
    """Return samples by their place on one factor, in cells of the others.

    The nearest of every cell together are near on the factor and spread over the others as all
    samples are. What changes along the factor is then the factor's own, even where the factors
    depend on each other. Without a factor, samples are searched by their places on all at once, and
    nothing is left to match.
    """
    numbers = range(len(places))
    factors = numbers if factor is None else [factor]
    others = [places[f] for f in numbers if f not in factors]
    cell = joint_cells(others, smallest=count, n_samples=len(places[0]))
    order = np.argsort(cell, kind="stable")
    next_cell = np.flatnonzero(np.diff(cell[order])) + 1
    rows = np.split(order, next_cell)
    features = [place.features for place in places]
    # One unit for all columns of a factor, so that its shape is kept. A constant coordinate has no
    # spread to divide by.
    units = [each.std(axis=0).max() or 1.0 for each in features]
    scaled = np.hstack([features[f] / units[f] for f in factors])
    # A balanced tree takes longer to build than all searches together.
    trees = [cKDTree(scaled[own], balanced_tree=False) for own in rows]
    return Strata(places, factors, units, rows, trees)


def reach(place: Place, at: Sequence[float], rows: np.ndarray) -> float:
    """Return the displayed distance from a place within which nine in ten samples lie."""
    difference = place[rows].apart(_single(place, at).displayed)
    if difference.ndim > 1:
        difference = np.linalg.norm(difference, axis=1)
    return float(np.quantile(difference, 0.9))


def _single(place: Place, at: Sequence[float]) -> Place:
    """Return one place of the same kind, from its displayed coordinate."""
    shape = (1, *place.coordinate.shape[1:])
    values = np.reshape(np.asarray(at, dtype=float), shape)
    return Place.from_displayed(values, place.topology)
