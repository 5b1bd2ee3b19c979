import json

import numpy as np
import pytest

from studies import proposals
from studies.conditions import Conditions
from studies.mixture import Problem
from studies.proposals import moving_record, read, record, table, write


@pytest.fixture
def rectangle(monkeypatch):
    """A rectangle in place of every problem."""
    u, v = np.random.default_rng(0).uniform(size=(2, 300, 1))
    problem = Problem(np.hstack([2 * u, v]), ((u, v),), "curves", "", Conditions(300), True)
    monkeypatch.setattr(proposals, "draw", lambda seed, **how: problem)


@pytest.mark.medium
def test_a_record_holds_what_was_proposed_and_whether_it_is_right(rectangle):
    found = json.loads(json.dumps(record(3)))
    assert found["errors"] == []
    assert found["label"] == "right"
    assert found["verdict"] in ("product", "partial")
    assert found["ceilings"][0][0] > 0.95
    assert found["conditions"]["noise"] == 0
    first = next(each for each in found["candidates"] if each["model"] == "geometry")
    assert first["label"] == "right"
    assert first["right"] == [True, True]
    assert {"leakage", "folds"} <= {test[0] for test in first["tests"]}
    assert np.shape(found["agreement"]) == (len(found["candidates"]),) * 2
    assert {each["model"] for each in found["candidates"]} >= {"geometry", "sum", "separable"}
    assert "| curves | 1 |" in table([found])


@pytest.mark.nightly
def test_a_record_of_samples_that_move_has_their_candidates():
    found = json.loads(json.dumps(moving_record(4)))
    assert found["errors"] == []
    assert (found["verdict"], found["label of told"]) == ("product", "right")
    (first, *_) = found["candidates"]
    assert first["sense"] == "dynamics"
    assert first["label"] == "right"
    assert first["n_distinct"] > 1000


def test_a_problem_that_takes_too_long_is_recorded_as_an_error(rectangle):
    found = record(3, limit=0.05)
    assert found["errors"][-1]["error"] == "TimeoutError"
    assert found["seed"] == 3


def test_records_survive_a_file_that_was_cut_off(tmp_path):
    path = tmp_path / "records.jsonl.xz"
    write(path, [])
    write(path, [{"seed": 0}, {"seed": 1}], append=True)
    write(path, [{"seed": 2}], append=True)
    assert [each["seed"] for each in read(path)] == [0, 1, 2]
    path.write_bytes(path.read_bytes()[:-9])
    assert [each["seed"] for each in read(path)] == [0, 1]
