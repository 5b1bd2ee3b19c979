from dataclasses import fields

import numpy as np
import pytest

from manifactor.factoring.judging.criteria import Criterion, Test

AT_LEAST = Criterion("share", 0.8, True, "a share", "only {value:.0%}, not {limit:.0%}")
AT_MOST = Criterion("energy", 0.5, False, "an energy", "{net:.2f} of {owner}")


def test_the_first_fields_of_a_test_are_those_that_callers_rely_on():
    names = [field.name for field in fields(Test)][:6]
    assert names == ["name", "value", "noise", "limit", "passed", "meaning"]


@pytest.mark.parametrize(("value", "passed"), [(0.79, False), (0.8, True), (1, True)])
def test_a_value_at_the_limit_passes_where_it_must_be_at_least_the_limit(value, passed):
    assert AT_LEAST.judge(value).passed is passed


@pytest.mark.parametrize(("value", "passed"), [(0.49, True), (0.5, True), (0.51, False)])
def test_a_value_at_the_limit_passes_where_it_must_be_at_most_the_limit(value, passed):
    assert AT_MOST.judge(value, owner="it").passed is passed


def test_noise_is_taken_off_before_the_comparison_and_the_value_kept_as_measured():
    noisy = AT_MOST.judge(0.7, 0.3, owner="it")
    assert (noisy.value, noisy.noise, noisy.passed) == (0.7, 0.3, True)
    assert noisy.net == pytest.approx(0.4)
    assert not AT_LEAST.judge(0.9, 0.2).passed
    assert AT_MOST.judge(0.7, owner="it").net == 0.7


def test_a_problem_has_its_numbers_and_a_passed_test_has_none():
    assert AT_LEAST.judge(0.5).problem == "only 50%, not 80%"
    assert AT_MOST.judge(0.9, 0.1, owner="one").problem == "0.80 of one"
    assert AT_LEAST.judge(0.9).problem == ""
    assert np.isnan(AT_LEAST.judge(0.9).noise)


@pytest.mark.parametrize("criterion", [AT_LEAST, AT_MOST])
def test_what_could_not_be_measured_is_not_passed(criterion):
    assert not criterion.judge(np.nan, owner="it").passed


def test_a_test_holds_plain_numbers_whatever_it_was_given():
    test = AT_LEAST.judge(np.float32(0.9), np.float64(0.01))
    assert {type(test.value), type(test.noise)} == {float}
    assert type(test.passed) is bool


def test_a_limit_with_slack_shrinks_with_the_number_of_samples():
    eased = Criterion("angle", 0.05, False, "an angle", "{interval} > {limit:.2f}", 2.0)
    assert eased.rule == "at most 0.05 + 2 / sqrt(n)"
    assert eased.judge(0.1, n_samples=400).passed
    test = eased.judge(0.1, 0.01, n_samples=10_000)
    assert (test.limit, test.passed) == (pytest.approx(0.07), False)
    assert test.problem == "0.100 +- 0.010 > 0.07"
    assert test.interval == "0.100 +- 0.010"
