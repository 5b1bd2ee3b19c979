import numpy as np
import pytest

from manifactor.factoring.gradients.division import DivisionSettings, divide
from manifactor.scores import regression_r2

from ..looks import look_at


def lowest(geometry, count):
    return np.eye(len(geometry.eigenvalues))[:, :count]


def divided(geometry, batch, max_blocks=6, **settings):
    (blocks,), split = divide(
        [geometry],
        [batch],
        max_blocks=max_blocks,
        settings=DivisionSettings(**settings),
        rng=np.random.default_rng(0),
    )
    return blocks, split


@pytest.fixture(scope="module")
def square():
    look, truth = look_at("square")
    return look.geometry, truth


@pytest.mark.parametrize("turn", [0.0, 0.4, np.pi / 4])
def test_a_square_s_lowest_pair_divides_into_its_sides_however_it_is_turned(square, turn):
    geometry, truth = square
    c, s = np.cos(turn), np.sin(turn)
    batch = lowest(geometry, 2) @ np.array([[c, -s], [s, c]])
    blocks, split = divided(geometry, batch)
    assert split.n_blocks == len(blocks) == 2
    values = [geometry.values(block) for block in blocks]
    r2 = np.array([[regression_r2(true, v) for v in values] for true in truth])
    assert r2.max(axis=0).min() > 0.98
    assert r2.min(axis=0).max() < 0.02


@pytest.mark.parametrize("min_captured", [0.0, 1.0])
def test_either_estimate_of_inner_products_divides_a_square(square, min_captured):
    geometry, _ = square
    _, split = divided(geometry, lowest(geometry, 2), min_captured=min_captured)
    assert split.n_blocks == 2


@pytest.mark.slow
def test_a_disk_s_lowest_pair_stays_one_block():
    geometry = look_at("disk")[0].geometry
    blocks, split = divided(geometry, lowest(geometry, 2))
    assert split.n_blocks == len(blocks) == 1
    assert split.q[0] > 0.65


def test_a_single_function_is_one_block_and_has_no_q(square):
    geometry, _ = square
    blocks, split = divided(geometry, lowest(geometry, 1))
    np.testing.assert_array_equal(blocks[0], lowest(geometry, 1))
    assert (split.n_blocks, split.q.size, split.noise.size) == (1, 0, 0)


def test_no_more_blocks_than_allowed(square):
    geometry, _ = square
    assert divided(geometry, lowest(geometry, 2), max_blocks=1)[1].n_blocks == 1


def test_blocks_need_both_a_low_q_and_orthogonal_gradients(square):
    geometry, _ = square
    batch = lowest(geometry, 2)
    assert divided(geometry, batch, max_q=0.0)[1].n_blocks == 1
    assert divided(geometry, batch, max_cosine=0.0)[1].n_blocks == 1
