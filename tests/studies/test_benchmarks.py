"""Benchmarks of other methods and of sensitivity: what they change, count, refuse and replace."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from manifactor.judging.table import CRITERIA
from manifactor.operators import neighbors
from manifactor.samples import preparation
from studies.accuracy import Case

pytestmark = pytest.mark.nightly


def imported(name, monkeypatch):
    """A benchmark, with what it sets when it is imported undone after the test."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    for module in (name, "record"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return import_module(name)


@pytest.fixture
def peers(monkeypatch):
    return imported("peers_on_data", monkeypatch)


@pytest.fixture
def sensitivity(monkeypatch):
    return imported("sensitivity", monkeypatch)


def test_columns_are_divided_as_they_explain_the_true_factors_best(peers):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    line = rng.uniform(size=(200, 1))
    columns = np.column_stack([circle[:, 1], line, rng.normal(size=200), circle[:, 0]])
    first, second = peers.best_division(columns, [circle, line])
    np.testing.assert_array_equal(first, circle[:, ::-1])
    np.testing.assert_array_equal(second, line)
    with pytest.raises(ValueError, match=r"at least as many .* factors, 3; got 2"):
        peers.best_division(columns[:, :2], [circle, line])


def variation(sensitivity, module, name, new):
    return sensitivity.Variation(module, name, 1.0, "x1.5", new)


def test_numbers_of_modules_and_limits_of_criteria_are_changed_both_ways(sensitivity):
    found = {(one.setting, one.direction): one.new for one in sensitivity.variations()}
    assert found["samples.preparation.MOST_COLUMNS", "x1.5"] == 1500
    assert found["samples.preparation.MOST_COLUMNS", "/1.5"] == 667
    name, limit = "completeness", CRITERIA["completeness"].limit
    assert found[f"CRITERIA.{name}", "/1.5"] == pytest.approx(limit / 1.5)
    # What a module only imports is not listed a second time.
    assert not any(setting.endswith("pipeline.MOST_COLUMNS") for setting, _ in found)


def test_a_number_is_changed_wherever_it_is_used_and_then_restored(sensitivity):
    from manifactor.estimators import diffusion_map

    module, old = "manifactor.samples.preparation", preparation.MOST_COLUMNS
    with sensitivity.changed(variation(sensitivity, module, "MOST_COLUMNS", 5)):
        assert preparation.MOST_COLUMNS == diffusion_map.MOST_COLUMNS == 5
    assert preparation.MOST_COLUMNS == diffusion_map.MOST_COLUMNS == old
    limit = CRITERIA["completeness"].limit
    with sensitivity.changed(variation(sensitivity, "CRITERIA", "completeness", 0.1)):
        assert CRITERIA["completeness"].limit == 0.1
    assert CRITERIA["completeness"].limit == limit


def test_what_a_number_does_is_counted_and_an_error_is_an_answer(sensitivity):
    pairs = [(Case("cheap", "square", n=400), 0)]
    before = [sensitivity.outcome(*pair) for pair in pairs]
    assert before == [(True, "product")]
    strict = variation(sensitivity, "CRITERIA", "certainty", 5.0)
    record = sensitivity.compared(strict, before, sensitivity.outcomes(pairs, strict))
    # The coordinates stay right: only the verdict changes.
    assert (record["gained"], record["lost"], record["verdicts"]) == (0, 0, 1)
    wrong = variation(sensitivity, "manifactor.operators.neighbors", "APPROXIMATE_ABOVE", "many")
    record = sensitivity.compared(wrong, before, sensitivity.outcomes(pairs, wrong))
    assert (record["lost"], record["errors"]) == (1, 1)
    assert neighbors.APPROXIMATE_ABOVE == 50_000
