import numpy as np
import pytest

from manifactor.factoring.gradients.division import commutant, squared_cosine, unit_energy


def test_the_commutant_of_orthogonal_blocks_has_one_zero_for_each(rng):
    blocks = [
        rng.normal(size=(500, 3, 2)),
        rng.normal(size=(500, 3, 3)),
        rng.normal(size=(500, 3, 1)),
    ]
    champ = np.zeros((500, 6, 6))
    for start, block in zip((0, 2, 5), blocks, strict=True):
        stop = start + block.shape[2]
        champ[:, start:stop, start:stop] = block.transpose(0, 2, 1) @ block
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    q, elements = commutant(turn @ champ @ turn.T, np.full(500, 1 / 500))
    assert (np.abs(q[:3]) < 1e-9).all()
    assert q[3] > 0.1
    kernel = elements[:3].reshape(3, -1)
    np.testing.assert_allclose(
        kernel.T @ (kernel @ np.eye(6).ravel()), np.eye(6).ravel(), atol=1e-9
    )


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_the_commutant_of_a_sphere_has_no_zero_whatever_its_dimension(rng, dimension):
    x = rng.normal(size=(20_000, dimension + 1))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    champ = np.eye(dimension + 1) - x[:, :, None] * x[:, None]
    q, _ = commutant(champ, np.full(len(x), 1 / len(x)))
    np.testing.assert_allclose(q[1:], 1, atol=0.05)


def test_q_is_the_mean_squared_commutator_over_its_mean(rng):
    champ = rng.normal(size=(50, 3, 3))
    champ = champ @ champ.transpose(0, 2, 1)
    weights = rng.uniform(size=50)
    weights /= weights.sum()
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


def test_every_function_has_mean_energy_one_whatever_its_scale(rng):
    gradients = rng.normal(size=(100, 2, 3)) * [1e-2, 1.0, 1e2]
    weights = np.full(100, 1 / 100)
    champ = unit_energy(gradients.transpose(0, 2, 1) @ gradients, weights)
    np.testing.assert_allclose(np.einsum("x,xaa->a", weights, champ), 1)
