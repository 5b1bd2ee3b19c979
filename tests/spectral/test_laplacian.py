"""Spectra of the whole, of parts, and in other senses of a product."""

import numpy as np
import pytest

from manifactor import DiffusionMap, DisconnectedGraphWarning, EigenpairWarning, datasets
from manifactor._support.parameters import given
from manifactor._support.stages import Stages
from manifactor.spectral import laplacian, pipeline, senses
from manifactor.spectral.diffusion import DiffusionSettings
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import (
    _beside_constant,
    _warn_of_residuals,
    draw_parts,
    laplacian_spectrum,
    part_size,
)
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.pipeline import diffuse, kept_stages
from manifactor.spectral.senses import in_density, in_volume
from manifactor.spectral.spectrum import Spectrum


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
    t, u = rng.uniform(size=(2, 20_000))
    t = t[u < 0.1 + 0.4 * np.sin(np.pi * t) ** 2]  # five times denser in the middle
    found = DiffusionMap(5, random_state=0).fit(np.c_[t, t]).spectrum_.eigenvalues
    np.testing.assert_allclose(found[1:], (np.pi * np.arange(1, 5)) ** 2 / 2, rtol=0.1)


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


def test_poor_residuals_give_a_warning():
    with pytest.warns(EigenpairWarning, match="1 of 3 eigenpairs .* 1.0e-02"):
        _warn_of_residuals(np.array([1e-9, 1e-2, 1e-8]), np.full(3, 1e-7), "arpack")


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
    with pytest.raises(ValueError, match=r"the kernel resolves \d+ functions"):
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


def test_a_used_up_budget_is_said(monkeypatch):
    X, _ = datasets.sample("torus", 1600, random_state=0)
    walk = affinity(neighbor_graph(X, 30))
    monkeypatch.setattr("manifactor.spectral.chebyshev.BUDGET", 8)
    with pytest.warns(EigenpairWarning, match="of 40 eigenpairs are accurate"):
        spectrum = laplacian_spectrum(
            walk, 40, solver="chebyshev", accuracy=1e-6, rng=np.random.default_rng(0)
        )
    assert 2 <= len(spectrum.eigenvalues) < 40


def test_functions_that_the_walk_cannot_see_are_left_out(monkeypatch):
    X, _ = datasets.sample("torus", 400, random_state=0)
    walk = affinity(neighbor_graph(X, 30))
    whole = laplacian_spectrum(walk, 60, rng=np.random.default_rng(0))
    monkeypatch.setattr(laplacian, "SMALLEST_RESOLVED", 0.5)
    few = laplacian_spectrum(walk, 60, rng=np.random.default_rng(0))
    seen = int((np.exp(-walk.step * whole.eigenvalues) > 0.5).sum())
    assert len(few.eigenvalues) == seen < 60
    np.testing.assert_array_equal(few.functions, whole.functions[:, :seen])


@pytest.mark.slow
def test_functions_come_in_the_order_of_the_given_samples(monkeypatch):
    X, _ = datasets.sample("rectangle", 3000, random_state=0)
    found = []
    for above in (3000, 2999):
        monkeypatch.setattr("manifactor.spectral.searches.ORDERED_ABOVE", above)
        found.append(diffuse(X, DiffusionSettings(4), rng=np.random.default_rng(0)).spectrum)
    given, ordered = found
    np.testing.assert_allclose(ordered.weights, given.weights, rtol=1e-9)
    np.testing.assert_allclose(ordered.eigenvalues, given.eigenvalues, atol=1e-7)
    np.testing.assert_allclose(ordered.functions, given.functions, atol=1e-2)


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
        given("exact"),
    )
    assert [c.tolist() for c in s.clusters] == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    ("n_samples", "size"), [(60_001, 10_000), (400_000, 50_000), (10_000_000, 100_000)]
)
def test_a_part_is_an_eighth_of_the_samples_within_limits(n_samples, size):
    assert part_size(n_samples) == size


@pytest.mark.slow
def test_parts_are_disjoint_and_see_the_spectrum_of_the_whole():
    X, _ = datasets.sample("torus", 50_000, random_state=0)
    found = draw_parts(
        X, 12, search=lambda some: neighbor_graph(some, 64), rng=np.random.default_rng(0)
    )
    assert [len(part.rows) for part in found] == [10_000, 10_000]
    assert not np.intersect1d(found[0].rows, found[1].rows).size
    exact = datasets.exact_eigenvalues("torus", 12)
    for part in found:
        np.testing.assert_allclose(part.spectrum.eigenvalues[1:12], exact[1:], rtol=0.05)


