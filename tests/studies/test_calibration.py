import io
import json
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from manifactor import ManifoldFactorizer
from studies.calibration import CalibrationSettings, curves, diagram, record, render


@pytest.fixture
def small(monkeypatch):
    """Let problems have 600 to 700 samples."""
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (600, 700))


def answer(verdict, right, *, kind="even", product=True, confidence=0.5):
    return {
        "seed": 0,
        "kind": kind,
        "product": product,
        "verdict": verdict,
        "confidence": confidence,
        "right": right,
    }


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_answer_is_compared_with_the_truth():
    found = record(1)  # a rectangle
    assert found["kind"] == "even"
    assert found["factors"] == 2
    assert found["solved"]
    assert found["right"]
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
    assert "| near | 3 | 100% | 1 of 1 | 2 of 2 | - | 1 of 3 |" in report
    assert 'but called "product": 33.3% (1 of 3;' in report


def test_a_fit_that_fails_is_recorded_and_not_solved(monkeypatch, small):
    def fit(self, X):
        raise RuntimeError("no convergence")

    monkeypatch.setattr(ManifoldFactorizer, "fit", fit)
    found = record(0)
    assert found["verdict"] == "error: no convergence"
    assert not found["solved"]
    assert not found["right"]
    assert "Fits that failed: 1, problems 0." in render([found])


def test_the_report_has_the_share_of_products_that_are_right():
    records = [
        *(answer("product", True) for _ in range(3)),
        answer("product", False, kind="wells"),
        answer("none", True, kind="irreducible", product=False),
    ]
    report = render(records)
    assert report.startswith("An answer is right if every factor")
    assert (
        '\n- Right when the verdict is "product": 75.0% (3 of 4; 95 % interval 30.1% to 95.4%).\n'
    ) in report
    assert "| even | 3 | 100% | 3 of 3 | - | - | - |" in report
    assert "| wells | 1 | 0% | 0 of 1 | - | - | - |" in report
    assert "| irreducible | 1 | 100% | - | - | 1 of 1 | 0 of 1 |" in report
    assert "| all | 5 | 80% | 3 of 4 | - | 1 of 1 | 0 of 1 |" in report
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


def test_a_verdict_that_was_given_seldom_has_one_rate_with_a_wide_interval():
    found = curves([answer("none", i > 0, confidence=i / 8) for i in range(9)])
    assert list(found) == ["none"]
    (rate,) = found["none"]
    assert rate.confidence == pytest.approx(0.5)
    assert rate.rate == pytest.approx(8 / 9)
    assert rate.high - rate.low > 0.4


class Fitted:
    """An estimator that gives one answer whatever the samples."""

    def __init__(self, verdict, factors):
        self.verdict_ = verdict
        self.factors_ = factors
        self.evidence_ = SimpleNamespace(tests=[], reason="")

    def fit(self, X):
        return self


@pytest.mark.parametrize(
    ("verdict", "right"), [("none", True), ("partial", False), ("product", False)]
)
def test_on_a_problem_with_one_factor_the_verdict_none_is_right(monkeypatch, rng, verdict, right):
    # Even if the coordinates of the one factor are poor.
    n_factors = 1 if verdict == "none" else 2
    factors = [SimpleNamespace(embedding=rng.normal(size=(100, 1)))] * n_factors

    def estimator(**_):
        return Fitted(verdict, factors)

    monkeypatch.setattr("studies.calibration.ManifoldFactorizer", estimator)
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (100, 100.1))
    found = record(2)  # a cloud
    assert (found["factors"], found["verdict"]) == (1, verdict)
    assert found["right"] is right
    assert not found["solved"]


@pytest.mark.slow
def test_the_diagram_is_drawn_of_a_single_answer_for_light_and_dark_screens():
    files = diagram([answer("none", True)])
    image = Image.open(io.BytesIO(files[".png"])).convert("L")
    assert np.asarray(image).min() < 128
    text = files[".svg"].decode()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    # Background, text and curves have colours of both.
    assert "prefers-color-scheme: dark" in text
    for name in ("--ground", "--ink", "--category-1", "--soft"):
        assert text.count(f"{name}: #") == 2
        assert f"var({name}" in text
    assert "none" in text


def test_without_a_verdict_there_is_no_diagram():
    assert diagram([answer("error: no convergence", False)]) == {}
