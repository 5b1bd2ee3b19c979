import numpy as np
import pytest

from manifactor import datasets
from manifactor.factoring.factors.factor import selection
from manifactor.factoring.gradients.geometry import GradientSettings, carre_du_champ

from ...conftest import box_spectrum
from ..looks import geometry_of


@pytest.fixture(scope="module", params=["samples", "distances only"])
def geometry(request, rectangle):
    return geometry_of(rectangle[0], 60, distances_only=request.param == "distances only")


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


def test_gradients_carry_the_energy_of_their_functions(geometry):
    energy = np.einsum("x,xpa,xpa->a", geometry.row_weights, geometry.gradients, geometry.gradients)
    np.testing.assert_allclose(energy, geometry.eigenvalues)


def test_products_beyond_the_spectrum_are_not_captured():
    X, _ = datasets.sample("torus", 800, random_state=0)
    geometry = geometry_of(X, 40)
    assert geometry.captured(unit(geometry, 0, 1)) > 0.95
    assert geometry.captured(unit(geometry, 37, 38)) < 0.9


@pytest.mark.slow
def test_slopes_of_the_coordinates_are_those_of_the_functions(rectangle):
    """The lowest function of the long side is a cosine: its gradient is a sine."""
    X, truth = rectangle
    geometry = geometry_of(X, 60)
    energy = (geometry.gradients[:, :, 0] ** 2).sum(axis=1)
    place = truth[0][geometry.rows].ravel()
    assert np.corrcoef(energy, np.sin(np.pi * place) ** 2)[0, 1] > 0.9


@pytest.mark.slow
def test_gradients_are_taken_at_as_many_samples_as_the_settings_say(rectangle):
    few = geometry_of(rectangle[0], 20, settings=GradientSettings(n_rows=100))
    assert len(few.rows) == len(few.gradients) == few.average.shape[0] == 100
    assert len(np.unique(few.rows)) == 100
    assert few.row_weights.sum() == pytest.approx(1)
    all_of_them = geometry_of(rectangle[0], 20, settings=GradientSettings(n_rows=9999))
    np.testing.assert_array_equal(all_of_them.rows, np.arange(len(rectangle[0])))


@pytest.mark.slow
def test_the_size_of_a_block_of_samples_does_not_matter(rectangle):
    one, many = (
        geometry_of(rectangle[0], 20, settings=GradientSettings(block_size=size))
        for size in (2**20, 64)
    )
    np.testing.assert_allclose(one.gradients, many.gradients, rtol=1e-6, atol=1e-9)
