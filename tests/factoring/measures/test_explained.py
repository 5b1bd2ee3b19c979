import numpy as np

from manifactor.factoring.factors.factor import make_factors, selection
from manifactor.factoring.measures.dependence import explained, least_explained_part

from ...conftest import box_spectrum
from ..places import interval


def test_a_direction_of_the_data_that_no_factor_explains_is_noticed(rng):
    spectrum, waves = box_spectrum([1.3, 1.0], 20, n_samples=1000)
    x, y = (waves.tolist().index(w) for w in ([1, 0], [0, 1]))
    factors = make_factors(spectrum, [selection(spectrum, [x]), selection(spectrum, [y])])
    places = np.hstack([factor.embedding for factor in factors])
    all_of_them = np.ones(len(places), dtype=bool)
    unknown = np.c_[places, 2 * rng.uniform(size=len(places))]
    assert explained(factors, places, all_of_them) > 0.9
    assert explained(factors, unknown, all_of_them) < 0.2
    assert explained(factors, None, all_of_them) == 1


def test_a_small_independent_part_that_no_factor_explains_is_noticed(rng):
    t, u, v = rng.uniform(size=(3, 2000))
    factors = [interval(t), interval(u)]
    everyone = np.ones(2000, dtype=bool)
    both, thin = np.column_stack([5 * t, u]), 0.05 * v[:, None]
    noise = 0.05 * rng.normal(size=(2000, 1))
    assert least_explained_part(factors, both, everyone) > 0.9
    assert least_explained_part(factors, np.hstack([both, thin]), everyone) < 0.05
    # Gaussian noise is no part that factors must explain.
    assert least_explained_part(factors, np.hstack([both, noise]), everyone) > 0.9
    assert least_explained_part(factors, None, everyone) == 1
