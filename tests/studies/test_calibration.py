import json
from dataclasses import replace

import pytest

from manifactor import ManifoldFactorizer
from manifactor.datasets.problems import ProblemSettings
from manifactor.studies.calibration import (
    CalibrationSettings,
    curves,
    record,
    render,
)

SMALL = ProblemSettings(
    n_samples=(600, 700),
    irreducible_share=0,
    factor_counts=(0.0, 1.0, 0.0),
    factor_kinds=(0.0, 1.0, 0.0),
    kinds={"even": 1.0},
)


def answer(verdict, solved, *, kind="even", product=True, confidence=0.5):
    return {
        "seed": 0,
        "kind": kind,
        "product": product,
        "verdict": verdict,
        "confidence": confidence,
        "solved": solved,
    }


@pytest.mark.slow
def test_an_answer_is_compared_with_the_truth():
    found = record(1, SMALL)
    assert found["kind"] == "even"
    assert found["solved"]
    assert 0 <= found["confidence"] <= 1
    names = [test["name"] for test in found["tests"]]
    assert "completeness" in names
    # Everything can be read again, without nan.
    assert "NaN" not in json.dumps(found)


def test_a_near_product_may_be_solved_and_wrongly_be_called_a_product():
    near = [
        answer(verdict, True, kind="near", product=False)
        for verdict in ("product", "partial", "partial")
    ]
    report = render(near)
    assert "| near | 3 | 100% | 1, 1 | 2, 2 | - | 1 of 3 |" in report
    assert 'but called "product": 33.3% (1 of 3;' in report


def test_a_fit_that_fails_is_recorded_and_not_solved(monkeypatch):
    def fit(self, X):
        raise RuntimeError("no convergence")

    monkeypatch.setattr(ManifoldFactorizer, "fit", fit)
    found = record(0, replace(SMALL, n_samples=(100, 110)))
    assert found["verdict"] == "error: no convergence"
    assert not found["solved"]
    assert "Fits that failed: 1, problems 0." in render([found])


def test_the_report_starts_with_the_share_of_products_that_are_solved():
    records = [
        *(answer("product", True) for _ in range(3)),
        answer("product", False, kind="wells"),
        answer("none", True, kind="irreducible", product=False),
    ]
    report = render(records)
    assert report.startswith(
        'Solved when the verdict is "product": 75.0% '
        "(3 of 4; 95 % interval 30.1% to 95.4%)."
    )
    assert "| even | 3 | 100% | 3, 3 | - | - | - |" in report
    assert "| wells | 1 | 0% | 1, 0 | - | - | - |" in report
    assert "| irreducible | 1 | 100% | - | - | 1, 1 | 0 of 1 |" in report
    assert "| all | 5 | 80% | 4, 3 | - | 1, 1 | 0 of 1 |" in report
    assert "soft" not in report


def test_bins_of_the_confidence_hold_equally_many_answers():
    records = [answer("product", i >= 10, confidence=i / 40) for i in range(40)]
    found = curves(records, settings=CalibrationSettings(n_bins=4))
    assert list(found) == ["product"]
    rates = [one.rate for one in found["product"]]
    assert rates == [0, 1, 1, 1]
    confidences = [one.confidence for one in found["product"]]
    assert confidences == pytest.approx([0.1125, 0.3625, 0.6125, 0.8625])
    assert all(one.low <= one.rate <= one.high for one in found["product"])


def test_a_verdict_that_was_said_seldom_has_no_curve():
    assert curves([answer("none", True)] * 9) == {}
