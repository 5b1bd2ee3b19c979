import numpy as np

from manifactor.factoring.judging.advice import SENSES
from manifactor.factoring.judging.criteria import criteria
from manifactor.factoring.judging.weighing import TESTS_OF_SENSES, clusters_of_factors, judge_places
from manifactor.factoring.settings import SENSE_NAMES

from ..places import interval


def test_every_sense_of_a_product_has_tests_of_places_and_a_sentence():
    assert set(TESTS_OF_SENSES) == set(SENSES) == set(SENSE_NAMES)
    names = {criterion.name for criterion in criteria()}
    assert {name for tests in TESTS_OF_SENSES.values() for name in tests} <= names


def test_right_places_on_a_square_pass_the_tests_of_every_sense(rng):
    places = rng.uniform(size=(2, 600))
    factors = [interval(t) for t in places]
    for sense, names in TESTS_OF_SENSES.items():
        tests = judge_places(factors, places.T, sense=sense)
        assert [test.name for test in tests] == list(names)
        assert all(test.passed for test in tests)


def test_limits_of_the_metric_follow_the_number_of_samples(rng):
    limits = []
    for n in (400, 1600):
        places = rng.uniform(size=(2, n))
        tests = judge_places([interval(t) for t in places], places.T)
        limits.append({test.name: test.limit for test in tests})
    few, many = limits
    # .04 + 2.7 / sqrt(n)
    np.testing.assert_allclose([few["skew"], many["skew"]], [0.175, 0.1075])
    assert few["folds"] == many["folds"]


def test_clusters_are_told_with_their_factor_and_their_sizes(rng):
    even = interval(rng.uniform(size=1000))
    left, right = rng.uniform(0, 0.4, size=700), rng.uniform(0.6, 1, size=300)
    two = interval(np.concatenate([left, right]))
    assert clusters_of_factors([even, even]) == ""
    assert clusters_of_factors([even, two]) == (
        "the samples fall into 2 clusters, of 70 % and 30 % of the samples, along factor 2"
    )
