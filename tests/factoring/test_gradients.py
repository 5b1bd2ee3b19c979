import numpy as np
import pytest

from manifactor import DiffusionMap, datasets
from manifactor.factoring.factor import selection
from manifactor.factoring.gradients import (
    carre_du_champ,
    commutant,
    cosines,
    count_directions,
    energy_along,
    measure_geometry,
    normalised,
)

from ..conftest import box_spectrum


@pytest.fixture(scope="module", params=["samples", "distances only"])
def geometry(request, rectangle):
    X, _ = rectangle
    fit = DiffusionMap(60, random_state=0).fit(X)
    samples = X if request.param == "samples" else None
    return measure_geometry(
        fit.spectrum_, fit._affinity, samples, rng=np.random.default_rng(0)
    )


def unit(geometry, *indices):
    return np.eye(len(geometry.eigenvalues))[:, list(indices)]


def test_gradients_along_different_sides_are_orthogonal_everywhere():
    spectrum, waves = box_spectrum([1.3, 1.0], 60, n_samples=2000)
    x, y = (waves.tolist().index(w) for w in ([1, 0], [0, 1]))
    champ = carre_du_champ(spectrum, selection(spectrum, [x, y]), slice(None))
    np.testing.assert_allclose(champ[:, 0, 1], 0, atol=1e-9)


def test_the_carre_du_champ_of_a_cosine_is_a_squared_sine():
    spectrum, _ = box_spectrum([1.0], 30, n_samples=1000)
    champ = carre_du_champ(spectrum, selection(spectrum, [1]), slice(None))[:, 0, 0]
    t = (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(
        champ, 2 * np.pi**2 * np.sin(np.pi * t) ** 2, atol=0.2 * 2 * np.pi**2
    )


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


def test_energy_along_a_side_is_all_of_its_own_and_none_of_the_other_s(
    geometry, rectangle
):
    _, (x, y) = rectangle
    correlation = [
        np.abs(
            np.corrcoef(
                np.c_[np.cos(np.pi * t), geometry.spectrum.functions[:, 1:6]].T
            )[0, 1:]
        )
        for t in (x, y)
    ]
    first, second = (int(c.argmax()) for c in correlation)
    energy = energy_along(geometry, unit(geometry, first))
    assert energy[first, first] > 0.75 * geometry.eigenvalues[first]
    assert energy[second, second] < 0.05 * geometry.eigenvalues[second]
    assert count_directions(geometry, unit(geometry, first)) == 1
    assert count_directions(geometry, unit(geometry, first, second)) == 2


def test_gradients_carry_the_energy_of_their_functions(geometry):
    energy = np.einsum(
        "x,xpa,xpa->a", geometry.row_weights, geometry.gradients, geometry.gradients
    )
    np.testing.assert_allclose(energy, geometry.eigenvalues)


def test_cosines_are_one_for_parallel_and_zero_for_orthogonal_blocks(rng):
    along = rng.normal(size=(300, 2))
    parallel = along[:, :, None] * along[:, None]
    weights = np.full(300, 1 / 300)
    rank_one = np.ones((300, 2, 2)) * (along[:, :1] ** 2)[:, :, None]
    assert cosines(
        normalised(rank_one, weights), weights, np.array([0, 1])
    ) == pytest.approx(1)
    diagonal = parallel * np.eye(2)
    assert cosines(normalised(diagonal, weights), weights, np.array([0, 1])) == 0


def test_products_beyond_the_spectrum_are_not_captured():
    X, _ = datasets.sample("torus", 800, random_state=0)
    fit = DiffusionMap(40, random_state=0).fit(X)
    geometry = measure_geometry(
        fit.spectrum_, fit._affinity, X, rng=np.random.default_rng(0)
    )
    assert geometry.captured(unit(geometry, 0, 1)) > 0.95
    assert geometry.captured(unit(geometry, 37, 38)) < 0.9
