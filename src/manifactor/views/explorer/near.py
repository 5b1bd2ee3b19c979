"""Samples near a place: on one factor, evenly over the others, or on all factors at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from manifactor.runs.matching import joint_cells
from manifactor.runs.places import Place


@dataclass(frozen=True)
class Strata:
    """Samples in cells, each searched by itself, so that every cell has its say.

    Attributes
    ----------
    trees : tuple of cKDTree
        Over the features of each cell's samples.
    rows : tuple of ndarray of int
        These samples.
    unit : ndarray of shape (d,)
        What the features were divided by.
    """

    trees: tuple[cKDTree, ...]
    rows: tuple[np.ndarray, ...]
    unit: np.ndarray

    def nearest(self, point: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """About `count` samples near a point, the nearest first, and weights with which a cell counts by its size.

        At least one sample of each cell.
        """
        point = point / self.unit
        each = -(-count // len(self.trees))
        total = sum(map(len, self.rows))
        rows, weights, distances = [], [], []
        for tree, own in zip(self.trees, self.rows, strict=True):
            distance, found = tree.query(point, k=np.arange(1, min(each, len(own)) + 1))
            rows.append(own[found])
            distances.append(distance)
            weights.append(np.full(len(found), len(own) / (total * len(found))))
        order = np.argsort(np.concatenate(distances), kind="stable")
        return np.concatenate(rows)[order], np.concatenate(weights)[order]


def strata(features: np.ndarray, unit: np.ndarray, cell: np.ndarray) -> Strata:
    """Strata of samples with these features, (n, d), in these units, (d,), and in these cells, (n,)."""
    order = np.argsort(cell, kind="stable")
    rows = tuple(np.split(order, np.flatnonzero(np.diff(cell[order])) + 1))
    return Strata(
        tuple(cKDTree(features[own] / unit, balanced_tree=False) for own in rows),
        rows,
        unit,
    )


def matched(places: Sequence[Place], factor: int, *, count: int) -> Strata:
    """Samples by their place on one factor, from 0, in cells of the others.

    The nearest of every cell together are near on the factor and spread over the others as all samples are: what
    changes along the factor is the factor's own, even where the factors depend on each other.

    Parameters
    ----------
    count : int
        Samples that will be asked for; there are cells for about eight in each.
    """
    others = [place for i, place in enumerate(places) if i != factor]
    n = len(places[factor].coordinate)
    cell = joint_cells(others, smallest=count, cells=None, n_samples=n)
    features = places[factor].features
    return strata(features, np.ones(features.shape[1]), cell)


def held(places: Sequence[Place]) -> Strata:
    """Samples by their places on all factors at once, each in units of its standard deviation."""
    features = [place.features for place in places]
    units = [np.full(each.shape[1], each.std(axis=0).max() or 1.0) for each in features]
    return strata(
        np.hstack(features),
        np.concatenate(units),
        np.zeros(len(features[0]), dtype=int),
    )


def point_of(
    places: Sequence[Place], at: Sequence[Sequence[float]], factor: int | None = None
) -> np.ndarray:
    """The point at which to ask `matched` strata of a factor, or `held` ones if none is given.

    Parameters
    ----------
    at : sequence of sequence of float
        A coordinate on every factor: one number on an interval or a circle, d on another shape.
    """
    features = [
        _single(place, where).features[0]
        for place, where in zip(places, at, strict=True)
    ]
    return np.concatenate(features) if factor is None else features[factor]


def reach(place: Place, at: Sequence[float], rows: np.ndarray) -> float:
    """The distance within which nine tenths of samples lie from a coordinate, in its units."""
    difference = np.abs(place.coordinate[rows] - _single(place, at).coordinate)
    if place.topology == "circle":
        difference = np.minimum(difference % 360, -difference % 360)
    if difference.ndim > 1:
        difference = np.linalg.norm(difference, axis=1)
    return float(np.quantile(difference, 0.9))


def _single(place: Place, at: Sequence[float]) -> Place:
    return Place(
        np.reshape(np.asarray(at, dtype=float), (1, *place.coordinate.shape[1:])),
        place.topology,
    )