@pytest.mark.slow
def test_a_large_part_starts_from_a_part_of_its_own(monkeypatch):
    X, _ = datasets.sample("torus", 8000, random_state=0)
    searched = []

    def search(some):
        searched.append(len(some))
        return neighbor_graph(some, 64)

    monkeypatch.setattr(laplacian, "part_size", lambda n: n // 2)
    monkeypatch.setattr(laplacian, "NESTED_ABOVE", 3000)
    found = draw_parts(X, 12, search=search, rng=np.random.default_rng(0))
    assert searched == [4000, 2000, 4000, 2000]
    for part in found:
        assert len(part.spectrum.functions) == len(part.rows) == 4000
        alone = laplacian_spectrum(part.affinity, 12, rng=np.random.default_rng(1))
        np.testing.assert_allclose(
            part.spectrum.eigenvalues[1:12], alone.eigenvalues[1:], rtol=1e-3
        )


@pytest.mark.slow
def test_many_samples_are_solved_with_the_help_of_parts(monkeypatch):
    X, _ = datasets.sample("torus", 3000, random_state=0)
    plain = diffuse(X, rng=np.random.default_rng(0))
    assert plain.parts == ()
    monkeypatch.setattr(pipeline, "PARTED_ABOVE", 2000)
    monkeypatch.setattr(laplacian, "SMALLEST_PART", 1000)
    stages = Stages()
    helped = diffuse(X, stages=stages, rng=np.random.default_rng(0))
    assert "parts" in stages.timings
    assert [len(part.rows) for part in helped.parts] == [1000, 1000]
    np.testing.assert_allclose(
        helped.spectrum.eigenvalues[:20], plain.spectrum.eigenvalues[:20], rtol=1e-3
    )


# Other senses of a product.

FEW = DiffusionSettings(n_functions=12)


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


@pytest.fixture(scope="module")
def sector():
    """A rectangle of 1 x 1.6 bent into a sector of an annulus by exp."""
    u, v = np.random.default_rng(0).uniform(size=(2, 1200))
    z = np.exp(u + 1.6j * v)
    return diffuse(np.column_stack([z.real, z.imag]), FEW, rng=np.random.default_rng(0)), u, v


@pytest.fixture(scope="module")
def cloud():
    X = np.random.default_rng(1).normal(size=(1200, 2)) * [2.0, 1.0]
    return diffuse(X, FEW, rng=np.random.default_rng(0)), X


def test_lengths_in_samples_undo_a_conformal_map(sector):
    diffusion, u, v = sector
    volume = in_volume(diffusion, rng=np.random.default_rng(0))
    longer = volume.spectrum.functions[:, 1]
    assert correlation(longer, np.cos(np.pi * v)) > 0.995
    assert inner_over_outer(longer, u) > 0.85
    # On the sector itself the function along the arc grows with the radius.
    assert inner_over_outer(diffusion.spectrum.functions[:, 1], u) < 0.75


def inner_over_outer(function, u):
    """Spread of a function at small radii over that at large ones."""
    return function[u < 0.2].std() / function[u > 0.8].std()


def test_lowest_functions_of_a_gaussian_are_hermite_polynomials(cloud):
    diffusion, X = cloud
    density = in_density(diffusion, rng=np.random.default_rng(0)).spectrum
    weights, (x, y) = density.weights > 0, X.T
    first = density.functions[weights, 1]
    assert correlation(first, x[weights]) > 0.97
    second = density.functions[:, 2:6][weights]
    beside = [correlation(f, y[weights]) for f in second.T]
    assert max(beside) > 0.9


def test_few_samples_are_drawn_and_functions_reach_all(cloud, monkeypatch):
    diffusion, X = cloud
    monkeypatch.setattr(senses, "DRAWN_IN_VOLUME", 500)
    part = in_volume(diffusion, rng=np.random.default_rng(0))
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


def test_drawn_samples_of_the_whole_keep_their_neighbours(cloud, monkeypatch):
    diffusion, X = cloud
    monkeypatch.setattr(senses, "DRAWN_IN_VOLUME", 400)
    graph = in_volume(diffusion, rng=np.random.default_rng(2)).graph
    node = 7
    (row,) = graph.distances[[node]].toarray()
    other = int(np.flatnonzero(row)[0])
    ends = X[graph.distinct[[node, other]]]
    assert np.isclose(np.linalg.norm(ends[0] - ends[1]), row[other])
    assert (graph.inverse[graph.distinct] == np.arange(len(graph.distinct))).all()


def test_no_stage_starts_from_a_part_of_the_samples(cloud):
    diffusion, _ = cloud
    part = in_volume(diffusion, rng=np.random.default_rng(0))
    assert not kept_stages(part).kept
    assert kept_stages(diffusion).kept
