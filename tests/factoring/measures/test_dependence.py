import numpy as np

from manifactor.factoring.factors.factor import make_factors, selection
from manifactor.factoring.measures.dependence import MeasureSettings, dependence, leakage

from ...conftest import box_spectrum
from ..places import interval


def test_independent_places_are_found_independent_and_dependent_ones_dependent(rng):
    t, u = rng.uniform(size=(2, 1000))
    assert dependence([interval(t), interval(u)], rng=rng) > 0.01
    shifted, folded = (t + 0.3 * u) / 1.3, np.abs(2 * t - 1)
    assert dependence([interval(t), interval(shifted)], rng=rng) < 0.01
    # No linear correlation, yet dependent.
    assert dependence([interval(t), interval(folded)], rng=rng) < 0.01


def test_squares_of_places_see_bends_and_their_ranks_see_quick_waves_too(rng):
    t, u = rng.uniform(size=(2, 1000))

    def by_squares(places):
        return dependence([interval(t), interval(places)], by_ranks=False, rng=rng)

    assert by_squares(u) > 0.01
    assert by_squares(np.abs(2 * t - 1)) < 0.01
    wave = np.cos(5 * np.pi * t)
    assert by_squares(wave) > 0.01
    assert dependence([interval(t), interval(wave)], rng=rng) < 0.01


def test_leakage_says_which_factor_predicts_which():
    spectrum, _ = box_spectrum([1.0], 5, n_samples=800)
    (whole,) = make_factors(spectrum, [selection(spectrum, [1])])
    # The same at t and 1 - t.
    (folded,) = make_factors(spectrum, [selection(spectrum, [2])])
    found = leakage([whole, folded])
    assert found[0, 1] > 0.99
    assert found[1, 0] < 0.1


def test_the_smallest_p_value_is_one_over_the_number_of_orders(rng):
    t = rng.uniform(size=500)
    few = MeasureSettings(permutations=19)
    assert dependence([interval(t), interval(t)], settings=few, rng=rng) == 1 / 20
