"""Clouds of places on a factor of several dimensions, and the surfaces they show."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.arithmetic import ceil_div
from manifactor._support.threads import cores
from manifactor.factoring.factors.charts import ChartSettings
from manifactor.factoring.prediction import thinned

# Numbers of the neighbours' places in memory at a time; it steers no result.
NEIGHBORS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Cloud:
    """Places of some samples, from which a surface is read that others are pulled onto."""

    # (n_places, m): the cloud, and what is left of it after each pull but the last
    stages: tuple[np.ndarray, ...]
    dimension: int
    n_neighbors: int  # places that a local plane is laid through

    def pull(self, places: np.ndarray) -> np.ndarray:
        """Return places moved into the cloud's local planes, (n, m)."""
        for stage in self.stages:
            places = _flattened(places, stage, self.dimension, self.n_neighbors)
        return places


def make_cloud(
    places: np.ndarray, dimension: int, *, settings: ChartSettings = ChartSettings()
) -> Cloud:
    """Return the cloud of places, (n, m), thinned where there are many."""
    # Stages are kept, so that new samples are pulled exactly as those of the fit.
    stages = [places[thinned(len(places), settings.cloud_places)]]
    k = ball_size(stages[0], settings=settings)
    for _ in range(settings.pulls - 1):
        stages.append(_flattened(stages[-1], stages[-1], dimension, k))
    return Cloud(tuple(stages), dimension, k)


def _flattened(places: np.ndarray, cloud: np.ndarray, dimension: int, k: int) -> np.ndarray:
    """Places projected onto the local planes through the k nearest of the cloud."""
    tree = KDTree(cloud)
    n_blocks = max(1, ceil_div(len(places) * k, NEIGHBORS_AT_ONCE))
    flattened = []
    for block in np.array_split(places, n_blocks):
        nearest = tree.query(block, k, workers=cores())[1]
        flattened.append(_projected(block, cloud[nearest], dimension))
    return np.vstack(flattened)


def _projected(places: np.ndarray, around: np.ndarray, dimension: int) -> np.ndarray:
    """Places projected onto the main plane of the places around each."""
    centre = around.mean(axis=1)
    around = around - centre[:, None]
    plane = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -dimension:]
    inside = np.einsum("xad,xa->xd", plane, places - centre)
    return centre + np.einsum("xad,xd->xa", plane, inside)


def ball_size(cloud: np.ndarray, *, settings: ChartSettings = ChartSettings()) -> int:
    """Return the number of samples in a ball of .3 of the cloud's radius.

    The median over the cloud, within bounds.
    """
    n = len(cloud)
    radius = settings.ball_radius * np.sqrt(cloud.var(axis=0).sum())
    centres = cloud[thinned(n, settings.balls)]
    inside = KDTree(cloud).query_ball_point(centres, radius, return_length=True)
    least = min(settings.least_in_ball, n)
    most = max(min(settings.most_in_ball, n), n // settings.clouds_per_ball)
    return int(np.clip(np.median(inside), least, most))


def cloud_dimension(cloud: np.ndarray, *, settings: ChartSettings = ChartSettings()) -> int:
    """Return the number of directions in which a ball of the cloud extends.

    Those with a tenth of the variance of a ball of .3 of the cloud's radius or more.
    """
    if cloud.shape[1] == 1:
        return 1
    centres = cloud[thinned(len(cloud), settings.balls)]
    near = KDTree(cloud).query(centres, ball_size(cloud, settings=settings))[1]
    around = cloud[near] - cloud[near].mean(axis=1, keepdims=True)
    spread = np.linalg.eigvalsh(around.transpose(0, 2, 1) @ around)
    total = spread.sum(axis=1, keepdims=True)
    # A ball of copies has no extent at all.
    share = np.median(spread / np.where(total > 0, total, 1), axis=0)
    return max(1, int((share > settings.extent).sum()))
