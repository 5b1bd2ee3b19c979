"""Spectra of the whole, of parts, and in other senses of a product."""

import numpy as np
import pytest

from manifactor import DiffusionMap, DisconnectedGraphWarning, EigenpairWarning, datasets
from manifactor._support.stages import Stages
from manifactor.operators import laplacian
from manifactor.operators import variants as senses
from manifactor.operators.engines.solvers import _inaccurate
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import (
    _beside_constant,
    draw_parts,
    laplacian_spectrum,
    part_size,
)
from manifactor.operators.neighbors import neighbor_graph
from manifactor.operators.operator import DiffusionSettings
from manifactor.operators.pipeline import diffuse
from manifactor.operators.variants import in_density, in_volume


def assert_orthonormal(s, atol=1e-6):
    inner = s.functions.T @ (s.weights[:, None] * s.functions)
    np.testing.assert_allclose(inner, np.eye(len(inner)), atol=atol)


def sampled(shape, n):
    return datasets.sample(shape, n, random_state=0)[0]


def random():
    return np.random.default_rng(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "n_functions", "bandwidth"),
    [
        ("rectangle", 20, "auto"),
        ("torus", 12, "local"),
        ("sphere", 16, "auto"),
        ("cylinder", 20, "auto"),
        ("sphere_sphere", 7, "auto"),
    ],
)
def test_eigenvalues_are_those_of_the_shape_in_its_units(shape, n_functions, bandwidth):
    fit = DiffusionMap(n_functions, bandwidth=bandwidth, random_state=0).fit(sampled(shape, 2000))
    exact = datasets.exact_eigenvalues(shape, n_functions)
    np.testing.assert_allclose(fit.spectrum_.eigenvalues, exact, rtol=0.13, atol=1e-9)


def test_only_the_constant_function_has_the_eigenvalue_0_however_weak_the_links(rng):
    classes = rng.integers(4, size=(700, 2))
    graph = neighbor_graph(np.c_[classes, rng.uniform(size=700)], 24)
    walk = affinity(graph, bandwidth=1e-4)
    # The lowest functions tell components apart; the weights of their links are lost in rounding.
    eigenvalues = laplacian_spectrum(walk, 10, rng=rng).eigenvalues
    assert eigenvalues[0] == 0
    assert (eigenvalues[1:] > 0).all()
    assert (np.diff(eigenvalues) >= 0).all()


def test_functions_are_orthonormal_under_the_weights(rectangle_spectrum):
    s, f = rectangle_spectrum, rectangle_spectrum.functions
    assert_orthonormal(s)
    assert s.weights.sum() == pytest.approx(1)
    assert (f[:, 0] == 1).all()
    # The largest value of each function is positive.
    assert (f.max(axis=0) == np.abs(f).max(axis=0)).all()


def test_poor_residuals_give_a_warning():
    (warned,) = _inaccurate(np.array([1e-9, 1e-2, 1e-8]), np.full(3, 1e-7), "arpack")
    assert warned.category is EigenpairWarning
    assert warned.message.startswith("1 of 3 eigenpairs have")
    assert "the largest 1.0e-02" in warned.message


def test_functions_stay_orthogonal_when_bridges_weigh_next_to_nothing(rng):
    t = rng.uniform(size=300)
    X = np.r_[np.c_[t, 0 * t], np.c_[t, 0 * t + 9]]
    with pytest.warns(UserWarning, match="components"):
        s = DiffusionMap(6, n_neighbors=20, bandwidth=1e-5, random_state=0).fit(X).spectrum_
    assert_orthonormal(s)


@pytest.mark.slow
def test_the_full_kernel_with_a_wide_bandwidth_is_resolved_as_far_as_it_goes():
    X = sampled("rectangle", 1600)
    fit = DiffusionMap(25, n_neighbors="all", bandwidth=0.3, random_state=0).fit(X)
    assert fit.solver_ == "arpack"
    np.testing.assert_allclose(fit.transform(X), fit.spectrum_.functions[:, 1:], atol=1e-5)
    with pytest.raises(ValueError, match=r"the kernel resolves \d+ functions"):
        DiffusionMap(400, n_neighbors="all", bandwidth=1.0, random_state=0).fit(X[:600])


def test_the_constant_is_taken_out_of_a_mixture():
    rotation = np.linalg.qr(random().normal(size=(8, 4)))[0]
    mixed = rotation.copy()
    mixed[:, :2] = rotation[:, :2] @ [[0.0, 1.0], [-1.0, 0.0]]  # the first two exchanged
    found = _beside_constant(mixed, rotation[:, 0])
    np.testing.assert_allclose(found[:, 0], rotation[:, 0])
    np.testing.assert_allclose(np.abs(found.T @ rotation), np.eye(4), atol=1e-12)


def test_a_far_cluster_that_hangs_on_by_its_neighbours_is_noticed():
    X = sampled("torus", 600)
    with pytest.warns(DisconnectedGraphWarning, match="2 components, the largest of 600 samples"):
        s = DiffusionMap(20, random_state=0).fit(np.vstack([X, X[:50] + 100])).spectrum_
    assert_orthonormal(s)


