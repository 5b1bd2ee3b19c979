import numpy as np

from manifactor.spectral.kernel import KernelSettings, affinity, dense_affinity
from manifactor.spectral.neighbors import neighbor_graph


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
    spread = [
        np.ptp(np.log(affinity(graph, bandwidth=b).kernel.sum(axis=1))) for b in ("auto", "local")
    ]
    assert spread[1] < 0.5 * spread[0]


def test_no_link_between_neighbours_weighs_nothing(rectangle):
    X, _ = rectangle
    settings = KernelSettings(least_weight=1e-5)
    walk = affinity(neighbor_graph(X, 20), bandwidth=1e-6, settings=settings)
    assert walk.kernel.data.min() == 1e-5


def test_a_part_of_a_kernel_is_the_kernel_of_the_part(rectangle):
    X, _ = rectangle
    walk = affinity(neighbor_graph(X, 20))
    part = np.arange(0, len(X), 2)
    half = walk.restricted(part)
    expected = walk.kernel.toarray()[np.ix_(part, part)]
    np.testing.assert_array_equal(half.kernel.toarray(), expected)
    np.testing.assert_allclose(half.degree, half.pull * (expected @ half.pull))
