"""Families of shapes: their coordinates are orthogonal, their samples even, their twists real."""

import numpy as np
import pytest

from studies.families import FAMILIES, draw

pytestmark = pytest.mark.nightly

ALL = [(group, name) for group in FAMILIES for name in FAMILIES[group]]


def member(group, name):
    return FAMILIES[group][name](np.random.RandomState(0))


def places(chart):
    """Return random coordinates of a shape, (n, d)."""
    rng = np.random.RandomState(1)
    q = rng.uniform(*np.transpose(chart.box), size=(200, len(chart.box)))
    return q[np.asarray(chart.inside(*q.T), bool)]


@pytest.mark.parametrize(("group", "name"), ALL)
def test_a_seed_draws_a_member_of_a_family_again(group, name):
    X, truth = draw(group, name, 100, random_state=0)
    assert len(X) == 100
    assert np.isfinite(X).all()
    assert all(t.shape[0] == 100 and t.ndim == 2 for t in truth)
    again, _ = draw(group, name, 100, random_state=0)
    np.testing.assert_array_equal(again, X)


@pytest.mark.parametrize(("group", "name"), [(g, name) for g, name in ALL if "separable" in g])
def test_separating_coordinates_are_orthogonal(group, name):
    chart = member(group, name)
    metric = chart.metric(places(chart))
    lengths = np.sqrt(np.einsum("nii->ni", metric))
    cosines = metric / (lengths[:, :, None] * lengths[:, None])
    assert np.abs(cosines - np.eye(len(chart.box))).max() < 1e-7


@pytest.mark.parametrize("name", ["moebius", "klein_bottle", "reflected_disc", "reflected_sphere"])
def test_a_fibre_comes_back_reflected(name):
    chart = member("twisted", name)
    _, *q = places(chart).T
    # Minus the last coordinate of a fibre; the sphere's last column changes its sign with pi minus
    # the polar angle.
    back = [np.pi - q[0], q[1]] if name == "reflected_sphere" else [*q[:-1], -q[-1]]
    start, end = np.zeros_like(q[0]), np.full_like(q[0], 2 * np.pi)
    np.testing.assert_allclose(chart.place(end, *q), chart.place(start, *back), atol=1e-12)
