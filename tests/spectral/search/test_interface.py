import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor.spectral.neighbors import neighbor_graph


@pytest.fixture
def points(rng):
    return rng.normal(size=(300, 3))


def test_distances_of_a_search_with_its_own_metric_are_kept(rng):
    points = 1e7 * rng.uniform(1, 2, size=(100, 3))
    search = KNeighborsTransformer(n_neighbors=10, metric="cosine")
    assert neighbor_graph(points, 10, method=search).distances.max() < 2


def test_a_search_that_returns_another_shape_is_refused(points):
    class Broken:
        def fit(self, X):
            return self

        def transform(self, X):
            return sp.csr_array((3, 3))

    with pytest.raises(ValueError, match="`neighbors` must give distances of shape"):
        neighbor_graph(points, 5, method=Broken())


def test_nobody_knows_the_recall_of_the_caller_s_own_search(points):
    graph = neighbor_graph(points, 3, method=KNeighborsTransformer(n_neighbors=10))
    assert np.isnan(graph.recall)
    assert np.isnan(graph.without(np.arange(len(points)) == 5, points).recall)


def test_connectivities_are_not_taken_for_distances(points):
    ones = kneighbors_graph(points, 5)
    with pytest.raises(ValueError, match=r"must hold distances; got ones only.*mode="):
        neighbor_graph(ones, 5, method="precomputed")
    search = KNeighborsTransformer(n_neighbors=5, mode="connectivity")
    with pytest.raises(ValueError, match="must hold distances; got ones only"):
        neighbor_graph(points, 5, method=search)
