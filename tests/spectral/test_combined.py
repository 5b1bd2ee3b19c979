import numpy as np
import pytest

from manifactor import DiffusionMap
from manifactor.spectral.diffusion import combined_functions, is_combinable


@pytest.fixture(scope="module")
def diffusion(torus):
    return DiffusionMap(20, random_state=0).fit(torus[0]).diffusion_


def test_combinations_are_those_of_the_extended_functions(diffusion, torus, rng):
    coefficients = rng.normal(size=(20, 3))
    new = torus[0][:200] + 0.05 * rng.normal(size=(200, 4))
    functions = combined_functions(diffusion, coefficients, reach=np.inf, n_new=200)
    found = functions(new).combined
    np.testing.assert_allclose(found, diffusion.extended(new) @ coefficients, rtol=1e-9)


def test_samples_of_the_fit_have_their_own_values(diffusion, torus, rng):
    coefficients = rng.normal(size=(20, 3))
    functions = combined_functions(diffusion, coefficients, reach=np.inf, n_new=200)
    at = functions(torus[0][:50])
    np.testing.assert_array_equal(at.distance, 0)
    own = diffusion.extended(torus[0][:50]) @ coefficients
    np.testing.assert_allclose(at.combined, own, rtol=1e-9)


def test_a_value_does_not_depend_on_the_samples_beside_it(diffusion, torus, rng):
    coefficients = rng.normal(size=(20, 3))
    new = np.tile(torus[0][:1000], (3, 1)) + 0.05 * rng.normal(size=(3000, 4))
    few, many = (
        combined_functions(diffusion, coefficients, reach=1.0, n_new=n) for n in (1, 10**6)
    )
    whole = many(new).combined
    for rows in (slice(0, 1), slice(7, 30), slice(900, 2100)):
        np.testing.assert_array_equal(few(new[rows]).combined, whole[rows])


@pytest.mark.parametrize(
    "parameters", [{"bandwidth": "local"}, {"n_neighbors": "all"}, {"neighbors": "brute"}]
)
def test_other_kernels_and_searches_are_left_to_the_extension(torus, parameters):
    fit = DiffusionMap(5, random_state=0, **parameters).fit(torus[0][:300])
    assert not is_combinable(fit.diffusion_)
