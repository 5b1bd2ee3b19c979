"""Bandwidth, kernel and random walk, and the samples that the walk hardly reaches."""

import numpy as np
import pytest
import scipy.sparse as sp

from manifactor import datasets
from manifactor.operators import laplacian
from manifactor.operators.kernel import (
    affinity,
    choose_bandwidth,
    dense_affinity,
    kernel_slopes,
    local_scale,
    rescale,
)
from manifactor.operators.laplacian import outlier_choice, weak_links, without_outliers
from manifactor.operators.neighbors import neighbor_graph


@pytest.mark.parametrize(
    ("shape", "dimension"), [("equal_torus", 2), ("sphere3", 3), ("sphere_sphere", 4)]
)
def test_the_dimension_is_read_off_the_slope(shape, dimension):
    X, _ = datasets.sample(shape, 2000, random_state=0)
    found = choose_bandwidth(neighbor_graph(X, 64).distances).dimension
    assert found == pytest.approx(dimension, abs=0.3)


def test_bins_of_distances_give_the_slope_of_the_distances(rng):
    squared = rng.uniform(size=5000)
    candidates = np.array([0.05, 0.3, 2.0])
    u = squared / candidates[:, None]
    exact = (u * np.exp(-u)).sum(axis=1) / (100 + np.exp(-u).sum(axis=1))
    np.testing.assert_allclose(kernel_slopes(squared, candidates, 100), exact, rtol=1e-3)


def test_the_bandwidth_reaches_the_neighbours_of_sparse_samples(rng):
    X = rng.uniform(size=(2000, 2)) ** 2  # a hundred times denser in one corner
    distances = neighbor_graph(X, 64).distances
    found = choose_bandwidth(distances)
    assert np.mean(local_scale(distances) ** 2 <= found.value) >= 0.94
    assert found.value > found.candidates[np.argmax(found.slopes)]
    assert found.choice.why.startswith("wider than the steepest point")


def test_the_bandwidth_of_even_samples_is_the_steepest_point_of_the_curve():
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    X = np.c_[np.cos(angle), np.sin(angle)]
    found = choose_bandwidth(neighbor_graph(X, 64).distances)
    assert found.value == found.candidates[np.argmax(found.slopes)]
    assert found.choice.why.startswith("the steepest point of the curve")


def test_a_sample_s_scale_is_the_distance_to_one_of_its_neighbours():
    rows = [[9, 3, 1, 2, 7, 8, 6, 5, 4], [0, 0, 5, 0, 0, 0, 2, 0, 0]]
    distances = sp.csr_array(np.array(rows, dtype=float))
    assert local_scale(distances).tolist() == [8, 5]
    doubled = rescale(distances, np.full(2, 2.0), np.full(9, 8.0))
    np.testing.assert_allclose(doubled.data, 2 * distances.data)
    with pytest.raises(ValueError, match=r"must have a neighbour .* 1 have none"):
        local_scale(sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]])))


def test_the_walk_is_stationary_under_its_weights(rectangle):
    X, _ = rectangle
    walk = affinity(neighbor_graph(X, 20), density_correction=0.5)
    step = walk.kernel * walk.pull[None, :]
    step = step.multiply(1 / np.asarray(step.sum(axis=1)).ravel()[:, None])
    np.testing.assert_allclose(walk.degree @ step, walk.degree)


def test_density_correction_cancels_the_density(rng):
    t = rng.uniform(size=8000)
    t = t[rng.uniform(size=8000) < 0.1 + 0.4 * np.sin(np.pi * t) ** 2]
    graph = neighbor_graph(np.c_[np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)], 64)
    spread = {}
    for alpha in (0.0, 1.0):
        degree = affinity(graph, density_correction=alpha).degree
        per_length = np.histogram(t, bins=20, weights=degree)[0]
        spread[alpha] = per_length.std() / per_length.mean()
    assert spread[1.0] < 0.15 < 0.5 < spread[0.0]


def test_a_graph_of_all_neighbours_is_the_dense_kernel(rng):
    X = rng.normal(size=(50, 2))
    graph = neighbor_graph(X, 49)
    sparse, dense = (affinity(graph, bandwidth=0.7), dense_affinity(X, graph, bandwidth=0.7))
    np.testing.assert_allclose(sparse.kernel.toarray(), dense.kernel, atol=1e-7)
    np.testing.assert_allclose(sparse.degree, dense.degree)


def test_copies_weigh_as_if_each_were_there(rng):
    X = rng.normal(size=(40, 2))
    doubled = np.r_[X, X[:7]]
    merged = dense_affinity(doubled, neighbor_graph(doubled, 10), bandwidth=1.0)
    kernel = np.exp(-((doubled[:, None] - doubled) ** 2).sum(axis=2))
    density = kernel.sum(axis=1)
    degree = (kernel / np.outer(density, density)).sum(axis=1)
    np.testing.assert_allclose(merged.degree[:7], degree[:7] + degree[40:])
    np.testing.assert_allclose(merged.degree[7:], degree[7:40])


def test_local_bandwidths_even_out_the_neighbourhoods(rng):
    X = rng.uniform(size=(2000, 2)) ** 3
    graph = neighbor_graph(X, 32)
    walks = (affinity(graph, bandwidth=each) for each in ("auto", "local"))
    whole, local = (np.ptp(np.log(walk.kernel.sum(axis=1))) for walk in walks)
    assert local < 0.5 * whole


def test_a_part_of_a_kernel_is_the_kernel_of_the_part(rectangle):
    X, _ = rectangle
    walk = affinity(neighbor_graph(X, 20))
    part = np.arange(0, len(X), 2)
    half = walk.restricted(part)
    expected = walk.kernel.toarray()[np.ix_(part, part)]
    np.testing.assert_array_equal(half.kernel.toarray(), expected)
    np.testing.assert_allclose(half.degree, half.pull * (expected @ half.pull))


FAR = np.array([[40.0, 0, 0, 0], [0, 40.0, 0, 0]])


@pytest.fixture(scope="module")
def samples():
    X, _ = datasets.sample("torus", 800, random_state=0)
    return np.vstack([X, FAR])


@pytest.fixture(scope="module")
def graph(samples):
    return neighbor_graph(samples, 30)


def test_outliers_leave_graph_and_walk(samples, graph):
    left, walk = without_outliers(samples, graph, affinity(graph))
    assert np.flatnonzero(left.outliers).tolist() == [800, 801]
    assert len(walk.degree) == 800
    choice = outlier_choice(left)
    assert (outlier_choice(graph).value, choice.value) == (0, 2)
    assert "weigh less than 1.5" in choice.why


def test_the_walk_is_made_anew_as_it_was_made_before(samples, graph):
    def walk_of(graph):
        return affinity(graph, bandwidth=0.3, density_correction=0.5)

    left, walk = without_outliers(samples, graph, walk_of(graph), walk_of=walk_of)
    np.testing.assert_array_equal(walk.degree, walk_of(left).degree)
    assert walk.bandwidth.value == 0.3


def test_weak_links_are_warned_of(graph):
    (warned,) = weak_links(affinity(graph, bandwidth=0.3))
    assert "3 components, the largest of 800" in warned.message
    assert not weak_links(affinity(graph, bandwidth=1e4))


def test_many_samples_far_off_are_a_part_of_the_data(samples, graph, monkeypatch):
    walk = affinity(graph)
    monkeypatch.setattr(laplacian, "MOST_OUTLIERS", 1 / 802)
    assert without_outliers(samples, graph, walk) == (graph, walk)
