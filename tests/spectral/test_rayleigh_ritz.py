import numpy as np
import pytest

from manifactor.spectral.chebyshev import merged, orthonormalizer, rayleigh_ritz
from manifactor.spectral.eigenpairs import SINGLE_PRECISION_RESIDUAL, Pairs, required
from manifactor.spectral.operators import HostOperator


def test_independent_vectors_become_orthonormal(rng):
    vectors = rng.normal(size=(50, 6)) * 10.0 ** np.arange(-3, 3)
    found = vectors @ orthonormalizer(vectors.T @ vectors)
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-10)


def test_of_nearly_dependent_vectors_the_independent_ones_become_orthonormal(rng):
    vectors = rng.normal(size=(50, 4))
    vectors[:, 3] = vectors[:, 0] + 1e-9 * vectors[:, 3]
    found = vectors @ orthonormalizer(vectors.T @ vectors)
    np.testing.assert_allclose(found[:, :3].T @ found[:, :3], np.eye(3), atol=1e-8)


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


def test_locked_and_new_pairs_are_put_in_one_order():
    locked = Pairs(np.array([1.0, 0.5]), None, np.array([1e-9, 1e-9]))
    values, residuals = np.array([0.8, 0.5]), np.array([1e-2, np.inf])
    pairs = merged(locked, values, residuals, n_pairs=3, tolerance=1e-3)
    assert pairs.values.tolist() == [1.0, 0.8, 0.5, 0.5]
    assert pairs.order.tolist() == [0, 2, 1, 3]
    assert pairs.accurate.tolist() == [True, False, True]
    assert pairs.n_accurate() == 1
    assert pairs.worst == pytest.approx(50)


@pytest.mark.parametrize(
    ("tolerance", "first", "middle"), [(1e-2, SINGLE_PRECISION_RESIDUAL, 5e-3), (1e-7, 1e-7, 1e-7)]
)
def test_no_more_is_asked_than_single_precision_or_the_tolerance(tolerance, first, middle):
    found = required(np.array([1.0, 0.5]), tolerance)
    np.testing.assert_allclose(found, [first, middle])
