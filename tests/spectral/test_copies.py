import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from manifactor.spectral.neighbors import neighbor_graph, shortest_between


@pytest.fixture
def points(rng):
    return rng.normal(size=(300, 3))


@pytest.mark.parametrize("columns", [3, 20])
def test_copies_are_merged_and_counted(rng, columns):
    points = rng.normal(size=(60, columns))
    graph = neighbor_graph(np.r_[points, np.repeat(points[:2], 40, axis=0)], 10)
    assert len(graph.distinct) == 60
    assert sorted(graph.multiplicity)[-2:] == [41, 41]
    assert abs(graph.distances - neighbor_graph(points, 10).distances).max() < 1e-11


def test_copies_in_precomputed_distances_are_merged(points):
    doubled = np.r_[points, points[:5]]
    graph = neighbor_graph(kneighbors_graph(doubled, 12, mode="distance"), 12, method="precomputed")
    assert len(graph.distinct) == 300
    plain = neighbor_graph(points, 11).distances
    assert (
        abs((graph.distances > 0).astype(float) - (plain > 0).astype(float))[:5].sum()
        < 0.2 * plain[:5].nnz
    )


def test_new_distances_to_copies_count_as_distances_to_the_sample(points):
    given = kneighbors_graph(np.r_[points, points[:5]], 12, mode="distance")
    graph = neighbor_graph(given, 12, method="precomputed")
    row = sp.csr_array(([0.5, 0.3], ([0, 0], [2, 302])), shape=(1, 305))
    found = graph.distances_to(row)
    assert found.shape == (1, 300)
    assert (found.indices.tolist(), found.data.tolist()) == ([graph.inverse[2]], [0.3])


def test_equal_samples_are_refused():
    with pytest.raises(
        ValueError, match="at least 3 samples must differ; got 20 samples of which 1 are distinct"
    ):
        neighbor_graph(np.ones((20, 2)), 5)


def test_the_shortest_distance_between_groups_is_kept():
    distances = sp.csr_array([[0.0, 3.0, 2.0], [3.0, 0.0, 5.0], [2.0, 5.0, 0.0]])
    group = np.array([0, 1, 1])
    expected = [[0, 2], [2, 5]]
    np.testing.assert_array_equal(shortest_between(distances, group, group).toarray(), expected)
