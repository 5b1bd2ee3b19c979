import numpy as np
import pytest

from manifactor import (
    DiffusionMap,
    DisconnectedGraphWarning,
    EigenpairWarning,
    datasets,
)
from manifactor.spectral import spectrum as module
from manifactor.spectral.spectrum import Spectrum


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
    found = (
        DiffusionMap(9).fit(np.c_[np.cos(angle), np.sin(angle)]).spectrum_.eigenvalues
    )
    np.testing.assert_allclose(
        found, [0, 1, 1, 4, 4, 9, 9, 16, 16], rtol=0.01, atol=1e-9
    )


def test_density_does_not_change_the_eigenvalues(rng):
    t = rng.uniform(size=20000)
    t = t[
        rng.uniform(size=20000) < 0.1 + 0.4 * np.sin(np.pi * t) ** 2
    ]  # five times denser in the middle
    found = DiffusionMap(5, random_state=0).fit(np.c_[t, t]).spectrum_.eigenvalues
    np.testing.assert_allclose(found[1:], (np.pi * np.arange(1, 5)) ** 2 / 2, rtol=0.1)


def test_the_dense_kernel_gives_the_same_spectrum(rectangle):
    X, _ = rectangle
    dense = (
        DiffusionMap(8, n_neighbors="all", bandwidth=0.02, random_state=0)
        .fit(X)
        .spectrum_.eigenvalues
    )
    np.testing.assert_allclose(
        dense[1:], datasets.exact_eigenvalues("rectangle", 8)[1:], rtol=0.12
    )


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
        match="1 of 3 eigenpairs have residuals more than ten times .* largest 1.0e-02",
    ):
        module._warn_of_residuals(
            np.array([1e-9, 1e-2, 1e-8]), np.full(3, 1e-7), "arpack"
        )


def test_clusters_hold_the_repeated_eigenvalues():
    X, _ = datasets.sample("equal_torus", 2000, random_state=0)
    clusters = DiffusionMap(9, random_state=0).fit(X).spectrum_.clusters
    assert [len(c) for c in clusters] == [1, 4, 4]


def test_well_separated_eigenvalues_are_clusters_of_one():
    n = 10000
    s = Spectrum(
        np.array([0, 1.0, 2.0, 3.0]),
        np.ones((n, 4)),
        np.full(n, 1 / n),
        np.zeros(4),
        0.01,
        "exact",
    )
    assert [c.tolist() for c in s.clusters] == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    "settings",
    [{}, {"bandwidth": "local"}, {"n_neighbors": "all"}, {"density_correction": 0.0}],
)
@pytest.mark.parametrize("shape", ["rectangle", "torus"])
def test_extension_reproduces_the_training_functions(shape, settings):
    X, _ = datasets.sample(shape, 1200, random_state=0)
    fit = DiffusionMap(30, random_state=0, **settings).fit(X)
    again, exact = fit.transform(X), fit.spectrum_.functions[:, 1:]
    error = np.linalg.norm(again - exact, axis=0) / np.linalg.norm(exact, axis=0)
    assert error.max() < 1e-6


def test_extension_reproduces_training_functions_with_copies_and_bridges(rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(150, 2)) + 5]
    X = np.r_[X, X[:30]]
    with pytest.warns(UserWarning, match="2 components"):
        fit = DiffusionMap(10, n_neighbors=10, random_state=0).fit(X)
    np.testing.assert_allclose(
        fit.transform(X), fit.spectrum_.functions[:, 1:], atol=1e-6
    )


def test_extension_is_close_to_the_truth_at_new_samples():
    X, (angle, _) = datasets.sample("torus", 4000, random_state=0)
    fit = DiffusionMap(3, random_state=0).fit(X[:3000])
    new = fit.transform(X[3000:])
    scale = np.hypot(*new.T)
    np.testing.assert_allclose(scale, np.sqrt(2), rtol=0.15)
    turn = (new / scale[:, None]) @ [1, 1j] * (angle[3000:] @ [1, -1j])
    other = (new / scale[:, None]) @ [1, 1j] * (angle[3000:] @ [1, 1j])
    assert max(abs(turn.mean()), abs(other.mean())) > 0.995


def test_a_nudge_to_a_sample_nudges_its_functions(rectangle):
    X, _ = rectangle
    fit = DiffusionMap(10, random_state=0).fit(X)
    nudged = fit.transform(X + 1e-4)
    assert np.abs(nudged - fit.spectrum_.functions[:, 1:]).max() < 0.1


def test_samples_out_of_reach_are_refused(rectangle):
    X, _ = rectangle
    with pytest.raises(
        ValueError, match="1 of 3 have none within reach of the bandwidth"
    ):
        DiffusionMap(5).fit(X).transform([[0, 0], [1, 1], [1e4, 0]])


def test_functions_stay_orthogonal_when_bridges_weigh_next_to_nothing(rng):
    t = rng.uniform(size=300)
    X = np.r_[np.c_[t, 0 * t], np.c_[t, 0 * t + 9]]
    with pytest.warns(UserWarning, match="components"):
        s = (
            DiffusionMap(6, n_neighbors=20, bandwidth=1e-5, random_state=0)
            .fit(X)
            .spectrum_
        )
    np.testing.assert_allclose(
        s.functions.T @ (s.weights[:, None] * s.functions), np.eye(6), atol=1e-6
    )


def test_the_full_kernel_with_a_wide_bandwidth_is_resolved_as_far_as_it_goes():
    X, _ = datasets.sample("rectangle", 1600, random_state=0)
    fit = DiffusionMap(25, n_neighbors="all", bandwidth=0.3, random_state=0).fit(X)
    assert fit.solver_ == "arpack"
    np.testing.assert_allclose(
        fit.transform(X), fit.spectrum_.functions[:, 1:], atol=1e-5
    )
    with pytest.raises(
        ValueError,
        match=r"the kernel resolves \d+ functions of these samples; got `n_functions`=400",
    ):
        DiffusionMap(400, n_neighbors="all", bandwidth=1.0, random_state=0).fit(X)


def test_local_bandwidths_keep_the_eigenvalues_of_even_samples():
    X, _ = datasets.sample("torus", 3000, random_state=0)
    found = (
        DiffusionMap(12, bandwidth="local", random_state=0).fit(X).spectrum_.eigenvalues
    )
    np.testing.assert_allclose(
        found[1:], datasets.exact_eigenvalues("torus", 12)[1:], rtol=0.15
    )


def test_the_constant_is_taken_out_of_a_mixture():
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 4)))[0]
    mixed = rotation.copy()
    mixed[:, :2] = rotation[:, :2] @ [
        [0.0, 1.0],
        [-1.0, 0.0],
    ]  # the first two exchanged
    found = module._beside_constant(mixed, rotation[:, 0])
    np.testing.assert_allclose(found[:, 0], rotation[:, 0])
    np.testing.assert_allclose(np.abs(found.T @ rotation), np.eye(4), atol=1e-12)


def test_a_far_cluster_that_hangs_on_by_its_neighbours_is_noticed():
    X, _ = datasets.sample("torus", 600, random_state=0)
    with pytest.warns(
        DisconnectedGraphWarning,
        match="fall into 2 components, the largest of 600 samples",
    ):
        s = DiffusionMap(20, random_state=0).fit(np.vstack([X, X[:50] + 100])).spectrum_
    assert np.isfinite(s.functions).all()
    np.testing.assert_allclose(
        s.functions.T @ (s.weights[:, None] * s.functions), np.eye(20), atol=1e-6
    )
