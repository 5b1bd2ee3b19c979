"""The neighbour graph: its search, copies, components, and samples left out."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor.operators import neighbors
from manifactor.operators.neighbors import (
    DisconnectedGraphWarning,
    choose_search,
    make_search,
    nearest_point,
    neighbor_graph,
)


@pytest.fixture
def points(rng):
    return rng.normal(size=(300, 3))


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
        assert np.isnan(graph.recall)


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


def test_strays_that_are_neighbours_of_each_other_only_can_be_left_out(points):
    strays = 1000 + np.vander(np.arange(6), 3)
    graph = neighbor_graph(np.r_[points, strays], 5)
    assert graph.warned
    left = graph.without(np.arange(len(points) + 6) >= len(points), np.r_[points, strays])
    assert not left.warned
    assert abs(left.distances - neighbor_graph(points, 5).distances).max() < 1e-11


def test_components_are_counted_and_joined_by_the_shortest_edges(rng):
    sizes = ((30, 0), (80, 3), (50, 10))
    clouds = [rng.uniform(size=(size, 2)) + np.array([shift, 0]) for size, shift in sizes]
    points = np.vstack(clouds)
    graph = neighbor_graph(points, 5)
    (warned,) = graph.warned
    assert warned.category is DisconnectedGraphWarning
    assert "3 components of 80, 50, 30 samples" in warned.message
    assert np.bincount(graph.components).tolist() == [80, 50, 30]
    lengths = np.linalg.norm(np.diff(points[graph.bridges], axis=1)[:, 0], axis=1)
    between = [np.linalg.norm(a[:, None] - b, axis=2).min() for a, b in pairwise(clouds)]
    np.testing.assert_allclose(np.sort(lengths), np.sort(between))


def test_a_precomputed_graph_in_pieces_is_refused(rng):
    points = np.r_[rng.uniform(size=(20, 2)), rng.uniform(size=(30, 2)) + 9]
    with pytest.raises(ValueError, match="must be connected"):
        neighbor_graph(kneighbors_graph(points, 4, mode="distance"), 4, method="precomputed")


@pytest.mark.parametrize("columns", [3, 20])
def test_copies_are_merged_and_counted(rng, columns):
    points = rng.normal(size=(60, columns))
    graph = neighbor_graph(np.r_[points, np.repeat(points[:2], 40, axis=0)], 10)
    assert len(graph.distinct) == 60
    assert sorted(graph.multiplicity)[-2:] == [41, 41]
    assert abs(graph.distances - neighbor_graph(points, 10).distances).max() < 1e-11


def test_a_search_that_returns_another_shape_is_refused(points):
    class Broken:
        def fit(self, X):
            return self

        def transform(self, X):
            return sp.csr_array((3, 3))

    with pytest.raises(ValueError, match="`neighbors` must give distances of shape"):
        neighbor_graph(points, 5, method=Broken())


@pytest.mark.parametrize("name", ["kd_tree", "brute", "faiss"])
def test_every_search_finds_the_same_neighbours_behind_one_interface(rng, name):
    if name == "faiss":
        pytest.importorskip("faiss")
    X = rng.normal(size=(300, 4))
    search = make_search(name, 6)
    found = search.fit_transform(X).toarray()
    exact = KNeighborsTransformer(n_neighbors=6).fit(X).transform(X).toarray()
    np.testing.assert_allclose(found, exact, atol=1e-7)
    assert search.recall_ == 1
    np.testing.assert_array_equal(search.sample_order(X), np.arange(300))
    new = X[:9] + 0.01
    exact = KNeighborsTransformer(n_neighbors=6).fit(X).transform(new).toarray()
    np.testing.assert_allclose(search.transform(new).toarray(), exact, atol=1e-7)


@pytest.mark.parametrize("name", ["kd_tree", "brute", "faiss"])
def test_copies_far_from_the_origin_are_exactly_zero_apart(rng, name):
    if name == "faiss":
        pytest.importorskip("faiss")
    X = 1e6 + rng.normal(size=(50, 12))
    distances = make_search(name, 3).fit_transform(np.r_[X, X])
    ordered = np.sort(distances.data.reshape(100, 4))
    assert (ordered[:, :2] == 0).all()
    assert (ordered[:, 2:] > 0).all()


@pytest.mark.parametrize("n_columns", [3, 12])
def test_the_nearest_point_is_that_of_all_pairs_far_from_the_origin_too(rng, n_columns):
    points, new = (1e4 + rng.normal(size=(n, n_columns)) for n in (200, 50))
    distance, index = nearest_point(points)(new)
    gaps = np.linalg.norm(new[:, None] - points, axis=2)
    np.testing.assert_array_equal(index, gaps.argmin(axis=1))
    np.testing.assert_allclose(distance, gaps.min(axis=1))


def test_many_samples_in_many_dimensions_are_sought_by_faiss(monkeypatch):
    monkeypatch.setattr(neighbors, "find_spec", lambda name: name)
    assert choose_search(60_000, 3).value == "kd_tree"
    choice = choose_search(60_000, 6)
    assert choice.value == "faiss"
    assert "more than 50,000 samples" in choice.why


def test_without_faiss_many_samples_are_sought_exactly_and_the_extra_is_named(monkeypatch, caplog):
    monkeypatch.setattr(neighbors, "find_spec", lambda name: None)
    choice = choose_search(60_000, 6)
    assert choice.value == "kd_tree"
    assert "faiss is not installed" in choice.why
    assert "pip install 'manifactor[ann]'" in caplog.text


def test_the_search_follows_the_columns_the_device_and_the_caller():
    own = KNeighborsTransformer(n_neighbors=10)
    assert choose_search(50, 3).value == "kd_tree"
    assert choose_search(50, 30).value == "brute"
    assert choose_search(50, 3, device="cuda").value == "cells"
    for method, name in ((own, "custom"), ("precomputed", "precomputed"), ("brute", "brute")):
        choice = choose_search(50, 3, method=method, device="cuda")
        assert choice.value == name
        assert not choice.automatic


def test_the_order_of_a_tree_s_leaves_changes_nothing_but_the_order(points, monkeypatch):
    given = neighbor_graph(points, 10)
    monkeypatch.setattr("manifactor.operators.engines.searches.ORDERED_ABOVE", 299)
    ordered = neighbor_graph(points, 10)
    assert (given.distinct == np.arange(300)).all()
    assert (ordered.distinct != np.arange(300)).any()
    assert sorted(ordered.distinct) == list(range(300))
    back = ordered.distances[ordered.inverse][:, ordered.inverse]
    assert (back != given.distances).nnz == 0
    new = points[:5] + 0.01
    found = ordered.distances_to(new)[:, ordered.inverse]
    np.testing.assert_array_equal(found.toarray(), given.distances_to(new).toarray())


def test_new_distances_to_copies_count_as_distances_to_the_sample(points):
    given = kneighbors_graph(np.r_[points, points[:5]], 12, mode="distance")
    graph = neighbor_graph(given, 12, method="precomputed")
    row = sp.csr_array(([0.5, 0.3], ([0, 0], [2, 302])), shape=(1, 305))
    found = graph.distances_to(row)
    assert found.shape == (1, 300)
    assert (found.indices.tolist(), found.data.tolist()) == ([graph.inverse[2]], [0.3])
