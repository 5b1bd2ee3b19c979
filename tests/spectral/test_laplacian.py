import numpy as np
import pytest

from manifactor import DiffusionMap, DisconnectedGraphWarning, EigenpairWarning, datasets
from manifactor._support.parameters import given
from manifactor.spectral.filter_plan import FilterSettings
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import (
    SpectrumSettings,
    _beside_constant,
    _warn_of_residuals,
    laplacian_spectrum,
)
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.solvers import SolverSettings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "n_functions", "tolerance"),
    [
        ("rectangle", 20, 0.1),
        ("torus", 20, 0.1),
        ("sphere", 16, 0.1),
        ("cylinder", 20, 0.1),
        ("sphere_sphere", 7, 0.12),
    ],
)
def test_eigenvalues_are_those_of_the_shape_in_its_units(shape, n_functions, tolerance):
    X, _ = datasets.sample(shape, 3000, random_state=0)
    found = DiffusionMap(n_functions, random_state=0).fit(X).spectrum_.eigenvalues
    assert found[0] == 0
    np.testing.assert_allclose(
        found[1:], datasets.exact_eigenvalues(shape, n_functions)[1:], rtol=tolerance
    )


def test_eigenvalues_of_a_circle_are_squares_in_pairs():
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    found = DiffusionMap(9).fit(np.c_[np.cos(angle), np.sin(angle)]).spectrum_.eigenvalues
    np.testing.assert_allclose(found, [0, 1, 1, 4, 4, 9, 9, 16, 16], rtol=0.01, atol=1e-9)


@pytest.mark.slow
def test_density_does_not_change_the_eigenvalues(rng):
    t = rng.uniform(size=20000)
    t = t[
        rng.uniform(size=20000) < 0.1 + 0.4 * np.sin(np.pi * t) ** 2
    ]  # five times denser in the middle
    found = DiffusionMap(5, random_state=0).fit(np.c_[t, t]).spectrum_.eigenvalues
    np.testing.assert_allclose(found[1:], (np.pi * np.arange(1, 5)) ** 2 / 2, rtol=0.1)


@pytest.mark.slow
def test_the_dense_kernel_gives_the_same_spectrum(rectangle):
    X, _ = rectangle
    dense = (
        DiffusionMap(8, n_neighbors="all", bandwidth=0.02, random_state=0)
        .fit(X)
        .spectrum_.eigenvalues
    )
    np.testing.assert_allclose(dense[1:], datasets.exact_eigenvalues("rectangle", 8)[1:], rtol=0.12)


def test_functions_are_orthonormal_under_the_weights(rectangle_spectrum):
    s = rectangle_spectrum
    np.testing.assert_allclose(
        s.functions.T @ (s.weights[:, None] * s.functions), np.eye(60), atol=1e-6
    )
    assert s.weights.sum() == pytest.approx(1)
    assert (s.functions[:, 0] == 1).all()


def test_the_largest_value_of_each_function_is_positive(rectangle_spectrum):
    f = rectangle_spectrum.functions
    assert (f.max(axis=0) == np.abs(f).max(axis=0)).all()


def test_residuals_are_reported_and_small(rectangle_spectrum):
    assert rectangle_spectrum.residuals.shape == (60,)
    assert rectangle_spectrum.residuals.max() < 1e-6


def test_poor_residuals_give_a_warning():
    with pytest.warns(
        EigenpairWarning,
        match="1 of 3 eigenpairs have residuals more than 10 times .* largest 1.0e-02",
    ):
        _warn_of_residuals(np.array([1e-9, 1e-2, 1e-8]), np.full(3, 1e-7), solver="arpack", poor=10)


def test_functions_stay_orthogonal_when_bridges_weigh_next_to_nothing(rng):
    t = rng.uniform(size=300)
    X = np.r_[np.c_[t, 0 * t], np.c_[t, 0 * t + 9]]
    with pytest.warns(UserWarning, match="components"):
        s = DiffusionMap(6, n_neighbors=20, bandwidth=1e-5, random_state=0).fit(X).spectrum_
    np.testing.assert_allclose(
        s.functions.T @ (s.weights[:, None] * s.functions), np.eye(6), atol=1e-6
    )


