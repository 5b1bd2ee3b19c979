"""Flat places of samples whose local metric is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from manifactor.models.moves.unfolding import _axes, unfold
from manifactor.operators.metric import LocalMetric
from manifactor.operators.neighbors import neighbor_graph

from ..moving import jacobian, seen

pytestmark = pytest.mark.medium


def ring(turns):
    return np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])


def slope_of_ring(turns):
    return 2 * np.pi * np.column_stack([-np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])


@pytest.fixture(scope="module")
def sheet():
    """A rectangle of sides 1 and 1.5 in units of moves, behind a bent map."""
    u = np.random.default_rng(0).random((700, 2))
    X, metric = seen(u), LocalMetric.of_roots(jacobian(u) / [1, 1.5])
    graph = neighbor_graph(X, 40, metric=metric)
    return u * [1, 1.5], X, metric, unfold(X, metric, graph, 2, []).flat


def test_flat_places_have_the_lengths_and_axes_of_a_rectangle(sheet):
    u, _, _, flat = sheet
    assert flat.n_lines == 2
    np.testing.assert_allclose(pdist(flat.places), pdist(u), rtol=0.03, atol=0.02)
    along = np.abs(np.corrcoef(u.T, flat.places.T)[:2, 2:])
    assert np.sort(along.max(axis=0)) == pytest.approx([1, 1], abs=2e-3)
    assert sorted(along.argmax(axis=0)) == [0, 1]


def test_places_near_a_sample_follow_its_frame(sheet):
    u, X, metric, flat = sheet
    moves = 0.01 * np.random.default_rng(1).normal(size=(len(u), 2))
    found = flat.steps(np.arange(len(u)), seen((u + moves) / [1, 1.5]) - X)
    assert np.linalg.norm(found, axis=1) == pytest.approx(
        np.linalg.norm(moves, axis=1), rel=0.15, abs=1e-3
    )
    with_all = replace(metric, flat=flat).chosen(np.arange(5)).flat
    assert np.array_equal(with_all.places, flat.places[:5])


@pytest.fixture(scope="module")
def tube():
    """A circle of length 1.5 and an interval of length 1, in a lens that bends both."""
    turns, z = np.random.default_rng(0).random((2, 1500))
    across = slope_of_ring(turns) * (1 + 0.5 * z[:, None])
    X = np.column_stack([ring(turns) * (1 + 0.5 * z[:, None]), z])
    along = np.column_stack([0.5 * ring(turns), np.ones(1500)])
    roots = np.stack([np.column_stack([across / 1.5, np.zeros(1500)]), along], axis=2)
    metric = LocalMetric.of_roots(roots)
    return turns, z, X, metric, neighbor_graph(X, 40, metric=metric)


def test_a_circle_is_closed(tube):
    turns, z, X, metric, graph = tube
    flat = unfold(X, metric, graph, 2, [2 * np.pi * turns - np.pi]).flat
    assert flat.n_lines == 1
    assert abs(np.corrcoef(flat.places[:, 0], z)[0, 1]) > 0.999
    assert np.ptp(flat.places[:, 0]) == pytest.approx(1, abs=0.03)
    radius = np.linalg.norm(flat.places[:, 1:], axis=1)
    assert radius == pytest.approx(np.full(1500, 1.5 / (2 * np.pi)), rel=0.03)
    turned = flat.places[:, 1:] @ [1, 1j] / (ring(turns) @ [1, 1j])
    back = flat.places[:, 1:] @ [1, 1j] / (ring(-turns) @ [1, 1j])
    steady = max(abs(each.mean()) / np.abs(each).mean() for each in (turned, back))
    assert steady > 0.999


@pytest.mark.parametrize("oblique", [0.0, 0.5])
def test_circles_that_are_not_orthogonal_are_no_factors(oblique):
    turns = np.random.default_rng(0).random((1500, 2))
    X = np.hstack([ring(turns[:, 0]), ring(turns[:, 1])])
    sides = np.zeros((1500, 4, 2))
    sides[:, :2, 0], sides[:, 2:, 1] = slope_of_ring(turns[:, 0]), slope_of_ring(turns[:, 1])
    # Lengths of the moves (1, 0) and (0, 1) of angles, and the angle between them.
    shear = np.linalg.inv([[1, oblique], [0, np.sqrt(1 - oblique**2)]])
    metric = LocalMetric.of_roots(sides @ shear)
    graph = neighbor_graph(X, 40, metric=metric)
    angles = list(2 * np.pi * turns.T - np.pi)
    assert (unfold(X, metric, graph, 2, angles) is None) == (oblique > 0)


def test_axes_of_a_box_are_found_however_it_is_turned(rng):
    box = rng.random((4000, 3)) ** [1, 1.5, 2] * [1, 0.7, 0.5]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found = np.abs(turn.T @ _axes(box @ turn.T))
    assert np.sort(found.max(axis=0)) == pytest.approx([1, 1, 1], abs=0.02)
