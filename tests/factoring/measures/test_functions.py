import numpy as np

from manifactor.factoring.factors.factor import make_factors, selection
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.measures.dependence import dependence, leakage
from manifactor.factoring.measures.explained import explained
from manifactor.factoring.measures.functions import completeness, undivided
from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.measures.settings import MeasureSettings

from ...conftest import box_spectrum
from ..places import interval


def pure(waves, side):
    return set(np.flatnonzero((np.delete(waves, side, axis=1) == 0).all(axis=1))) - {0}


def test_independent_places_are_found_independent_and_dependent_ones_dependent(rng):
    t, u = rng.uniform(size=(2, 1000))
    assert dependence([interval(t), interval(u)], rng=rng) > 0.01
    assert (
        dependence([interval(t), interval(np.clip(t + 0.3 * u, 0, 1.3) / 1.3)], rng=rng)
        < 0.01
    )
    # no linear correlation, yet dependent
    assert dependence([interval(t), interval(np.abs(2 * t - 1))], rng=rng) < 0.01


def test_a_direction_of_the_data_that_no_factor_explains_is_noticed(rng):
    spectrum, waves = box_spectrum([1.3, 1.0], 20, n_samples=1000)
    x, y = (waves.tolist().index(w) for w in ([1, 0], [0, 1]))
    factors = make_factors(
        spectrum, [selection(spectrum, [x]), selection(spectrum, [y])]
    )
    places = np.hstack([factor.embedding for factor in factors])
    all_of_them = np.ones(len(places), dtype=bool)
    assert explained(factors, places, all_of_them) > 0.9
    assert (
        explained(
            factors, np.c_[places, 2 * rng.uniform(size=len(places))], all_of_them
        )
        < 0.2
    )
    assert explained(factors, None, all_of_them) == 1


def test_missing_functions_lower_the_completeness():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    x, y = (sorted(pure(waves, side)) for side in (0, 1))
    whole = make_factors(spectrum, [selection(spectrum, g) for g in (x, y)])
    holes = make_factors(spectrum, [selection(spectrum, g) for g in (x[1:], y)])
    assert completeness(spectrum, whole) > 0.99
    assert completeness(spectrum, holes) < 0.9


def test_leakage_says_which_factor_predicts_which():
    spectrum, _ = box_spectrum([1.0], 5, n_samples=800)
    (whole,) = make_factors(spectrum, [selection(spectrum, [1])])
    (folded,) = make_factors(
        spectrum, [selection(spectrum, [2])]
    )  # the same at t and 1 - t
    found = leakage([whole, folded])
    assert found[0, 1] > 0.99
    assert found[1, 0] < 0.1


def test_the_smallest_p_value_is_one_over_the_number_of_orders(rng):
    t = rng.uniform(size=500)
    few = MeasureSettings(permutations=19)
    assert dependence([interval(t), interval(t)], settings=few, rng=rng) == 1 / 20


def test_products_that_are_too_many_lower_the_completeness_as_those_that_lack():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    x, y = (sorted(pure(waves, side)) for side in (0, 1))
    doubled = make_factors(
        spectrum, [selection(spectrum, g) for g in (x, sorted([*y, *y]))]
    )
    assert completeness(spectrum, doubled) < 0.75


def test_a_block_that_might_be_divided_once_more_is_found_by_its_q_less_its_noise():
    sure = Split(2, np.array([0.0, 0.9]), np.array([0.0, 0.1]))
    doubtful = Split(1, np.array([0.7]), np.array([0.2]))
    single = Split(1, np.empty(0), np.empty(0))
    assert undivided([sure, single, doubtful]) == Measurement(0.7, 0.2)
    assert undivided([sure]) == Measurement(0.9, 0.1)
    assert undivided([single]).value == 1
