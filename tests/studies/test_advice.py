"""The study of advice: problems with more samples, outcomes, the table."""

import json
from dataclasses import replace

import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.workers import Here
from studies import advice
from studies.advice import Case, Trial, render
from studies.mixture import Problem

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def rectangle():
    X, truth = datasets.sample("rectangle", 400, random_state=0)
    problem = Problem(X, (truth,), "shapes", "rectangle")
    fit = ManifoldFactorizer(n_factors=1, random_state=0).fit(X)
    return Case(problem, problem, fit)


def test_a_fit_that_finds_more_factors_than_the_first_helped(rectangle):
    found = advice._outcome(rectangle, Trial(rectangle.problem), 0)
    assert found == {"verdict": "product", "solved": True, "outcome": "helped"}
    again = Trial(rectangle.problem, {"n_factors": 1})
    assert advice._outcome(rectangle, again, 0)["outcome"] == "nothing"
    right = ManifoldFactorizer(random_state=0).fit(rectangle.problem.X)
    assert advice._outcome(replace(rectangle, fit=right), again, 0)["outcome"] == "hurt"


def test_the_study_counts_what_came_of_each_piece_of_advice(tmp_path, monkeypatch, capsys):
    said = {"advice": "Add samples", "way": "twice_the_samples", "outcome": "helped"}
    one = {"verdict": "none", "solved": False, "advice": "Add samples.", "followed": [said]}
    monkeypatch.setattr(advice, "record", lambda seed: {"seed": seed, **one})
    monkeypatch.setattr("studies.running.Processes", Here)
    advice.main(["--problems", "2", "--out", str(tmp_path)])
    row = "| Add samples | none | twice the samples | 2 | 2 | 0 | 0 | 0 | 2 | 2 |"
    assert row in capsys.readouterr().out
    assert row in (tmp_path / "advice.md").read_text()
    kept = (tmp_path / "advice.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in kept] == [0, 1]
    assert "0 of 0" in render([])


def test_what_a_fit_advises_is_followed_and_so_is_what_it_once_advised():
    found = advice.record(11, family="bodies")  # uneven samples of one factor
    assert found["verdict"] == "none"
    assert "(evenness)" in {each["advice"] for each in found["followed"]}
    assert {each["way"] for each in found["followed"]} >= {"ranks", "thinned"}
