import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import circulant, eigh
from scipy.sparse.linalg import ArpackNoConvergence

from manifactor import datasets
from manifactor._support.parameters import given
from manifactor.spectral.eigenpairs import Start
from manifactor.spectral.filter_plan import FilterSettings
from manifactor.spectral.gpu import ResidentMatrix
from manifactor.spectral.kernel import affinity
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.solvers import SOLVERS, SolverSettings, chebyshev, choose_solver


@pytest.fixture(scope="module", params=["torus", "sphere_sphere"])
def matrix(request):
    X, _ = datasets.sample(request.param, 1000, random_state=0)
    return affinity(neighbor_graph(X, 40)).normalized()


@pytest.fixture(scope="module")
def exact(matrix):
    """All eigenvalues, the largest first."""
    return eigh(matrix.toarray(), eigvals_only=True)[::-1]


@pytest.fixture(scope="module")
def start(matrix):
    """The leading eigenvectors at a third of the samples."""
    known = chebyshev(matrix, 40, tolerance=1e-7, rng=np.random.default_rng(0))
    rows = np.arange(0, matrix.shape[0], 3)
    return Start(rows, known.vectors[rows], known.values)


@pytest.mark.slow
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_all_solvers_agree_with_a_full_decomposition(matrix, exact, solver):
    pairs = SOLVERS[solver](matrix, 40, tolerance=1e-7, rng=np.random.default_rng(0))
    values, vectors = pairs.values, pairs.vectors
    np.testing.assert_allclose(values, exact[:40], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(40), atol=1e-8)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert residuals.max() < 1e-6
    np.testing.assert_allclose(pairs.residuals, residuals, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 9, 120])
@pytest.mark.parametrize("solver", ["dense", "chebyshev"])
def test_every_copy_of_a_repeated_eigenvalue_is_found(solver, count):
    row = np.zeros(1200)
    row[1:41] = row[-40:] = 1 / 80  # every sample of a ring steps to any of 40 on either side
    ring = sp.csr_array(circulant(row))
    pairs = SOLVERS[solver](ring, count, tolerance=1e-7, rng=np.random.default_rng(0))
    k = np.arange(1200)
    exact = np.sort(np.cos(2 * np.pi * np.outer(k, np.arange(1, 41)) / 1200).mean(axis=1))[::-1]
    np.testing.assert_allclose(pairs.values, exact[:count], atol=1e-9)
    assert pairs.products < 1000


