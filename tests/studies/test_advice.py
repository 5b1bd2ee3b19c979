"""The study of advice: problems with more samples, outcomes, the table."""

import json
from dataclasses import replace

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.workers import Here
from studies import advice
from studies.advice import Case, Trial, render
from studies.mixture import FAMILIES, Problem, draw

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("family", FAMILIES)
def test_a_problem_is_drawn_with_as_many_samples_as_asked_for(family):
    problem = draw(3, family=family, n_samples=400)
    assert len(problem.X) == 400
    assert all(len(each) == 400 for each in problem.truth)


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


def test_thinning_takes_samples_where_they_are_dense():
    rng = np.random.default_rng(0)
    X = np.r_[rng.uniform(size=(900, 2)), rng.uniform(1, 2, size=(100, 2))]
    problem = Problem(X, ((X,),), "", "")
    kept = advice.thinned(Case(problem, problem, None)).problem.X
    sparse = (kept > 1).all(axis=1).sum()
    assert 450 < len(kept) < 550
    assert sparse > 85


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
    found = advice.record(19)  # uneven samples of one factor
    assert found["verdict"] == "none"
    assert {each["advice"] for each in found["followed"]} == {"(evenness)"}
    assert {each["way"] for each in found["followed"]} >= {"ranks", "thinned"}
