"""Samples that the random walk hardly reaches: left out, or warned of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manifactor._support.choices import Choice
from manifactor._support.warning import warn_caller
from manifactor.spectral.components import DisconnectedGraphWarning
from manifactor.spectral.kernel import Affinity, KernelSettings, affinity
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.resident import ResidentMatrix


@dataclass(frozen=True)
class OutlierSettings:
    """Settings of `without_outliers`."""

    # Kernel weight of all neighbours, at most 1 each, below which a sample is an outlier.
    least_company: float = 1.5

    # Share of the samples that may be outliers; more are a part of the data.
    most_outliers: float = 0.05

    # Leaving some samples out may leave others alone.
    rounds: int = 3


def isolated(walk: Affinity, *, settings: OutlierSettings = OutlierSettings()) -> np.ndarray:
    """Return which samples the walk hardly leaves, (n_distinct,)."""
    weight = walk.kernel @ np.ones(len(walk.degree))
    # A sample's own weight is 1.
    return weight < 1 + settings.least_company


def without_outliers(
    X: np.ndarray,
    graph: NeighborGraph,
    walk: Affinity,
    *,
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
    settings: OutlierSettings = OutlierSettings(),
) -> tuple[NeighborGraph, Affinity]:
    """Return graph and walk without the samples that the walk hardly leaves.

    Functions would be peaks on them.

    Shapes: X (n_samples, n_features).
    """
    for _ in range(settings.rounds):
        alone = isolated(walk, settings=settings)
        if not alone.any() or alone.mean() > settings.most_outliers:
            break
        graph = graph.without(alone, X)
        walk = walk_of(graph)
    return graph, walk


def outlier_choice(
    graph: NeighborGraph, *, settings: OutlierSettings = OutlierSettings()
) -> Choice:
    """Return the number of outliers that were left out of a graph, and the rule."""
    count = int(graph.outliers.sum())
    if not count:
        return Choice(0, "no sample is isolated")
    return Choice(
        count,
        "left out: all their neighbours together weigh less than "
        f"{settings.least_company:g} in the kernel",
    )


def warn_of_weak_links(walk: Affinity, *, settings: KernelSettings = KernelSettings()) -> None:
    """Warn if samples are connected by links of negligible weight only."""
    # A full kernel has a link between any two samples.
    dense = isinstance(walk.kernel, np.ndarray)
    if dense or _entries(walk.kernel).min() > settings.least_weight:
        return
    kernel = sp.csr_array(walk.settled().kernel)
    strong = kernel > settings.least_weight
    count, label = connected_components(strong, directed=False)
    if count > 1:
        warn_caller(
            f"at this bandwidth the samples fall into {count} components, the largest "
            f"of {np.bincount(label).max()} samples, joined by links of negligible "
            "weight only: there are outliers, or the bandwidth is too small. The "
            "lowest eigenfunctions tell the components apart; remove the outliers or "
            "raise `bandwidth`.",
            DisconnectedGraphWarning,
        )


def _entries(kernel: Any) -> Any:
    return kernel.entries if isinstance(kernel, ResidentMatrix) else kernel.data
