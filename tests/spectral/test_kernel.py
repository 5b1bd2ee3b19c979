import numpy as np
import pytest

from manifactor import datasets
from manifactor.spectral.kernel import (
    affinity,
    choose_bandwidth,
    dense_affinity,
    dimension_from_slope,
    local_scale,
)
from manifactor.spectral.neighbors import neighbor_graph


@pytest.mark.parametrize(
    ("shape", "dimension"),
    [
        ("equal_torus", 2),
        ("sphere", 2),
        ("sphere3", 3),
        ("rectangle", 2),
        ("sphere_sphere", 4),
        ("equal_torus3", 3),
    ],
)
def test_the_dimension_is_read_off_the_slope(shape, dimension):
    X, _ = datasets.sample(shape, 2000, random_state=0)
    assert choose_bandwidth(neighbor_graph(X, 64).distances).dimension == pytest.approx(
        dimension, abs=0.3
    )


def test_without_a_cut_the_dimension_is_twice_the_slope():
    assert dimension_from_slope(1.0, 1e9) == pytest.approx(2.0, rel=0.02)


def test_bandwidth_scales_with_the_square_of_the_unit(rectangle):
    X, _ = rectangle
    one, other = (
        choose_bandwidth(neighbor_graph(scale * X, 32).distances)
        for scale in (1.0, 1e6)
    )
    assert other.value == pytest.approx(1e12 * one.value, rel=1e-9)
    assert other.dimension == pytest.approx(one.dimension, rel=1e-9)


def test_the_bandwidth_reaches_the_neighbours_of_sparse_samples(rng):
    X = rng.uniform(size=(2000, 2)) ** 2  # a hundred times denser in one corner
    distances = neighbor_graph(X, 64).distances
    assert (
        np.mean(local_scale(distances) ** 2 <= choose_bandwidth(distances).value)
        >= 0.94
    )


def test_the_walk_is_stationary_under_its_weights(rectangle):
    X, _ = rectangle
    walk = affinity(neighbor_graph(X, 20), density_correction=0.5)
    step = walk.kernel * walk.pull[None, :]
    step = step.multiply(1 / np.asarray(step.sum(axis=1)).ravel()[:, None])
    np.testing.assert_allclose(walk.degree @ step, walk.degree)


def test_density_correction_cancels_the_density(rng):
    t = rng.uniform(size=20000)
    t = t[rng.uniform(size=20000) < 0.1 + 0.4 * np.sin(np.pi * t) ** 2]
    graph = neighbor_graph(np.c_[np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)], 64)
    spread = {}
    for alpha in (0.0, 1.0):
        per_length = np.histogram(
            t, bins=20, weights=affinity(graph, density_correction=alpha).degree
        )[0]
        spread[alpha] = per_length.std() / per_length.mean()
    assert spread[1.0] < 0.15 < 0.5 < spread[0.0]


def test_a_graph_of_all_neighbours_is_the_dense_kernel(rng):
    X = rng.normal(size=(50, 2))
    graph = neighbor_graph(X, 49)
    sparse, dense = (
        affinity(graph, bandwidth=0.7),
        dense_affinity(X, graph, bandwidth=0.7),
    )
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
    spread = [
        np.ptp(np.log(affinity(graph, bandwidth=b).kernel.sum(axis=1)))
        for b in ("auto", "local")
    ]
    assert spread[1] < 0.5 * spread[0]
