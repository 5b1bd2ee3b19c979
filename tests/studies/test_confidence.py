import pytest

from manifactor.factoring.judging.criteria import Criterion
from studies.confidence import margin, verdict_confidence


def judged(value, limit, at_least, noise=float("nan")):
    return Criterion("test", limit, at_least, "", "").judge(value, noise)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (judged(0.8, 0.8, True), 0.0),
        (judged(1.0, 0.8, True), 1.0),
        (judged(0.9, 0.8, True), 0.5),
        (judged(0.0, 0.8, True), 1.0),
        (judged(0.0, 0.2, False), 1.0),
        (judged(0.6, 0.2, False), 0.5),
        # Its noise is taken off before.
        (judged(0.3, 0.2, False, noise=0.2), 0.5),
        (judged(-0.1, 0.2, False), 1.0),
        # A count has no largest value.
        (judged(800, 200, True), 0.75),
        (judged(float("nan"), 0.2, False), 0.0),
    ],
)
def test_the_margin_is_the_distance_from_the_limit(test, expected):
    assert margin(test) == pytest.approx(expected)


def test_a_product_is_as_sure_as_its_narrowest_test():
    tests = [judged(0.9, 0.8, True), judged(0.01, 0.2, False)]
    assert verdict_confidence("product", tests) == pytest.approx(0.5)


def test_one_clear_failure_makes_none_sure_and_partial_unsure():
    tests = [judged(0.75, 0.8, True), judged(0.2, 0.8, True), judged(0.9, 0.8, True)]
    assert verdict_confidence("none", tests) == pytest.approx(0.75)
    assert verdict_confidence("partial", tests) == pytest.approx(0.25)


def test_a_verdict_without_tests_is_not_sure():
    assert verdict_confidence("none", []) == 0
    assert verdict_confidence("product", []) == 0
