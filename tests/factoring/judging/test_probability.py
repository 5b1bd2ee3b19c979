import json
from importlib.resources import files

import numpy as np
import pytest

from manifactor.judging.probability import (
    KNOTS,
    MOST,
    Sampling,
    kind_of_several,
    of_several,
    probability,
    shortcoming,
)
from manifactor.judging.table import CRITERIA, OF_SAMPLES

TABLE = json.loads(
    files("manifactor.judging").joinpath("probability.json").read_text(encoding="utf-8")
)
MANY = Sampling(3000, 2.0, 0.1)


@pytest.mark.parametrize("part", ["several", "one", "factor"])
def test_a_larger_shortcoming_never_makes_a_result_likelier(part):
    for odds in TABLE[part]["log odds"].values():
        assert len(odds) == len(KNOTS)
        assert odds[0] == 0
        assert (np.diff(odds) <= 0).all()


def test_every_sense_of_samples_has_log_odds_to_start_from():
    kinds = {kind_of_several(sense, count) for sense in OF_SAMPLES for count in (2, 3)}
    assert kinds <= set(TABLE["several"]["kinds"])


@pytest.mark.parametrize("name", ["leakage", "completeness", "independence", "folds", "samples"])
def test_the_shortcoming_of_a_test_is_one_at_its_limit_and_more_where_it_fails(name):
    criterion = CRITERIA[name]
    worse = 1.2 if criterion.at_most else 1 / 1.2
    assert shortcoming(criterion.judge(criterion.limit)) == pytest.approx(1)
    assert shortcoming(criterion.judge(worse * criterion.limit)) > 1
    assert shortcoming(criterion.judge(criterion.limit / worse)) < 1
    assert shortcoming(criterion.judge(np.nan)) == MOST


def test_a_product_with_good_tests_is_likelier_than_one_with_failed_tests():
    def right(leakage, samples, confidence=1.0, confirmed=1.0):
        tests = (CRITERIA["leakage"].judge(leakage), CRITERIA["folds"].judge(0.0))
        faults = of_several("geometry", tests, (1, 1), confidence, confirmed, samples)
        return probability("several", "geometry", faults)

    assert right(0.0, MANY) > 0.9 > right(0.5, MANY)
    assert right(0.0, MANY) > right(0.0, Sampling(300, 2.0, 0.1))
    assert right(0.0, MANY) > right(0.0, MANY, confidence=0.5)
    # Another sense that shows the same tells more than none, and one that shows others less.
    assert right(0.0, MANY) > right(0.0, MANY, confirmed=np.nan) > right(0.0, MANY, confirmed=0)


def test_axes_of_a_gaussian_cloud_are_judged_by_their_own_test_in_a_sum():
    tests = (CRITERIA["identified"].judge(2),)
    assert "identified" in of_several("geometry", tests, (1, 1), 1.0, np.nan, MANY)
    assert "identified" not in of_several("sum", tests, (1, 1), 1.0, np.nan, MANY)


def test_nothing_is_known_of_samples_unlike_those_of_the_table():
    assert MANY.is_known
    assert not Sampling(50, 2.0, 0.1).is_known
    assert not Sampling(3000, 12.0, 0.1).is_known
