"""The benchmark of sensitivity: which numbers it changes, and what it makes of the outcomes."""

import sys
from pathlib import Path

import pytest

from manifactor.factoring.judging.criteria import CRITERIA
from manifactor.spectral import neighbors, preparation
from studies.accuracy import Case

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("sensitivity", "record"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import sensitivity

    return sensitivity


def variation(benchmark, module, name, new):
    return benchmark.Variation(module, name, 1.0, "x1.5", new)


def test_numbers_of_modules_and_limits_of_criteria_are_changed_both_ways(benchmark):
    found = {(one.setting, one.direction): one.new for one in benchmark.variations()}
    assert found["spectral.preparation.MOST_COLUMNS", "x1.5"] == 1500
    assert found["spectral.preparation.MOST_COLUMNS", "/1.5"] == 667
    name, limit = "completeness", CRITERIA["completeness"].limit
    assert found[f"CRITERIA.{name}", "/1.5"] == pytest.approx(limit / 1.5)
    # What a module only imports is not listed a second time.
    assert not any(setting.endswith("pipeline.MOST_COLUMNS") for setting, _ in found)


@pytest.mark.parametrize(
    ("value", "factor", "expected"),
    [(3, 1.5, 4), (1, 1 / 1.5, 1), (0.9, 1.5, 1.0), (2.0, 1.5, 3.0), (0, 1.5, 0)],
)
def test_counts_are_rounded_and_shares_stay_below_one(benchmark, value, factor, expected):
    assert benchmark.scaled(value, factor) == expected


def test_a_number_is_changed_wherever_it_is_used_and_then_restored(benchmark):
    from manifactor.estimators import diffusion_map

    module, old = "manifactor.spectral.preparation", preparation.MOST_COLUMNS
    with benchmark.changed(variation(benchmark, module, "MOST_COLUMNS", 5)):
        assert preparation.MOST_COLUMNS == diffusion_map.MOST_COLUMNS == 5
    assert preparation.MOST_COLUMNS == diffusion_map.MOST_COLUMNS == old
    limit = CRITERIA["completeness"].limit
    with benchmark.changed(variation(benchmark, "CRITERIA", "completeness", 0.1)):
        assert CRITERIA["completeness"].limit == 0.1
    assert CRITERIA["completeness"].limit == limit


@pytest.mark.slow
def test_what_a_number_does_is_counted_and_an_error_is_an_answer(benchmark):
    pairs = [(Case("cheap", "square", n=400), 0)]
    before = [benchmark.outcome(*pair) for pair in pairs]
    assert before == [(True, "product")]
    strict = variation(benchmark, "CRITERIA", "agreement", 5.0)
    record = benchmark.compared(strict, before, benchmark.outcomes(pairs, strict))
    assert (record["gained"], record["lost"], record["verdicts"]) == (0, 0, 1)
    wrong = variation(benchmark, "manifactor.spectral.neighbors", "APPROXIMATE_ABOVE", "many")
    record = benchmark.compared(wrong, before, benchmark.outcomes(pairs, wrong))
    assert (record["lost"], record["errors"]) == (1, 1)
    assert neighbors.APPROXIMATE_ABOVE == 50_000


def test_the_loudest_number_comes_first_in_the_table(benchmark):
    quiet, loud = (
        benchmark.compared(variation(benchmark, "CRITERIA", name, 2.0), [(True, "product")], after)
        for name, after in (("a", [(True, "product")]), ("b", [(False, "none")]))
    )
    lines = benchmark.table([quiet, loud]).splitlines()
    assert lines[2] == "| CRITERIA.b | 1 | +0 -1 | 1 | - | - |"
    assert lines[-1] == "Without effect: 1 of 2 settings."


def test_the_cases_hold_each_shape_and_seed_once(benchmark):
    pairs = benchmark.cases()
    keys = [(case.shape, seed) for case, seed in pairs]
    assert len(keys) == len(set(keys)) == 26
    assert {case.method for case, _ in pairs} == {"gradients"}
