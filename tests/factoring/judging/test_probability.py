from types import MappingProxyType

import numpy as np
import pytest

from manifactor.judging.probability import (
    LARGEST,
    MOST_OF_UNLIKE,
    Agreement,
    Sampling,
    agreement,
    costs,
    is_unlike,
    of_several,
    probability,
    shortcoming,
    trees_of,
)
from manifactor.judging.table import CRITERIA
from manifactor.statistics import Measurement

MANY = Sampling(2000, 2.0, 0.1, 3)
# Of a product of two curves.
GOOD = {
    "completeness": 1.0,
    "product": 0.95,
    "undivided": 1.0,
    "agreement": 0.99,
    "leakage": 0.02,
    "folds": 0.0,
    "filling": 0.0,
    "skew": 0.0,
    "crossing": 0.0,
    "modulation": 0.05,
    "modulation in data": 0.02,
    "hidden direction": 0.02,
    "explained": 0.99,
    "dimensions": 0.0,
    "lowest functions": 1.0,
    "parts": 0.9,
}


TOLD = {"noise": 0.02, "distance correlation": 0.0, "smallest factor": 0.7, "dependence": 0.5}


def inputs(sampling=MANY, others=Agreement((0.99,)), numbers=MappingProxyType({}), **values):
    tests = [CRITERIA[name].judge(value) for name, value in (GOOD | values).items()]
    numbers = {name: Measurement(value) for name, value in TOLD.items()} | dict(numbers)
    shapes = [("interval", 1), ("circle", 1)]
    return of_several("geometry", "geometry", tests, shapes, 1.0, others, sampling, numbers)


def test_results_with_more_and_with_fewer_factors_are_told_apart():
    known = agreement(2, [(2, 0.5), (3, 0.9), (2, 0.8), (3, 0.4)]).inputs
    assert known == pytest.approx(
        {
            "disagreement": 0.2,
            "second disagreement": 0.5,
            "disagreement with more": 0.1,
            "other results": 4,
        }
    )
    assert agreement(3, [(2, 0.7)]).inputs["disagreement with fewer"] == pytest.approx(0.3)


def test_what_has_no_limit_is_an_input_as_it_is_or_as_the_shortcoming_of_another_sense():
    limit = CRITERIA["crossing"].limit + CRITERIA["crossing"].slack / np.sqrt(MANY.n_samples)
    numbers = {"noise": Measurement(0.3), "crossing": Measurement(2 * limit)}
    # Of a test, and of a number that is none of a result's factors, nothing more is told.
    known = inputs(numbers={**numbers, "certainty": Measurement(0.9)})
    assert known["noise"] == 0.3
    assert "told crossing" not in known
    assert "certainty" not in known
    test = CRITERIA["folds"].judge(0.0)
    shapes = [("interval", 1), ("circle", 1)]
    of_sum = of_several("sum", "sum", [test], shapes, 1.0, Agreement(), MANY, numbers)
    assert of_sum["told crossing"] == pytest.approx(2)
    assert of_sum["failed tests"] == 0


@pytest.mark.parametrize("part", ["right", "true", "factor"])
def test_a_larger_shortcoming_never_makes_a_result_likelier(rng, part):
    trees = trees_of(part)
    rows = rng.uniform(trees.lowest, trees.highest, size=(30, len(trees.names)))
    falling = {*trees.shortcomings, "disagreement", "uncertainty of coordinates", "own leakage"}
    for number in np.flatnonzero(np.isin(trees.names, [*falling])):
        worse = rows.copy()
        worse[:, number] += rng.uniform(0, 2, size=len(rows))
        assert (trees.log_odds(worse) <= trees.log_odds(rows) + 1e-6).all()


@pytest.mark.parametrize("name", ["leakage", "completeness", "independence", "folds", "samples"])
def test_the_shortcoming_of_a_test_is_one_at_its_limit_and_more_where_it_fails(name):
    criterion = CRITERIA[name]
    worse = 1.2 if criterion.at_most else 1 / 1.2
    assert shortcoming(criterion.judge(criterion.limit)) == pytest.approx(1)
    assert shortcoming(criterion.judge(worse * criterion.limit)) > 1
    assert shortcoming(criterion.judge(criterion.limit / worse)) < 1
    assert shortcoming(criterion.judge(np.nan)) == LARGEST


def test_a_product_with_good_tests_is_sure_and_bad_ones_cost_it_that():
    assert probability("right", inputs()) > 0.95
    bad = inputs(leakage=0.6, folds=0.3, filling=0.2)
    assert probability("right", bad) < 0.5
    # Other models that show other factors tell against it.
    assert probability("right", inputs(others=Agreement((0.1,)))) < probability("right", inputs())
    leaking = inputs(leakage=0.6)
    (first, without), *_ = costs("right", leaking, probability("right", leaking))
    assert first == "leakage"
    assert probability("right", leaking) < without <= probability("right", inputs())
    assert costs("right", inputs(), probability("right", inputs())) == []


def test_less_is_said_of_samples_unlike_those_that_were_learnt_from():
    assert not is_unlike("right", inputs())
    for far in (Sampling(40, 2.0, 0.1, 3), Sampling(2000, 40.0, 0.1, 3)):
        assert is_unlike("right", inputs(far))
        assert probability("right", inputs(far)) <= MOST_OF_UNLIKE


def test_unknown_inputs_go_where_those_of_the_problems_went():
    trees = trees_of("right")
    odds = trees.log_odds(trees.row({}))
    assert np.isfinite(odds).all()
    np.testing.assert_array_equal(odds, trees.log_odds(np.full((2, len(trees.names)), np.nan))[:1])
