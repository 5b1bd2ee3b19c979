import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor.spectral.neighbors import DisconnectedGraphWarning, NeighborSettings, neighbor_graph


@pytest.fixture
def points(rng):
    return rng.normal(size=(300, 3))


def test_tree_and_brute_force_find_the_same_neighbours(points):
    tree, brute = (neighbor_graph(points, 10, method=method) for method in ("kd_tree", "brute"))
    assert (tree.distances.indices == brute.distances.indices).all()
    np.testing.assert_allclose(tree.distances.data, brute.distances.data, rtol=1e-9)


def test_an_edge_joins_two_samples_of_which_one_is_among_the_nearest_of_the_other(points):
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    radius = np.sort(distance, axis=1)[:, 10]
    expected = np.where(distance <= np.maximum(radius[:, None], radius), distance, 0)
    np.testing.assert_allclose(neighbor_graph(points, 10).distances.toarray(), expected, atol=1e-12)


def test_a_transformer_and_precomputed_distances_give_the_same_graph(points):
    ours = neighbor_graph(points, 10)
    other = neighbor_graph(points, 3, method=KNeighborsTransformer(n_neighbors=10))
    given = neighbor_graph(kneighbors_graph(points, 10, mode="distance"), 3, method="precomputed")
    for graph in (other, given):
        assert abs(graph.distances - ours.distances).max() < 1e-11


def test_far_from_the_origin_neighbours_are_still_right(rng):
    points = rng.normal(size=(200, 12))
    near, far = (neighbor_graph(points + offset, 8).distances for offset in (0.0, 1e6))
    assert (near.indices == far.indices).all()


@pytest.mark.parametrize("method", ["kd_tree", "brute"])
def test_a_graph_without_some_samples_is_that_of_the_others(points, rng, method):
    isolated = np.zeros(len(points), dtype=bool)
    isolated[rng.choice(len(points), 20, replace=False)] = True
    left = neighbor_graph(points, 10, method=method).without(isolated, points)
    others = neighbor_graph(points[~isolated], 10, method=method)
    assert abs(left.distances - others.distances).max() < 1e-11
    np.testing.assert_array_equal(left.distinct, np.flatnonzero(~isolated))
    np.testing.assert_array_equal(left.outliers, isolated)
    nearest = np.linalg.norm(points[isolated][:, None] - points[~isolated], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(left.inverse[isolated], nearest)


@pytest.mark.parametrize("method", ["kd_tree", "brute"])
def test_strays_that_are_neighbours_of_each_other_only_can_be_left_out(points, method):
    strays = 1000 + np.vander(np.arange(6), 3)
    with pytest.warns(DisconnectedGraphWarning):
        graph = neighbor_graph(np.r_[points, strays], 5, method=method)
    isolated = np.arange(len(points) + 6) >= len(points)
    left = graph.without(isolated, np.r_[points, strays])
    assert abs(left.distances - neighbor_graph(points, 5, method=method).distances).max() < 1e-11


@pytest.mark.parametrize("method", ["kd_tree", "brute"])
def test_indices_of_a_graph_take_4_bytes(points, method):
    distances = neighbor_graph(points, 10, method=method).distances
    assert distances.indices.dtype == distances.indptr.dtype == np.int32


def test_the_order_of_a_tree_s_leaves_changes_nothing_but_the_order(points):
    given, ordered = (
        neighbor_graph(points, 10, settings=NeighborSettings(ordered_above=above))
        for above in (300, 299)
    )
    assert (given.distinct == np.arange(300)).all()
    assert (ordered.distinct != np.arange(300)).any()
    assert (ordered.distinct[ordered.inverse] == np.arange(300)).all()
    back = ordered.distances[ordered.inverse][:, ordered.inverse]
    assert (back != given.distances).nnz == 0
    new = points[:5] + 0.01
    found = ordered.distances_to(new)[:, ordered.inverse]
    np.testing.assert_array_equal(found.toarray(), given.distances_to(new).toarray())
