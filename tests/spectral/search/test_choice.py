import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.search.choice import NeighborSettings, choose_search, make_search

FEW = NeighborSettings(approximate_above=200)


@pytest.mark.parametrize(("columns", "method"), [(3, "kd_tree"), (30, "brute")])
def test_the_search_follows_the_number_of_columns(rng, columns, method):
    graph = neighbor_graph(rng.normal(size=(50, columns)), 5)
    assert graph.method.value == method
    assert graph.method.automatic
    assert graph.method.why.startswith("exact; ")


def test_many_samples_in_many_dimensions_are_sought_by_faiss(rng):
    pytest.importorskip("faiss")
    tree = neighbor_graph(rng.normal(size=(300, 3)), 10, settings=FEW)
    assert tree.method.value == "kd_tree"
    graph = neighbor_graph(rng.normal(size=(300, 6)), 10, settings=FEW)
    assert graph.method.value == "faiss"
    assert "more than 200 samples" in graph.method.why
    assert graph.recall >= 0.99


def test_without_faiss_many_samples_are_sought_exactly_and_the_extra_is_named(
    rng, monkeypatch, caplog
):
    monkeypatch.setattr("manifactor.spectral.search.choice.find_spec", lambda name: None)
    graph = neighbor_graph(rng.normal(size=(300, 6)), 10, settings=FEW)
    assert (graph.method.value, graph.recall) == ("kd_tree", 1.0)
    assert "faiss is not installed" in graph.method.why
    assert "pip install 'manifactor[ann]'" in caplog.text


def test_on_a_device_the_search_runs_there():
    assert choose_search(1000, 3, device="cuda").value == "cells"
    assert choose_search(1000, 3, method="brute", device="cuda").value == "brute"


def test_what_the_caller_decided_is_no_automatic_choice(rng):
    points = rng.normal(size=(60, 3))
    own = neighbor_graph(points, 3, method=KNeighborsTransformer(n_neighbors=10))
    given = neighbor_graph(kneighbors_graph(points, 10, mode="distance"), 3, method="precomputed")
    named = neighbor_graph(points, 3, method="brute")
    choices = [graph.method for graph in (own, given, named)]
    assert [choice.value for choice in choices] == ["custom", "precomputed", "brute"]
    assert not any(choice.automatic for choice in choices)


def test_a_search_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"`neighbors` must be one of 'auto'.*'ball'"):
        choose_search(100, 3, method="ball")


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
    new = search.transform(X[:9] + 0.01)
    assert new.shape == (9, 300)
    assert new.nnz == 63