@pytest.mark.slow
def test_a_dense_matrix_has_the_same_eigenpairs(matrix):
    sparse, dense = (
        chebyshev(m, 20, tolerance=1e-7, rng=np.random.default_rng(0))
        for m in (matrix, matrix.toarray())
    )
    np.testing.assert_allclose(sparse.values, dense.values, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_the_same_seed_gives_the_same_vectors(matrix, solver):
    one, two = (
        SOLVERS[solver](matrix, 20, tolerance=1e-7, rng=np.random.default_rng(3)) for _ in range(2)
    )
    np.testing.assert_array_equal(one.vectors, two.vectors)


@pytest.mark.parametrize(
    ("n", "pairs", "solver", "reason"),
    [
        (1500, 20, "dense", "exact, and as fast as any up to 1,500 samples"),
        (3000, 1001, "dense", "fastest for 1,001 functions of 3,000 samples"),
        (3000, 1000, "chebyshev", "fastest beyond 1,500 samples, and miss no repeated"),
    ],
)
def test_the_solver_follows_the_size_and_says_why(n, pairs, solver, reason):
    choice = choose_solver(sp.csr_array((n, n)), pairs)
    assert choice.value == solver
    assert reason in choice.why


def test_the_caller_s_solver_is_kept():
    matrix = sp.csr_array((500, 500))
    assert choose_solver(matrix, 20, solver="arpack") == given("arpack")


def test_the_size_that_is_solved_directly_is_a_setting():
    few = SolverSettings(dense_samples=100)
    choice = choose_solver(sp.csr_array((500, 500)), 20, settings=few)
    assert choice.value == "chebyshev"
    assert "beyond 100 samples" in choice.why


def test_few_samples_on_a_device_are_filtered_too():
    matrix = ResidentMatrix(np.arange(6), np.empty(0), np.empty(0))
    choice = choose_solver(matrix, 3)
    assert (choice.value, choice.why) == (
        "chebyshev",
        "filtered subspaces are what runs on a device",
    )


@pytest.mark.slow
def test_a_spectrum_that_falls_off_fast_is_solved_to_its_end():
    X, _ = datasets.sample("rectangle_z", 1600, noise=0.1, random_state=0)
    matrix = affinity(neighbor_graph(X, 64), density_correction=0).normalized()
    exact = eigh(matrix.toarray(), eigvals_only=True)[::-1][:300]
    pairs = chebyshev(matrix, 300, tolerance=1e-7, rng=np.random.default_rng(0))
    assert exact[-1] < 0.1
    np.testing.assert_allclose(pairs.values, exact, atol=1e-9)
    assert pairs.residuals.max() < 1e-7


def test_a_full_kernel_is_solved_by_arpack_since_its_spectrum_falls_too_fast_for_the_filter():
    choice = choose_solver(np.zeros((2000, 2000)), 20)
    assert choice.value == "arpack"
    assert "falls off too fast for the filter" in choice.why


def test_no_convergence_is_an_error_that_names_another_solver(matrix, monkeypatch):
    def fail(*_, **__):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr("manifactor.spectral.solvers.eigsh", fail)
    with pytest.raises(
        ValueError, match="did not converge on these samples; choose `solver='chebyshev'`"
    ):
        SOLVERS["arpack"](matrix, 5, tolerance=1e-7, rng=np.random.default_rng(0))


@pytest.mark.slow
def test_a_start_from_some_of_the_samples_saves_products():
    X, _ = datasets.sample("torus", 3000, random_state=0)
    matrix = affinity(neighbor_graph(X, 64)).normalized()
    exact = chebyshev(matrix, 40, tolerance=1e-7, spare=True, rng=np.random.default_rng(0))
    rows = np.arange(0, 3000, 3)
    start = Start(rows, exact.vectors[rows], exact.values)
    # The same random numbers: others alone change the number of products.
    cold, warm = (
        chebyshev(matrix, 40, start=first, tolerance=1e-4, rng=np.random.default_rng(1))
        for first in (None, start)
    )
    np.testing.assert_allclose(warm.values, exact.values[:40], atol=1e-7)
    assert warm.products < cold.products


@pytest.mark.slow
def test_when_the_budget_is_used_up_the_accurate_pairs_are_returned(matrix, exact):
    few = chebyshev(
        matrix,
        40,
        tolerance=1e-7,
        rng=np.random.default_rng(0),
        settings=SolverSettings(filter=FilterSettings(budget=8)),
    )
    assert 2 <= len(few.values) < 40
    np.testing.assert_allclose(few.values, exact[: len(few.values)], atol=1e-6)


def test_progress_rises_to_the_end(matrix):
    heard = []
    chebyshev(matrix, 40, tolerance=1e-7, progress=heard.append, rng=np.random.default_rng(0))
    assert heard == sorted(heard)
    assert 0 < heard[0] <= heard[-1] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 5, 8, 12])
def test_few_pairs_are_found_from_a_start(matrix, exact, start, count):
    pairs = chebyshev(matrix, count, tolerance=1e-5, start=start, rng=np.random.default_rng(1))
    np.testing.assert_allclose(pairs.values, exact[:count], atol=1e-7)


@pytest.mark.slow
def test_single_precision_s_noise_is_smoothed_before_pairs_are_read():
    X, _ = datasets.sample("torus", 3000, random_state=0)
    matrix = affinity(neighbor_graph(X, 40)).normalized()
    spent = []
    for smoothed in (1.0, 0.0):
        settings = SolverSettings(filter=FilterSettings(smoothed_below=smoothed))
        pairs = chebyshev(
            matrix, 60, tolerance=3e-6, rng=np.random.default_rng(0), settings=settings
        )
        spent.append(pairs.products)
        assert pairs.residuals.max() <= 3.1e-6
    assert spent[0] < spent[1]
