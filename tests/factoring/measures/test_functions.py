import numpy as np

from manifactor.factoring.factors.factor import make_factors, selection
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.measures.functions import completeness, undivided
from manifactor.factoring.measures.placed_samples import Measurement

from ...conftest import box_spectrum
from ..places import pure


def test_missing_functions_lower_the_completeness():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    x, y = (sorted(pure(waves, side)) for side in (0, 1))
    whole = make_factors(spectrum, [selection(spectrum, g) for g in (x, y)])
    holes = make_factors(spectrum, [selection(spectrum, g) for g in (x[1:], y)])
    assert completeness(spectrum, whole) > 0.99
    assert completeness(spectrum, holes) < 0.9


def test_products_that_are_too_many_lower_the_completeness_as_those_that_lack():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    x, y = (sorted(pure(waves, side)) for side in (0, 1))
    doubled = make_factors(spectrum, [selection(spectrum, g) for g in (x, sorted([*y, *y]))])
    assert completeness(spectrum, doubled) < 0.75


def test_a_block_that_might_be_divided_once_more_is_found_by_its_q_less_its_noise():
    sure = Split(2, np.array([0.0, 0.9]), np.array([0.0, 0.1]))
    doubtful = Split(1, np.array([0.7]), np.array([0.2]))
    single = Split(1, np.empty(0), np.empty(0))
    assert undivided([sure, single, doubtful]) == Measurement(0.7, 0.2)
    assert undivided([sure]) == Measurement(0.9, 0.1)
    assert undivided([single]).value == 1