@pytest.mark.slow
def test_the_full_kernel_with_a_wide_bandwidth_is_resolved_as_far_as_it_goes():
    X, _ = datasets.sample("rectangle", 1600, random_state=0)
    fit = DiffusionMap(25, n_neighbors="all", bandwidth=0.3, random_state=0).fit(X)
    assert fit.solver_ == "arpack"
    np.testing.assert_allclose(fit.transform(X), fit.spectrum_.functions[:, 1:], atol=1e-5)
    with pytest.raises(
        ValueError,
        match=r"the kernel resolves \d+ functions of these samples; got `n_functions`=400",
    ):
        DiffusionMap(400, n_neighbors="all", bandwidth=1.0, random_state=0).fit(X[:600])


@pytest.mark.slow
def test_local_bandwidths_keep_the_eigenvalues_of_even_samples():
    X, _ = datasets.sample("torus", 3000, random_state=0)
    found = DiffusionMap(12, bandwidth="local", random_state=0).fit(X).spectrum_.eigenvalues
    np.testing.assert_allclose(found[1:], datasets.exact_eigenvalues("torus", 12)[1:], rtol=0.15)


def test_the_constant_is_taken_out_of_a_mixture():
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 4)))[0]
    mixed = rotation.copy()
    mixed[:, :2] = rotation[:, :2] @ [[0.0, 1.0], [-1.0, 0.0]]  # the first two exchanged
    found = _beside_constant(mixed, rotation[:, 0])
    np.testing.assert_allclose(found[:, 0], rotation[:, 0])
    np.testing.assert_allclose(np.abs(found.T @ rotation), np.eye(4), atol=1e-12)


def test_a_far_cluster_that_hangs_on_by_its_neighbours_is_noticed():
    X, _ = datasets.sample("torus", 600, random_state=0)
    with pytest.warns(
        DisconnectedGraphWarning, match="fall into 2 components, the largest of 600 samples"
    ):
        s = DiffusionMap(20, random_state=0).fit(np.vstack([X, X[:50] + 100])).spectrum_
    assert np.isfinite(s.functions).all()
    np.testing.assert_allclose(
        s.functions.T @ (s.weights[:, None] * s.functions), np.eye(20), atol=1e-6
    )


def test_a_used_up_budget_is_said():
    X, _ = datasets.sample("torus", 1600, random_state=0)
    walk = affinity(neighbor_graph(X, 30))
    little = SolverSettings(filter=FilterSettings(budget=8))
    with pytest.warns(
        EigenpairWarning, match="of 40 eigenpairs are accurate after .* products .* Ask for fewer"
    ):
        spectrum = laplacian_spectrum(
            walk,
            40,
            solver="chebyshev",
            rng=np.random.default_rng(0),
            settings=SpectrumSettings(accuracy=1e-6, solvers=little),
        )
    assert 2 <= len(spectrum.eigenvalues) < 40


def test_a_spectrum_says_which_solver_was_used_and_why():
    X, _ = datasets.sample("torus", 400, random_state=0)
    walk = affinity(neighbor_graph(X, 30))
    rng = np.random.default_rng(0)
    chosen = laplacian_spectrum(walk, 10, rng=rng).solver
    assert chosen.value == "dense"
    assert chosen.automatic
    asked = laplacian_spectrum(walk, 10, solver="arpack", rng=rng).solver
    assert asked == given("arpack")


def test_functions_that_the_walk_cannot_see_are_left_out():
    X, _ = datasets.sample("torus", 400, random_state=0)
    walk = affinity(neighbor_graph(X, 30))
    coarse = SpectrumSettings(smallest_resolved=0.5)
    whole, few = (
        laplacian_spectrum(walk, 60, rng=np.random.default_rng(0), settings=settings)
        for settings in (SpectrumSettings(), coarse)
    )
    seen = int((np.exp(-walk.step * whole.eigenvalues) > 0.5).sum())
    assert len(few.eigenvalues) == seen < 60
    np.testing.assert_array_equal(few.functions, whole.functions[:, :seen])
