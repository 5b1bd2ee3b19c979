import numpy as np
import pytest

from manifactor.models.peeling import division
from manifactor.models.peeling.division import (
    commutant,
    divide,
    excess_in_halves,
    squared_cosine,
    unit_energy,
)
from manifactor.scores import regression_r2

from ..factoring.looks import look_at
from ..factoring.places import sphere


def test_noise_is_what_halves_add_to_a_number():
    added = excess_in_halves(np.array([0.1, 0.5]), [[0.2, 0.3], [0.4, 0.1]])
    np.testing.assert_allclose(added, [0.2, 0.0])
    assert excess_in_halves(np.ones(3), []).tolist() == [0, 0, 0]


def test_halves_add_as_much_to_the_square_of_a_mean_as_noise_does(rng):
    x = rng.normal(size=(4000, 2, 500))  # 4000 data sets of two halves of 500
    halves = x.mean(axis=2).T
    whole = halves.mean(axis=0)  # 0 but for noise
    noise = excess_in_halves(whole**2, list(halves**2))
    np.testing.assert_allclose(noise.mean(), (whole**2).mean(), rtol=0.1)


def test_the_commutant_of_orthogonal_blocks_has_one_zero_for_each(rng):
    champ = np.zeros((500, 6, 6))
    for start, stop in ((0, 2), (2, 5), (5, 6)):
        block = rng.normal(size=(500, 3, stop - start))
        champ[:, start:stop, start:stop] = block.transpose(0, 2, 1) @ block
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    q, elements = commutant(turn @ champ @ turn.T, np.full(500, 1 / 500))
    assert (np.abs(q[:3]) < 1e-9).all()
    assert q[3] > 0.1
    kernel, identity = elements[:3].reshape(3, -1), np.eye(6).ravel()
    np.testing.assert_allclose(kernel.T @ (kernel @ identity), identity, atol=1e-9)


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_the_commutant_of_a_sphere_has_no_zero_whatever_its_dimension(rng, dimension):
    x = sphere(rng, 20_000, dimension)
    champ = np.eye(dimension + 1) - x[:, :, None] * x[:, None]
    q, _ = commutant(champ, np.full(len(x), 1 / len(x)))
    np.testing.assert_allclose(q[1:], 1, atol=0.05)


def test_q_is_the_mean_squared_commutator_over_its_mean(rng):
    champ = rng.normal(size=(50, 3, 3))
    champ = champ @ champ.transpose(0, 2, 1)
    weights = rng.dirichlet(np.ones(50))
    q, elements = commutant(champ, weights)
    brackets = elements[:, None] @ champ - champ @ elements[:, None]
    by_hand = (brackets**2).sum(axis=(2, 3)) @ weights
    np.testing.assert_allclose(q[1:], by_hand[1:] / by_hand[1:].mean())
    np.testing.assert_allclose(np.abs(elements[0]), np.eye(3) / np.sqrt(3), atol=1e-9)


def test_cosines_are_one_for_parallel_and_zero_for_orthogonal_blocks(rng):
    along = rng.normal(size=(300, 2))
    weights = np.full(300, 1 / 300)
    labels = np.array([0, 1])
    parallel = np.ones((300, 2, 2)) * (along[:, :1] ** 2)[:, :, None]
    assert squared_cosine(unit_energy(parallel, weights), weights, labels) == pytest.approx(1)
    orthogonal = along[:, :, None] * along[:, None] * np.eye(2)
    assert squared_cosine(unit_energy(orthogonal, weights), weights, labels) == 0


def lowest(geometry, count):
    return np.eye(len(geometry.eigenvalues))[:, :count]


def divided(geometry, batch, max_blocks=6):
    rng = np.random.default_rng(0)
    (blocks,), split = divide([geometry], [batch], max_blocks=max_blocks, rng=rng)
    return blocks, split


@pytest.fixture
def square():
    look, truth = look_at("square")
    return look.geometry, truth


@pytest.mark.parametrize("turn", [0.0, 0.4, np.pi / 4])
def test_a_square_s_lowest_pair_divides_into_its_sides_however_it_is_turned(square, turn):
    geometry, truth = square
    c, s = np.cos(turn), np.sin(turn)
    blocks, split = divided(geometry, lowest(geometry, 2) @ np.array([[c, -s], [s, c]]))
    assert split.n_blocks == len(blocks) == 2
    values = [geometry.values(block) for block in blocks]
    r2 = np.array([[regression_r2(true, v) for v in values] for true in truth])
    assert r2.max(axis=0).min() > 0.98
    assert r2.min(axis=0).max() < 0.02


@pytest.mark.parametrize(
    ("name", "value", "n_blocks"),
    # Either estimate of inner products will do; a low q and orthogonal gradients are both needed.
    [("MIN_CAPTURED", 0.0, 2), ("MIN_CAPTURED", 1.0, 2), ("MAX_Q", 0.0, 1), ("MAX_COSINE", 0.0, 1)],
)
def test_what_divides_a_square(square, monkeypatch, name, value, n_blocks):
    monkeypatch.setattr(division, name, value)
    assert divided(square[0], lowest(square[0], 2))[1].n_blocks == n_blocks


def test_a_single_function_is_one_block_and_no_more_blocks_than_allowed_are_made(square):
    geometry, _ = square
    blocks, split = divided(geometry, lowest(geometry, 1))
    np.testing.assert_array_equal(blocks[0], lowest(geometry, 1))
    assert (split.n_blocks, split.q.size, split.noise.size) == (1, 0, 0)
    assert divided(geometry, lowest(geometry, 2), max_blocks=1)[1].n_blocks == 1
