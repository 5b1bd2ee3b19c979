from dataclasses import fields
from pathlib import Path
from string import Formatter

import numpy as np
import pytest

from manifactor.judging.measure import Measure, Test
from manifactor.judging.table import CRITERIA, MEASURES

TESTS_PAGE = Path(__file__).parents[3] / "docs" / "method-measurements.md"
AT_LEAST = Measure("share", 0.8, meaning="a share", problem="only {value:.0%}, not {limit:.0%}")
AT_MOST = Measure("energy", 0.5, at_most=True, meaning="an energy", problem="{net:.2f} of {owner}")


def test_the_first_fields_of_a_test_are_those_that_callers_rely_on():
    names = [field.name for field in fields(Test)][:6]
    assert names == ["name", "value", "noise", "limit", "passed", "meaning"]


@pytest.mark.parametrize(
    ("criterion", "value", "passed"),
    [
        (AT_LEAST, 0.79, False),
        (AT_LEAST, 0.8, True),
        (AT_MOST, 0.5, True),
        (AT_MOST, 0.51, False),
        # What could not be measured is not passed.
        (AT_LEAST, np.nan, False),
        (AT_MOST, np.nan, False),
    ],
)
def test_a_value_at_the_limit_passes(criterion, value, passed):
    assert criterion.judge(value, owner="it").passed is passed


def test_noise_is_taken_off_before_the_comparison_and_the_value_kept_as_measured():
    noisy = AT_MOST.judge(np.float32(0.75), np.float64(0.5), owner="it")
    assert (noisy.value, noisy.noise, noisy.net, noisy.passed) == (0.75, 0.5, 0.25, True)
    # Plain numbers, whatever was given.
    assert {type(noisy.value), type(noisy.noise)} == {float}
    assert not AT_LEAST.judge(0.9, 0.2).passed
    assert AT_MOST.judge(0.7, owner="it").net == 0.7


def test_a_problem_has_its_numbers_and_a_passed_test_has_none():
    assert AT_LEAST.judge(0.5).problem == "only 50%, not 80%"
    assert AT_MOST.judge(0.9, 0.1, owner="one").problem == "0.80 of one"
    assert AT_LEAST.judge(0.9).problem == ""


def test_a_limit_with_slack_shrinks_with_the_number_of_samples():
    skew = CRITERIA["skew"]
    assert skew.judge(0.1, n_samples=400).passed
    test = skew.judge(0.1, 0.01, n_samples=10_000)
    assert (test.limit, test.passed) == (pytest.approx(0.067), False)
    assert test.interval == "0.100 +- 0.010"


def test_further_chances_to_find_a_product_have_stricter_limits():
    leakage = CRITERIA["leakage"]
    assert leakage.judge(0.18).passed
    assert not leakage.judge(0.18, strict=True).passed
    assert CRITERIA["folds"].judge(0.02, strict=True).passed


def rule(criterion):
    words = f"{'at most' if criterion.at_most else 'at least'} {criterion.limit:.3g}"
    if not criterion.slack:
        return words
    powers = {0.5: "/ sqrt(n)", -0.5: "sqrt(n)", 1: "/ n"}
    power = powers.get(criterion.slack_power, f"/ n^{criterion.slack_power:g}")
    return f"{words} + {criterion.slack:g} {power}"


def test_the_page_on_the_measurements_has_the_table_of_all_tests():
    rows = [f"| {each.name} | {each.meaning} | {rule(each)} |" for each in CRITERIA.values()]
    header = ["| test | what it measures | passed if |", "|---|---|---|"]
    page = TESTS_PAGE.read_text(encoding="utf-8")
    table = page.partition("<!-- tests -->\n")[2].partition("<!-- /tests -->")[0]
    assert table == "\n".join([*header, *rows]) + "\n"


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=list(CRITERIA))
def test_the_words_of_the_table_are_known_and_every_problem_can_be_told(criterion):
    assert criterion.coordinates in {"wrong", "incomplete", "unclear", "right"}
    assert criterion.about in {"", "lengths", "halves"}
    assert criterion.answer in {"", "one factor", "no product", "cannot tell"}
    assert criterion.models or criterion.name in {"views", "consistency"}
    if criterion.name not in {"factors asked for", "views", "consistency", "evenness", "certainty"}:
        assert criterion.advice.endswith(".")
    words = {name for _, name, _, _ in Formatter().parse(criterion.problem) if name}
    more = words - {"value", "noise", "net", "limit", "interval"}
    assert criterion.judge(np.nan, **dict.fromkeys(more, 0)).problem


def test_rows_of_one_name_are_of_different_kinds_of_results():
    for row in MEASURES:
        others = [each for each in MEASURES if each.name == row.name and each is not row]
        assert not any(row.models & each.models for each in others)
