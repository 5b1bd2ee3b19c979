import numpy as np
import pytest

from manifactor.factoring.factor import selection
from manifactor.factoring.gradients.geometry import carre_du_champ
from manifactor.factoring.gradients.purity import count_directions, energy_along

from ...conftest import box_spectrum
from ..looks import geometry_of, look_at


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
