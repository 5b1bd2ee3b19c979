"""Lengths in units of local moves, and neighbours by them."""

import numpy as np
import pytest

from manifactor.operators.metric import CURVED, FLOOR, LocalMetric
from manifactor.operators.neighbors import neighbor_graph

from ..moving import jacobian, seen


@pytest.fixture(scope="module")
def roots():
    return np.random.default_rng(0).normal(size=(20, 5, 2))


def test_a_squared_length_is_that_of_the_mean_covariance_of_both_ends(roots, rng):
    metric = LocalMetric.of_roots(roots, floor=0.3)
    i, j = rng.integers(20, size=(2, 50))
    moves = rng.normal(size=(50, 5))
    covariances = roots @ roots.transpose(0, 2, 1)
    for length, a, b, move in zip(metric.squared_lengths(i, j, moves), i, j, moves, strict=True):
        least = min(metric.scales[a].min(), metric.scales[b].min())
        mean = (covariances[a] + covariances[b]) / 2 + (FLOOR * least**2 + 0.3) * np.eye(5)
        # What one end's directions do not have of a chord counts as a step to another sheet.
        inside = min(((move @ metric.axes[end]) ** 2).sum() for end in (a, b))
        across = max(move @ move - (1 + CURVED) * inside, 0) / (FLOOR * least**2 + 0.3)
        right = move @ np.linalg.solve(mean, move) + across
        assert length == pytest.approx(right, rel=1e-8)


def test_a_linear_map_of_samples_maps_their_covariances(roots, rng):
    components = np.linalg.qr(rng.normal(size=(5, 3)))[0]
    mapped = LocalMetric.of_roots(roots).mapped(components)
    found = np.einsum("npq,nq,nrq->npr", mapped.axes, mapped.scales**2, mapped.axes)
    right = components.T @ roots @ roots.transpose(0, 2, 1) @ components
    assert np.allclose(found, right)


@pytest.mark.medium
@pytest.mark.parametrize("n", [400, 1500])
def test_neighbours_of_bent_samples_are_those_of_their_latents(rng, n):
    u = rng.random((n, 2))
    metric = LocalMetric.of_roots(jacobian(u))
    found = neighbor_graph(seen(u), 20, metric=metric)
    right = neighbor_graph(u, 20)
    assert found.method.value == "metric"
    # Graphs are symmetric, so that some have more than 20 neighbours.
    shared = (found.distances > 0).multiply(right.distances > 0).sum() / right.distances.nnz
    plain = (neighbor_graph(seen(u), 20).distances > 0).multiply(right.distances > 0).sum()
    assert shared > 0.93 > 0.9 > plain / right.distances.nnz
    both = found.distances.tocoo()
    lengths = np.linalg.norm(u[both.row] - u[both.col], axis=1)
    assert np.median(np.abs(both.data / lengths - 1)) < 0.03


def test_new_samples_have_the_metric_of_their_nearest_neighbour(rng):
    u = rng.random((600, 2))
    graph = neighbor_graph(seen(u), 10, metric=LocalMetric.of_roots(jacobian(u)))
    near = graph.distances_to(seen(u[:50]))
    assert (near.min(axis=1, explicit=True).toarray() == 0).all()
    rebuilt = graph.with_search(seen(u), 1, LocalMetric.of_roots(jacobian(u)))
    assert (rebuilt.distances_to(seen(u[:50])) != near).nnz == 0


def test_sheets_that_cross_are_not_neighbours(rng):
    # Two planes in four dimensions that meet at a point.
    u = rng.uniform(-1, 1, size=(1000, 2))
    X, roots = np.zeros((1000, 4)), np.zeros((1000, 4, 2))
    X[:500, :2], X[500:, 2:] = u[:500], u[500:]
    roots[:500, :2], roots[500:, 2:] = np.eye(2), np.eye(2)
    found = neighbor_graph(X, 10, metric=LocalMetric.of_roots(0.05 * roots))
    assert found.warned
    assert len(np.unique(found.components[:500])) == len(np.unique(found.components[500:])) == 1


def test_copies_are_merged_with_their_metric(rng):
    u = rng.random((300, 2))
    twice = np.concatenate([u, u[:40]])
    graph = neighbor_graph(seen(twice), 10, metric=LocalMetric.of_roots(jacobian(twice)))
    assert len(graph.distinct) == 300
    alone = neighbor_graph(seen(u), 10, metric=LocalMetric.of_roots(jacobian(u)))
    assert abs(graph.distances - alone.distances).max() < 1e-9


def test_whitened_moves_have_the_lengths_of_latents(roots, rng):
    latent = rng.normal(size=(20, 4, 2))
    moves = latent @ roots.transpose(0, 2, 1)
    white = LocalMetric.of_roots(roots).whitened(moves)
    assert np.allclose((white**2).sum(axis=2), (latent**2).sum(axis=2))
