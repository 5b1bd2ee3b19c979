"""Points along a factor: one sample of each bin, at one place on the other factors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor.runs.places import Place


@dataclass(frozen=True)
class PointSettings:
    """Settings of `steady_samples`."""

    # Places on the other factors that are tried as the common one.
    n_candidates: int = 300

    # Samples near the common place, of which the one in the middle of its bin is taken.
    n_near: int = 5


def steady_samples(
    place: Place,
    others: Sequence[Place],
    labels: np.ndarray,
    centres: np.ndarray,
    *,
    settings: PointSettings = PointSettings(),
) -> np.ndarray:
    """Return one sample of each bin, all at about one place on the other factors.

    Empty bins have none. Points are samples themselves, so none is off the data. The common place
    is the one, of some drawn at random, that is nearest to all bins.
    """
    # Every sample is in a bin here, so the labels are the bins that are not empty.
    filled = np.unique(labels)
    bins = [np.flatnonzero(labels == k) for k in filled]
    if others:
        bins = _near_common_place(others, bins, settings)
    chosen = []
    for k, rows in zip(filled, bins, strict=True):
        distance = _distance_from(centres[k], place[rows])
        chosen.append(rows[distance.argmin()])
    return np.array(chosen)


def _near_common_place(
    others: Sequence[Place], bins: Sequence[np.ndarray], settings: PointSettings
) -> list[np.ndarray]:
    """Return the rows of each bin nearest to one place on the other factors."""
    # In units of the standard deviation, so that no factor dominates the distance.
    features = np.column_stack([other.features / other.features.std() for other in others])
    trees = [KDTree(features[rows]) for rows in bins]
    # A fixed seed: the same command gives the same points.
    order = np.random.default_rng(0).permutation(len(features))
    candidates = features[order[: settings.n_candidates]]
    farthest = np.zeros(len(candidates))
    for rows, tree in zip(bins, trees, strict=True):
        # All the samples that are taken from a bin must lie near the place.
        last = min(settings.n_near, len(rows))
        distance = tree.query(candidates, [last])[0][:, 0]
        # The farthest bin decides.
        farthest = np.maximum(farthest, distance)
    common = candidates[farthest.argmin()]
    near = []
    for rows, tree in zip(bins, trees, strict=True):
        _, nearest = tree.query(common, min(settings.n_near, len(rows)))
        # For a single neighbour `query` returns a number instead of an array.
        near.append(rows[np.atleast_1d(nearest)])
    return near


def _distance_from(centre: float, place: Place) -> np.ndarray:
    """Return how far samples lie from the middle of their bin."""
    distance = np.abs(place.displayed - centre)
    if place.topology == "circle":
        # The shorter way round.
        return np.minimum(distance, 360 - distance)
    return distance
