"""What the solvers need of a matrix, on the host and on a device."""

import numpy as np
import pytest

from manifactor import datasets
from manifactor.operators.engines import gpu
from manifactor.operators.engines.blocks import DeviceOperator, HostOperator
from manifactor.operators.engines.gpu import resident
from manifactor.operators.kernel import affinity
from manifactor.operators.neighbors import neighbor_graph


@pytest.fixture(scope="module")
def matrix():
    X, _ = datasets.sample("torus", 1500, random_state=0)
    return affinity(neighbor_graph(X, 40)).normalized()


@pytest.fixture(params=["host", pytest.param("device", marks=pytest.mark.torch)])
def side(request, matrix, monkeypatch):
    """An operator, and what makes a block of an array."""
    if request.param == "host":
        return HostOperator(matrix), np.array
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(gpu, "PANEL_ROWS", 400)
    operator = DeviceOperator(resident(matrix, "cpu"))
    return operator, torch.tensor


def test_an_operator_clears_known_vectors_and_makes_inner_products(side, rng):
    operator, block_of = side
    block = block_of(rng.normal(size=(1500, 7)))
    known = block_of(np.linalg.qr(rng.normal(size=(1500, 3)))[0])
    operator.clear(block, known)
    assert abs(known.T @ block).max() < 1e-12
    image = operator.product(block)
    for other in (block, image):
        expected = np.asarray(block.T @ other)
        np.testing.assert_allclose(operator.inner(block, other), expected, atol=1e-10)


def test_residuals_are_those_of_the_rotated_vectors(side, rng):
    operator, block_of = side
    before = rng.normal(size=(1500, 7))
    rotation, values = rng.normal(size=(7, 7)), rng.normal(size=4)
    block = block_of(before)
    image = operator.product(block)
    operator.rotate(block, rotation)
    np.testing.assert_allclose(np.asarray(block), before @ rotation, atol=1e-12)
    off = np.asarray(image) @ rotation[:, :4] - (before @ rotation)[:, :4] * values
    found = operator.residual_norms(image, block, rotation[:, :4], values)
    np.testing.assert_allclose(found, np.linalg.norm(off, axis=0))


def test_a_recurrence_overwrites_the_vectors_before(side, rng):
    operator, block_of = side
    now, before = (block_of(rng.normal(size=(1500, 5))) for _ in range(2))
    after = 0.7 * (operator.product(now) - 0.2 * now) - 1.3 * before
    operator.recur(now, before, 0.2, 0.7, 1.3)
    np.testing.assert_allclose(np.asarray(before), np.asarray(after), atol=1e-12)


def test_vectors_on_some_samples_come_back_in_the_caller_s_order(side, rng):
    operator, _ = side
    rows, vectors = np.array([3, 700, 1400]), rng.normal(size=(3, 4))
    block = operator.filled(rows, vectors)
    found = np.asarray(operator.vectors(block, np.array([2, 0])))
    np.testing.assert_allclose(found[rows], vectors[:, [2, 0]], rtol=1e-6)
    assert np.count_nonzero(found) == 6


def test_rows_are_scaled_in_the_caller_s_order(side, rng):
    operator, _ = side
    vectors = rng.normal(size=(operator.n, 3))
    block = operator.filled(np.arange(operator.n), vectors)
    factors = rng.uniform(1, 2, operator.n)
    operator.scale_rows(block, factors)
    scaled = np.asarray(operator.vectors(block, np.arange(3)))
    np.testing.assert_allclose(scaled, vectors * factors[:, None], rtol=1e-5)