def test_a_used_up_budget_is_said(monkeypatch):
    walk = affinity(neighbor_graph(sampled("torus", 1600), 30))
    monkeypatch.setattr("manifactor.operators.engines.chebyshev.BUDGET", 8)
    spectrum = laplacian_spectrum(walk, 40, solver="chebyshev", accuracy=1e-6, rng=random())
    assert "of 40 eigenpairs are accurate" in spectrum.warned[0].message
    assert 2 <= len(spectrum.eigenvalues) < 40


def test_clusters_hold_the_repeated_eigenvalues():
    fit = DiffusionMap(9, random_state=0).fit(sampled("equal_torus", 1000))
    assert [len(cluster) for cluster in fit.spectrum_.clusters] == [1, 4, 4]


@pytest.mark.slow
def test_parts_are_disjoint_see_the_whole_and_start_from_parts_of_their_own(monkeypatch):
    searched = []

    def search(some, _):
        searched.append(len(some))
        return neighbor_graph(some, 64)

    assert [part_size(n) for n in (60_001, 400_000, 10**7)] == [10_000, 50_000, 100_000]
    monkeypatch.setattr(laplacian, "part_size", lambda n: n // 2)
    monkeypatch.setattr(laplacian, "NESTED_ABOVE", 1500)
    found = draw_parts(sampled("torus", 4000), 12, search=search, rng=random())
    assert searched == [2000, 1000, 2000, 1000]
    assert not np.intersect1d(found[0].rows, found[1].rows).size
    exact = datasets.exact_eigenvalues("torus", 12)
    for part in found:
        eigenvalues = part.spectrum.eigenvalues[1:12]
        assert len(part.spectrum.functions) == len(part.rows) == 2000
        np.testing.assert_allclose(eigenvalues, exact[1:], rtol=0.1)
        alone = laplacian_spectrum(part.affinity, 12, rng=np.random.default_rng(1))
        np.testing.assert_allclose(eigenvalues, alone.eigenvalues[1:], rtol=1e-3)


@pytest.mark.slow
def test_many_samples_are_solved_with_the_help_of_parts(monkeypatch):
    X = sampled("torus", 2000)
    plain = diffuse(X, rng=random())
    assert plain.parts == ()
    monkeypatch.setattr(laplacian, "PARTED_ABOVE", 1900)
    monkeypatch.setattr(laplacian, "SMALLEST_PART", 700)
    stages = Stages()
    helped = diffuse(X, stages=stages, rng=random())
    assert "parts" in stages.timings
    assert [len(part.rows) for part in helped.parts] == [700, 700]
    found, expected = (each.spectrum.eigenvalues[:20] for each in (helped, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


# Other senses of a product.

FEW = DiffusionSettings(n_functions=12)


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


@pytest.fixture(scope="module")
def sector():
    """A rectangle of 1 x 1.6 bent into a sector of an annulus by exp."""
    u, v = random().uniform(size=(2, 1200))
    z = np.exp(u + 1.6j * v)
    return diffuse(np.column_stack([z.real, z.imag]), FEW, rng=random()), u, v


@pytest.fixture(scope="module")
def cloud():
    X = np.random.default_rng(1).normal(size=(1200, 2)) * [2.0, 1.0]
    return diffuse(X, FEW, rng=random()), X


@pytest.mark.medium
def test_lengths_in_samples_undo_a_conformal_map(sector):
    diffusion, u, v = sector
    volume = in_volume(diffusion, rng=random())
    longer = volume.spectrum.functions[:, 1]
    assert correlation(longer, np.cos(np.pi * v)) > 0.995
    assert inner_over_outer(longer, u) > 0.85
    # On the sector itself the function along the arc grows with the radius.
    assert inner_over_outer(diffusion.spectrum.functions[:, 1], u) < 0.75


def inner_over_outer(function, u):
    """Spread of a function at small radii over that at large ones."""
    return function[u < 0.2].std() / function[u > 0.8].std()


@pytest.mark.medium
def test_lowest_functions_of_a_gaussian_are_hermite_polynomials(cloud):
    diffusion, X = cloud
    density = in_density(diffusion, rng=random()).spectrum
    weights, (x, y) = density.weights > 0, X.T
    first = density.functions[weights, 1]
    assert correlation(first, x[weights]) > 0.97
    second = density.functions[:, 2:6][weights]
    beside = [correlation(f, y[weights]) for f in second.T]
    assert max(beside) > 0.9


def test_few_samples_are_drawn_and_functions_reach_all(cloud, monkeypatch):
    diffusion, X = cloud
    monkeypatch.setattr(senses, "DRAWN_IN_VOLUME", 500)
    part = in_volume(diffusion, rng=random())
    undrawn = part.graph.undrawn
    assert len(part.graph.distinct) <= 500
    assert undrawn.sum() >= len(X) - 500
    assert np.isclose(part.spectrum.weights.sum(), 1)
    assert not part.spectrum.weights[undrawn].any()
    # Extended values are no copies of the nearest drawn sample's.
    nearest = part.distinct.functions[part.graph.inverse]
    values = part.spectrum.functions
    assert not np.allclose(values[undrawn, 1], nearest[undrawn, 1])
    assert correlation(values[undrawn, 1], nearest[undrawn, 1]) > 0.98
    graph = part.graph
    row = graph.distances[[7]]
    ends = X[graph.distinct[[7, row.indices[0]]]]
    assert np.isclose(np.linalg.norm(ends[0] - ends[1]), row.data[0])
    assert (graph.inverse[graph.distinct] == np.arange(len(graph.distinct))).all()
