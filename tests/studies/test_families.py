"""Families of shapes: their coordinates are orthogonal, their samples even, their twists real."""

import numpy as np
import pytest
from scipy import stats

from studies.cases import Case
from studies.families import FAMILIES, SYMMETRIC, draw

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


@pytest.mark.parametrize("name", ["ellipse", "ellipsoid"])
def test_the_metric_in_confocal_coordinates_has_the_form_of_liouville(name):
    chart = member("separable 2-D", name)
    u, v = (np.linspace(low, high, 12)[1:-1] for low, high in chart.box)
    grid = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    first, second = np.einsum("nii->in", chart.metric(grid)).reshape(2, 10, 10)
    # (f(u) + g(v)) (a(u) du^2 + b(v) dv^2): the ratio of the lengths is a product, and of f + g the
    # mixed differences vanish.
    ratio = first / second
    np.testing.assert_allclose(ratio * ratio[0, 0], ratio[:, :1] * ratio[:1], rtol=1e-7)
    terms = first / ratio[:, :1]
    np.testing.assert_allclose(terms + terms[0, 0], terms[:, :1] + terms[:1], rtol=1e-7)


def test_an_ellipsoid_has_the_equation_of_one_and_is_even_by_area():
    X, (along, _) = draw("separable 2-D", "ellipsoid", 4000, random_state=0)
    squares = np.linalg.lstsq(X**2, np.ones(len(X)), rcond=None)[0]
    np.testing.assert_allclose(X**2 @ squares, 1)
    assert stats.spearmanr(along[:, 0], X[:, 0]).statistic < -0.98
    # For a field in space, the flow through the surface is an integral over the inside: for x e_x
    # the volume, as well as for y e_y and z e_z. The normal is along x / axes^2.
    normal = X * squares
    flows = X * normal / np.linalg.norm(normal, axis=1, keepdims=True)
    np.testing.assert_allclose(flows.mean(axis=0), flows.mean(), rtol=0.05)


@pytest.mark.parametrize(
    ("group", "name", "power"), [("separable 2-D", "disc", 2), ("separable 3-D", "ball", 3)]
)
def test_discs_and_balls_are_even_and_tails_fade_out(group, name, power):
    _, (radius, _) = draw(group, name, 4000, random_state=0)
    assert stats.kstest(radius[:, 0] ** power, "uniform").pvalue > 0.01
    _, (radius, _) = draw(group, name, 4000, density="tails", random_state=0)
    assert (radius > 0.95).mean() < 0.02


@pytest.mark.parametrize("name", ["quarter_turn", "turning_square"])
def test_a_square_fibre_comes_back_by_a_quarter_turn(name):
    chart = member("twisted", name)
    _, x, y = places(chart).T
    start, end = np.zeros_like(x), np.full_like(x, 2 * np.pi)
    np.testing.assert_allclose(chart.place(end, x, y), chart.place(start, -y, x), atol=1e-12)
    assert np.abs(chart.place(end, x, y) - chart.place(start, x, y)).max() > 0.5


def test_a_level_mapping_torus_is_nearly_flat():
    chart = member("twisted", "quarter_turn")
    t, x, y = places(chart).T
    metric = chart.metric(np.c_[t, x, y])
    assert np.abs(metric[:, 1:, :] - np.eye(3)[1:]).max() < 1e-8
    along = metric[:, 0, 0] - 3 / 16 * (x**2 + y**2)
    np.testing.assert_allclose(along, along[0])


@pytest.mark.parametrize("name", ["moebius", "klein_bottle", "reflected_disc", "reflected_sphere"])
def test_a_fibre_comes_back_reflected(name):
    chart = member("twisted", name)
    _, *q = places(chart).T
    # Minus the last coordinate of a fibre; the sphere's last column changes its sign with pi minus
    # the polar angle.
    back = [np.pi - q[0], q[1]] if name == "reflected_sphere" else [*q[:-1], -q[-1]]
    start, end = np.zeros_like(q[0]), np.full_like(q[0], 2 * np.pi)
    np.testing.assert_allclose(chart.place(end, *q), chart.place(start, *back), atol=1e-12)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_shapes_have_a_name_and_tori_an_angle(name):
    X, symmetry = draw("symmetric", name, 50, random_state=0)
    assert X.shape[0] == 50
    assert (symmetry.lattice_angle is not None) == (symmetry.name == "flat torus")


def test_noise_is_relative_to_the_size_of_a_member():
    case = {"n": 2000, "families": "separable 2-D", "columns": 10}
    clean, _ = Case("x", "annulus", **case).draw(3)
    noisy, _ = Case("x", "annulus", noise=0.05, **case).draw(3)
    size = np.sqrt(clean.var(axis=0).sum())
    assert (noisy - clean).std() == pytest.approx(0.05 * size, rel=0.02)
