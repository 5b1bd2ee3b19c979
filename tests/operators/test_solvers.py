"""The solvers of eigenpairs: operators, the density of a spectrum, filters, and all together."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgError, circulant, eigh
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence
from scipy.spatial import KDTree

from manifactor import datasets
from manifactor._support.errors import NothingFoundError
from manifactor._support.parameters import given
from manifactor.operators.engines import blocks, solvers
from manifactor.operators.engines.blocks import (
    HostOperator,
    TiledRows,
    columns_of_tiles,
    locally_ordered,
    strip_of,
)
from manifactor.operators.engines.chebyshev import (
    FilterPlan,
    Pairs,
    Start,
    merged,
    orthonormalizer,
    rayleigh_ritz,
    spectral_density,
)
from manifactor.operators.engines.gpu import ResidentMatrix
from manifactor.operators.engines.solvers import SOLVERS, chebyshev, choose_solver
from manifactor.operators.kernel import affinity
from manifactor.operators.neighbors import neighbor_graph


def random():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def matrices():
    """A walk on samples in random order, and in the order of the leaves of a tree."""
    X, _ = datasets.sample("torus", 2500, random_state=0)
    order = KDTree(X).indices
    return [affinity(neighbor_graph(some, 64)).normalized() for some in (X, X[order])]


def test_tiles_multiply_as_the_rows_do(matrices, rng):
    block = rng.random((2500, 5), dtype=np.float32)
    rows = strip_of(matrices[1], slice(700, 1411))
    assert np.shares_memory(rows.data, matrices[1].data)
    assert (rows != matrices[1][700:1411]).nnz == 0
    product = TiledRows(rows) @ block
    assert product.dtype == np.float32
    np.testing.assert_allclose(product, rows @ block, rtol=1e-5)


def test_a_good_order_is_kept_and_a_random_one_is_not(matrices):
    mixed, ordered = matrices
    assert columns_of_tiles(ordered) < 4 < 12 < columns_of_tiles(mixed)
    assert (locally_ordered(ordered)[1] == np.arange(2500)).all()
    band, order = locally_ordered(mixed)
    assert sorted(order) == list(range(2500))
    assert columns_of_tiles(band) < columns_of_tiles(mixed) / 2


def test_a_recurrence_with_tiles_is_that_with_rows(matrices, rng, monkeypatch):
    found = []
    now = rng.random((2500, 6), dtype=np.float32)
    for most in (4.0, 0.0):
        monkeypatch.setattr(blocks, "MOST_TILE_COLUMNS", most)
        operator = HostOperator(matrices[1])
        before = now[::-1].copy()
        operator.recur(now, before, 0.2, 0.7, 1.3)
        found.append(before)
    np.testing.assert_allclose(*found, atol=1e-5)


def test_independent_vectors_become_orthonormal(rng):
    vectors = rng.normal(size=(50, 6)) * 10.0 ** np.arange(-3, 3)
    found = vectors @ orthonormalizer(vectors.T @ vectors)
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-10)
    # Of nearly dependent ones the independent ones do.
    vectors = rng.normal(size=(50, 4))
    vectors[:, 3] = vectors[:, 0] + 1e-9 * vectors[:, 3]
    found = vectors @ orthonormalizer(vectors.T @ vectors)
    np.testing.assert_allclose(found[:, :3].T @ found[:, :3], np.eye(3), atol=1e-8)


def test_locked_and_new_pairs_are_put_in_one_order():
    locked = Pairs(np.array([1.0, 0.5]), None, np.array([1e-9, 1e-9]))
    values, residuals = np.array([0.8, 0.5]), np.array([1e-2, np.inf])
    pairs = merged(locked, values, residuals, n_pairs=3, tolerance=1e-3)
    assert pairs.values.tolist() == [1.0, 0.8, 0.5, 0.5]
    assert pairs.order.tolist() == [0, 2, 1, 3]
    assert pairs.accurate.tolist() == [True, False, True]
    assert pairs.worst == pytest.approx(50)


@pytest.fixture(scope="module", params=["torus", "sphere_sphere"])
def matrix(request):
    X, _ = datasets.sample(request.param, 1000, random_state=0)
    return affinity(neighbor_graph(X, 40)).normalized()


@pytest.fixture(scope="module")
def exact(matrix):
    """All eigenvalues, the largest first."""
    return eigh(matrix.toarray(), eigvals_only=True)[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_all_solvers_agree_with_a_full_decomposition(matrix, exact, solver):
    pairs = SOLVERS[solver](matrix, 40, tolerance=1e-7, rng=random())
    values, vectors = pairs.values, pairs.vectors
    np.testing.assert_allclose(values, exact[:40], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(40), atol=1e-8)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert residuals.max() < 1e-6
    np.testing.assert_allclose(pairs.residuals, residuals, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 9, 60])
@pytest.mark.parametrize("solver", ["dense", "chebyshev"])
def test_every_copy_of_a_repeated_eigenvalue_is_found(solver, count):
    row = np.zeros(1200)
    row[1:41] = row[-40:] = 1 / 80  # every sample of a ring steps to any of 40 on either side
    ring = sp.csr_array(circulant(row))
    pairs = SOLVERS[solver](ring, count, tolerance=1e-7, rng=random())
    k = np.arange(1200)
    exact = np.sort(np.cos(2 * np.pi * np.outer(k, np.arange(1, 41)) / 1200).mean(axis=1))[::-1]
    np.testing.assert_allclose(pairs.values, exact[:count], atol=1e-9)
    assert pairs.products < 1000


@pytest.mark.slow
def test_a_spectrum_that_falls_off_fast_is_solved_to_its_end():
    X, _ = datasets.sample("rectangle_z", 900, noise=0.1, random_state=0)
    matrix = affinity(neighbor_graph(X, 64), density_correction=0).normalized()
    exact = eigh(matrix.toarray(), eigvals_only=True)[::-1][:200]
    pairs = chebyshev(matrix, 200, tolerance=1e-7, rng=random())
    assert exact[-1] < 0.1
    np.testing.assert_allclose(pairs.values, exact, atol=1e-9)
    assert pairs.residuals.max() < 1e-7


@pytest.mark.parametrize(
    ("solver", "broken", "error"),
    [
        ("arpack", "eigsh", ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))),
        ("arpack", "eigsh", ArpackError(-9)),
        ("chebyshev", "filtered", LinAlgError("singular")),
    ],
)
def test_a_solver_that_fails_is_replaced_by_a_full_decomposition(
    matrix, exact, monkeypatch, solver, broken, error
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(f"{solvers.__name__}.{broken}", fail)
    pairs, chosen = solvers.lowest(matrix, 5, solver=solver, tolerance=1e-7, rng=random())
    np.testing.assert_allclose(pairs.values, exact[:5], atol=1e-12)
    assert chosen.value == "dense"
    assert f"{solver} failed" in chosen.why
    # Where that does not fit into memory, the error says what to do.
    monkeypatch.setattr(solvers, "available_memory", lambda: 1e6)
    with pytest.raises(NothingFoundError, match="Choose another `solver`"):
        solvers.lowest(matrix, 5, solver=solver, tolerance=1e-7, rng=random())


@pytest.mark.slow
def test_the_density_of_a_spectrum_counts_its_eigenvalues(matrix, exact):
    with HostOperator(matrix) as operator:
        values, counts = spectral_density(operator, 60, rng=random())
    for count in (20, 60):
        level = np.interp(count, counts, values)
        assert abs((exact > level).sum() - count) < 5 * np.sqrt(2 * count / 8)


def test_vectors_that_span_an_invariant_subspace_end_the_process():
    with HostOperator(sp.csr_array(sp.diags_array([1.0, 0.5, 0.5, 0.0]))) as operator:
        found = spectral_density(operator, 2.0, rng=random())
    assert np.isfinite(found).all()


def test_what_is_rough_is_damped_in_steps_where_the_cut_is_near_1():
    near = FilterPlan(-0.05, 0.999, 0.9995)
    assert [round(1 - rough.cut, 6) for rough in near.rough()] == [0.1, 0.01]
    assert replace(near, cut=0.5).rough() == []


def test_the_solver_follows_the_kind_and_the_size_of_the_matrix():
    small, large = (sp.csr_array((n, n)) for n in (1500, 3000))
    there = ResidentMatrix(np.arange(6), np.empty(0), np.empty(0))
    cases = [(small, 20), (large, 1001), (large, 1000), (np.zeros((2000, 2000)), 20), (there, 3)]
    chosen = [choose_solver(matrix, pairs).value for matrix, pairs in cases]
    assert chosen == ["dense", "dense", "chebyshev", "arpack", "chebyshev"]
    assert choose_solver(small, 20, solver="arpack") == given("arpack")


@pytest.mark.slow
def test_a_start_from_some_of_the_samples_saves_products(matrix, exact):
    known = chebyshev(matrix, 40, tolerance=1e-7, spare=True, rng=random())
    rows = np.arange(0, matrix.shape[0], 3)
    start = Start(rows, known.vectors[rows], known.values, known.vectors[:, 0], 40)
    spent = np.zeros(2)
    for count in (2, 5, 12, 40):
        # The same random numbers: others alone change the number of products.
        cold, warm = (
            chebyshev(matrix, count, tolerance=1e-5, start=first, rng=np.random.default_rng(1))
            for first in (None, start)
        )
        np.testing.assert_allclose(warm.values, exact[:count], atol=1e-7)
        spent += cold.products, warm.products
    assert spent[1] < spent[0]


def test_ritz_pairs_of_an_invariant_subspace_are_eigenpairs(rng):
    exact = np.linspace(1, 0, 30)
    basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    with HostOperator((basis * exact) @ basis.T) as operator:
        block = basis[:, 1:6] @ rng.normal(size=(5, 5)) + basis[:, :1]
        locked = basis[:, :1].copy()
        values, residuals = rayleigh_ritz(operator, block, locked, 3)
    np.testing.assert_allclose(values, exact[1:6], atol=1e-12)
    np.testing.assert_allclose(np.abs(basis[:, 1:6].T @ block), np.eye(5), atol=1e-10)
    assert residuals[:3].max() < 1e-12
    assert np.isinf(residuals[3:]).all()


def test_progress_rises_to_the_end(matrix):
    heard = []
    chebyshev(matrix, 40, tolerance=1e-7, progress=heard.append, rng=random())
    assert heard == sorted(heard)
    assert 0 < heard[0] <= heard[-1] <= 1
