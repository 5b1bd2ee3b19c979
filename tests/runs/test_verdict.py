"""The verdict on a run of all views."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor import Evidence
from manifactor.judging.measure import Measure
from manifactor.runs.folder import run_evidence

SIZE = Measure("size", 10, meaning="samples", problem="{value:.0f} are few")


def fitted(n_factors=2):
    leakage = np.full((n_factors, n_factors), np.nan)
    evidence = Evidence((SIZE.judge(20),), leakage, probability=0.9)
    return SimpleNamespace(evidence_=evidence)


def record(*explained, p=0.01, **entries):
    """A record in which the view explains so much of each factor."""
    numbered = enumerate(explained, start=1)
    found = [{"name": "view", "factor": f, "r2": r2, "p": p} for f, r2 in numbered]
    return {"all_views": {}, "confounders": found, **entries}


def test_places_that_depend_on_the_view_lower_the_verdict():
    fit = fitted()
    found = run_evidence(fit, record(0.24, 0.01))
    # The probability was learnt without such tests.
    assert found.summary == "partial"
    assert "viewing direction: factor 1 (R^2 0.24)" in found.reason
    assert fit.evidence_.summary == "product, 90 %"
    assert json.dumps(found.tests[-1].value) == "0.24"


def test_places_that_drift_with_the_view_lower_the_verdict():
    found = run_evidence(fitted(), record(all_views={"consistency": [1.0, 0.12]}))
    assert found.verdict == "partial"
    assert "in all views: factor 2 (0.12)" in found.reason


@pytest.mark.parametrize(
    "given",
    [
        record(0.02, 0.03),
        record(0.24, 0.24, p=0.3),
        record(),
        record(all_views={"consistency": [1.0, 0.97]}),
        {"confounders": record(0.24)["confounders"]},  # of one view
    ],
)
def test_chance_and_one_view_leave_the_verdict_as_it_is(given):
    assert run_evidence(fitted(), given).verdict == "product"


def test_one_factor_is_no_product_whatever_the_view_explains():
    found = run_evidence(fitted(1), record(0.4))
    assert (found.verdict, found.answer) == ("none", "one factor")


def test_the_words_of_a_run_of_all_views_come_first():
    words = {"headline": "two motions: a circle and an interval"}
    found = run_evidence(fitted(), record(all_views=words))
    assert found.summary == "two motions: a circle and an interval (product, 90 %)"
    words = {"headline": "two states", "found": "There are 2 clusters.", "advice": "Run it"}
    found = run_evidence(fitted(1), record(all_views=words))
    assert found.summary == "two states"
    assert found.sentences == ("There are 2 clusters.", "What to do: Run it")
    assert np.isnan(found.probability)
