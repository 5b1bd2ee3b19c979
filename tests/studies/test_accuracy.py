"""The study of accuracy: its table, its records, and the verdicts it counts."""

import json
from dataclasses import replace

import numpy as np
import pytest

from manifactor._support.workers import Here
from studies import accuracy
from studies.accuracy import Case, quick_table

FIELDS = {"group", "shape", "seed", "verdict", "solved", "own", "leak", "seconds"}


@pytest.mark.slow
def test_the_quick_benchmark_prints_a_table_and_writes_every_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = [(replace(case, n=400), 1) for case, _ in quick_table()[:2]]
    monkeypatch.setattr("studies.accuracy.quick_table", lambda: small)
    monkeypatch.setattr("studies.running.Processes", Here)
    accuracy.main(["--quick"])
    out = capsys.readouterr().out
    assert "| the paper's | 1 | 100% |" in out
    lines = (tmp_path / "accuracy.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert set(json.loads(lines[0])) >= FIELDS
    with pytest.raises(ValueError, match="must not exist yet"):
        accuracy.main(["--quick"])


def test_a_run_is_scored_against_the_truth():
    found = accuracy.record(Case("boxes", "square", n=200, method="pca"), 0)
    assert set(found) >= FIELDS
    # The axes of a square's principal components are arbitrary.
    assert found["number_right"]
    assert not found["solved"]
    assert found["attainable"] == 1.0
    assert accuracy.record(Case("boxes", "rectangle", n=300, method="pca"), 0)["solved"]


def test_a_case_is_rotated_scaled_and_blurred_relative_to_its_diameter():
    plain, truth = Case("x", "square", n=200).draw(1)
    turned, same = Case("x", "square", n=200, columns=50, scale=10.0).draw(1)
    assert turned.shape == (200, 50)
    gram = plain @ plain.T
    np.testing.assert_allclose(turned @ turned.T, 100 * gram, atol=1e-9)
    np.testing.assert_array_equal(truth[0], same[0])
    blurred, _ = Case("x", "square", n=200, noise=0.01).draw(1)
    diameter = np.linalg.norm(np.ptp(plain, axis=0))
    assert np.std(blurred - plain) == pytest.approx(0.01 * diameter, rel=0.1)


def test_the_reliability_of_verdicts_is_counted():
    run = {"group": "random", "number_right": True, "seconds": 1.0}
    right = {"verdict": "product", "solved": True, "right": True}
    wrong = {"verdict": "none", "solved": False, "right": False}
    table = accuracy.render([{**run, **right}, {**run, **wrong}])
    assert "| random | 2 | 50% | 9%-91% | 50% | 100% | 1 / 0 / 0 / 0 / 1 | 1.0 |" in table
    assert "| product | 1 | 1 | 1 |" in table
    assert "| none | 1 | 1 | 0 |" in table
    # A method without a verdict has none counted.
    *_, row = accuracy.render([{**run, **wrong, "verdict": ""}]).splitlines()[:3]
    assert row == "| random | 1 | 0% | 0%-79% | 0% | 100% | - | 1.0 |"
