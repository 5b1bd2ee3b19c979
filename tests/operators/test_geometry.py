import numpy as np
import pytest

from manifactor.factors.factor import selection
from manifactor.models.peeling.peeling import peel
from manifactor.models.peeling.purity import (
    energy_along,
    impurity,
    of_lowest_factor,
    refine,
    without_energy,
)
from manifactor.operators.geometry import batch_size, carre_du_champ, count_directions
from manifactor.scores import regression_r2

from ..conftest import box_spectrum
from ..factoring.looks import geometry_of, look_at


@pytest.fixture(scope="module", params=["samples", "distances only"])
def geometry(request, rectangle):
    return geometry_of(rectangle[0][:800], 40, distances_only=request.param == "distances only")


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
    sine = np.sin(np.pi * (np.arange(1000) + 0.5) / 1000)
    np.testing.assert_allclose(champ, 2 * np.pi**2 * sine**2, atol=0.2 * 2 * np.pi**2)


def test_gradients_carry_the_energy_of_their_functions(geometry, rectangle):
    gradients, weights = geometry.gradients, geometry.row_weights
    assert weights.sum() == pytest.approx(1)
    energy = np.einsum("x,xpa,xpa->a", weights, gradients, gradients)
    np.testing.assert_allclose(energy, geometry.eigenvalues)
    # The lowest function of the long side is a cosine: its gradient is a sine.
    place = rectangle[1][0][geometry.rows].ravel()
    squares = (gradients[:, :, 0] ** 2).sum(axis=1)
    assert np.corrcoef(squares, np.sin(np.pi * place) ** 2)[0, 1] > 0.85


@pytest.mark.medium
def test_products_beyond_the_spectrum_are_not_captured():
    geometry = look_at("square")[0].geometry
    assert geometry.captured(unit(geometry, 0, 1)) > 0.95
    assert geometry.captured(unit(geometry, 57, 58)) < 0.9


def test_energy_lies_along_a_side_s_own_direction_only(geometry, rectangle):
    functions = geometry.spectrum.functions[:, 1:6]
    sides = []
    for place in rectangle[1]:
        wave = np.cos(np.pi * place[:800]).ravel()
        correlation = np.corrcoef(np.c_[wave, functions].T)[0, 1:]
        sides.append(unit(geometry, np.abs(correlation).argmax()))
    first, second = sides
    energy = energy_along(geometry, first)
    assert (first.T @ energy @ first).item() > 0.75 * geometry.rayleigh(first)
    assert (second.T @ energy @ second).item() < 0.05 * geometry.rayleigh(second)
    assert [count_directions(geometry, side) for side in sides] == [1, 1]
    assert count_directions(geometry, np.hstack(sides)) == 2


# Functions that vary along one factor only.


@pytest.fixture(scope="module")
def square():
    """Geometry of a square, its blocks, and the side that each block varies along."""
    look, truth = look_at("square")
    geometry = look.geometry
    blocks = peel([look], rng=np.random.default_rng(0)).looks[0].blocks
    lowest = [geometry.values(block[:, :1]) for block in blocks]
    sides = [max(truth, key=lambda side: regression_r2(side, low)) for low in lowest]
    return geometry, blocks, sides


@pytest.mark.parametrize(
    ("eigenvalues", "size"),
    [
        ([1, 4, 9], 1),
        ([1, 1.01, 2.0, 4], 2),
        ([1, 1.1, 1.2, 3], 3),
        ([2.0], 1),
        ([], 0),
        ([1, 1, 1], 3),
    ],
)
def test_functions_below_twice_the_lowest_eigenvalue_are_no_products(eigenvalues, size):
    assert batch_size(np.array(eigenvalues, dtype=float)) == size


@pytest.mark.medium
def test_what_has_no_energy_along_one_side_is_a_function_of_the_other(square):
    geometry, blocks, (_, other) = square
    found = without_energy(geometry, blocks[:1])
    assert all(regression_r2(other, geometry.values(found[:, [j]])) > 0.9 for j in range(3))
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1)
    assert (np.diff(geometry.rayleigh(found)) > 0).all()
    assert np.linalg.matrix_rank(found) == found.shape[1] <= 16


@pytest.mark.medium
def test_functions_of_the_other_side_are_left_out_of_a_factor(square):
    geometry, (first, second), (side, _) = square
    mixed = np.hstack([first[:, :3], second[:, 1:3]])
    mixed = mixed[:, np.argsort(geometry.rayleigh(mixed))]
    kept = of_lowest_factor(geometry, mixed)
    assert kept.shape[1] == 3
    assert all(regression_r2(side, geometry.values(kept[:, [j]])) > 0.9 for j in range(3))


@pytest.mark.slow
def test_refining_drops_what_points_elsewhere_unless_blocks_are_unions():
    look, _ = look_at("cube", 2000)
    geometry = look.geometry
    x, y, z = peel([look], rng=np.random.default_rng(0)).looks[0].blocks
    blocks = [x, np.hstack([y, z])]
    apart = refine(geometry, blocks)
    together = refine(geometry, blocks, unions=True)
    assert apart[1].shape[1] < together[1].shape[1]


@pytest.mark.medium
def test_one_block_needs_no_refining_and_one_that_is_empty_afterwards_leaves_nothing(square):
    geometry, (first, second), _ = square
    (refined,) = refine(geometry, [first])
    assert refined is first
    third = first[:, 1:2]  # there is no function without energy along both sides
    assert refine(geometry, [first, second, third]) == ()


@pytest.mark.slow
def test_going_around_a_moebius_band_takes_a_quarter_of_a_quantum(square):
    geometry, blocks, _ = square
    assert impurity(geometry, blocks) < 0.05
    look, _ = look_at("moebius", n_functions=80)
    band = peel([look], rng=np.random.default_rng(0)).looks[0]
    assert len(band.blocks) == 2
    assert 0.1 < impurity(band.geometry, band.blocks) < 0.4
