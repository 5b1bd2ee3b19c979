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


def answer(verdict, right, *, kind="even", confidence=0.5, seed=0):
    return {
        "seed": seed,
        "kind": kind,
        "verdict": verdict,
        "confidence": confidence,
        "number_right": right,
        "solved": right,
        "right": right,
    }


def test_an_answer_is_compared_with_the_truth():
    found = record(1, SMALL)
    assert found["kind"] == "even"
    assert found["solved"]
    assert found["right"]
    assert 0 <= found["confidence"] <= 1
    names = [test["name"] for test in found["tests"]]
    assert "completeness" in names
    # Everything can be read again, without nan.
    assert "NaN" not in json.dumps(found)


def test_product_said_of_a_near_product_is_wrong_even_if_it_is_solved(monkeypatch):
    near = replace(SMALL, kinds={"near": 1.0}, n_samples=(100, 110))
    said = {"verdict": "product", "confidence": 1.0, "solved": True}
    monkeypatch.setattr("manifactor.studies.calibration._answer", lambda *_: said)
    assert not record(0, near)["right"]
    said["verdict"] = "partial"
    assert record(0, near)["right"]


def test_a_fit_that_fails_is_recorded_and_not_right(monkeypatch):
    def fit(self, X):
        raise RuntimeError("no convergence")

    monkeypatch.setattr(ManifoldFactorizer, "fit", fit)
    found = record(0, replace(SMALL, n_samples=(100, 110)))
    assert found["verdict"] == "error: no convergence"
    assert not found["right"]
    assert "Fits that failed: 1, problems 0." in render([found])


def test_the_table_counts_verdicts_by_kind():
    records = [
        *(answer("product", True) for _ in range(3)),
        answer("product", False, kind="wells"),
        answer("none", True, kind="irreducible"),
    ]
    table = render(records)
    assert "| even | 3 | 3, 3, 3 | - | - | 3 of 3 | 100% |" in table
    assert "| wells | 1 | 1, 0, 0 | - | - | 0 of 1 | 0% |" in table
    assert "| all | 5 | 4, 3, 3 | - | 1, 1, 1 | 3 of 4 | 80% |" in table
    assert (
        'Right when "product": 75.0% (3 of 4; 95 % interval 30.1% to 95.4%).' in table
    )
    assert "soft" not in table


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
