"""Connected components of a neighbour graph, and the edges that join them."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from manifactor._support.threads import cores
from manifactor._support.warning import warn_caller
from manifactor.spectral.resident import ResidentMatrix


class DisconnectedGraphWarning(UserWarning):
    """The neighbour graph had several components, which were joined."""


@dataclass(frozen=True)
class Components:
    """Components of a neighbour graph."""

    # (n_distinct,): the component of each distinct sample; 0 is the one with the most given samples
    label: np.ndarray
    bridges: np.ndarray  # (n_components - 1, 2): pairs of distinct samples that join the components


def join_components(
    distances: sp.csr_array | ResidentMatrix, samples: np.ndarray | None, inverse: np.ndarray
) -> Components:
    """Find the components and the shortest edges that join them.

    Shapes: distances (n_distinct, n_distinct), samples (n_distinct, n_features), inverse
    (n_samples,).
    """
    none = np.empty((0, 2), dtype=int)
    if isinstance(distances, ResidentMatrix):
        # Counted on the device first: the graph is copied to the host only if it is disconnected,
        # which is rare.
        if distances.components() == 1:
            return Components(np.zeros(distances.shape[0], dtype=int), none)
        distances = distances.tocsr()
    count, label = connected_components(distances, directed=False)
    size = np.bincount(label[inverse])
    label = _rank(size)[label]
    if count == 1:
        return Components(label, none)
    found = _description(np.sort(size)[::-1])
    if samples is None:
        raise ValueError(
            f"a precomputed graph must be connected; {found}. Give more neighbours to "
            "each sample, or pass the samples themselves so that the components can "
            "be joined."
        )
    warn_caller(
        f"{found}; they were joined by the shortest edges between them, so the lowest "
        "eigenfunctions tell the components apart. Raise `n_neighbors`, or work on the "
        "largest component: fit X[estimator.components_ == 0].",
        DisconnectedGraphWarning,
    )
    return Components(label, _shortest_edges(samples, label))


def _rank(size: np.ndarray) -> np.ndarray:
    """Return the place of each component, the largest first."""
    return np.argsort(np.argsort(-size, kind="stable"), kind="stable")


def _description(sizes: np.ndarray) -> str:
    """Return the number of components and the sizes of the largest."""
    shown = ", ".join(str(size) for size in sizes[:5])
    more = ", ..." if len(sizes) > 5 else ""
    return f"the neighbour graph has {len(sizes)} components of {shown}{more} samples"


def _shortest_edges(X: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the edges of the shortest tree over the components, (n_components - 1, 2).

    Boruvka's algorithm: in each round every component but the largest is joined to its nearest
    neighbour.
    """
    edges: list[tuple[int, int]] = []
    merged = label.copy()
    while merged.any():
        nearest = [_nearest_outside(X, merged == c) for c in range(1, merged.max() + 1)]
        for _, a, b in sorted(nearest):
            # Two components may choose the same edge, or edges that close a circle.
            if merged[a] != merged[b]:
                edges.append((a, b))
                merged[merged == merged[a]] = merged[b]
        merged = np.unique(merged, return_inverse=True)[1]
        # The largest becomes 0 again: it is the one whose edge would cost the most.
        merged = _rank(np.bincount(merged))[merged]
    return np.array(edges)


def _nearest_outside(X: np.ndarray, component: np.ndarray) -> tuple[float, int, int]:
    """Return the shortest edge from a component to other samples: length and ends."""
    inside, outside = np.flatnonzero(component), np.flatnonzero(~component)
    search = NearestNeighbors(n_neighbors=1, n_jobs=cores()).fit(X[outside])
    distances, neighbors = search.kneighbors(X[inside])
    best = int(np.argmin(distances))
    end = int(outside[neighbors[best, 0]])
    return float(distances[best, 0]), int(inside[best]), end
