from itertools import pairwise

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from manifactor.spectral.neighbors import DisconnectedGraphWarning, neighbor_graph


def test_components_are_counted_and_joined_by_the_shortest_edges(rng):
    clouds = [
        rng.uniform(size=(size, 2)) + np.array([shift, 0])
        for size, shift in ((30, 0), (80, 3), (50, 10))
    ]
    points = np.vstack(clouds)
    with pytest.warns(
        DisconnectedGraphWarning, match=r"3 components of 80, 50, 30 samples.*components_ == 0"
    ):
        graph = neighbor_graph(points, 5)
    assert np.bincount(graph.components).tolist() == [80, 50, 30]
    lengths = np.sort(
        np.linalg.norm(points[graph.bridges[:, 0]] - points[graph.bridges[:, 1]], axis=1)
    )
    between = [np.linalg.norm(a[:, None] - b, axis=2).min() for a, b in pairwise(clouds)]
    np.testing.assert_allclose(lengths, np.sort(between))


def test_a_precomputed_graph_in_pieces_is_refused(rng):
    points = np.r_[rng.uniform(size=(20, 2)), rng.uniform(size=(30, 2)) + 9]
    with pytest.raises(
        ValueError, match="must be connected; the neighbour graph has 2 components of 30, 20"
    ):
        neighbor_graph(kneighbors_graph(points, 4, mode="distance"), 4, method="precomputed")
