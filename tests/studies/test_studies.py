"""The study of calibration, rows of hard cases, and records on disk."""

import io
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from manifactor._support import __version__
from manifactor._support.workers import Here
from studies import calibration, rows
from studies.calibration import diagram
from studies.keeping import finish, in_order, keep, kept_records, positions, unfinished

pytestmark = pytest.mark.nightly

# Calibration.


def answer(verdict, right, **given):
    usual = {"seed": 0, "kind": "even", "product": True, "probability": 0.5}
    return {**usual, "verdict": verdict, "right": right, **given}


def test_an_answer_is_compared_with_the_truth(monkeypatch):
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (600, 700))
    found = calibration.record(1)  # a rectangle
    assert (found["kind"], found["factors"]) == ("even", 2)
    assert found["solved"]
    assert found["right"]
    assert 0 <= found["probability"] <= 1
    assert "completeness" in [test["name"] for test in found["tests"]]
    # Everything can be read again, without nan.
    assert "NaN" not in json.dumps(found)


def test_the_report_has_the_share_of_products_that_are_right():
    records = [
        *(answer("product", True) for _ in range(3)),
        answer("product", False, kind="wells"),
        answer("none", True, kind="irreducible", product=False),
    ]
    report = calibration.render(records)
    assert "75.0% (3 of 4; 95 % interval 30.1% to 95.4%)" in report
    assert "| even | 3 | 100% | 3 of 3 | - | - | - | - | - |" in report
    assert "| wells | 1 | 0% | 0 of 1 | - | - | - | - | - |" in report
    assert "| irreducible | 1 | 100% | - | - | - | - | 1 of 1 | 0 of 1 |" in report
    assert "| all | 5 | 80% | 3 of 4 | - | - | - | 1 of 1 | 0 of 1 |" in report
    assert "soft" not in report


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
    assert diagram([answer("error: no convergence", False)]) == {}  # no verdict


# Records that survive an interrupt.

JOBS = [{"seed": seed} for seed in range(3)]
RECORDS = [{"seed": seed, "solved": True} for seed in range(3)]
VERSIONED = [{**record, "version": __version__} for record in RECORDS]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "study.jsonl"


def test_a_study_continues_after_the_records_that_were_kept_in_whatever_order(out):
    # They are on disk before they are handed on.
    for number, _ in enumerate(keep(out, [], [RECORDS[2], RECORDS[0]]), start=1):
        kept = kept_records(out, JOBS)
        assert kept == [VERSIONED[2], VERSIONED[0]][:number]
    assert positions(kept, JOBS) == [2, 0]
    assert not out.exists()
    with unfinished(out).open("a") as file:
        file.write('{"seed": 1, "sol')  # a line that was not finished is left out
    assert kept_records(out, JOBS) == kept
    assert list(keep(out, kept, RECORDS[1:2])) == VERSIONED[1:2]
    records = in_order(kept_records(out, JOBS), JOBS)
    assert records == VERSIONED
    finish(out, records)
    assert len(out.read_text().splitlines()) == 3
    assert not unfinished(out).exists()


# Known hard cases.


def test_a_row_of_hard_cases_is_fitted_counted_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr("studies.running.Processes", Here)
    rows.main(["--rows", "planet seen from Earth", "--seeds", "1", "--out", str(tmp_path)])
    (line,) = (tmp_path / "rows.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert found["columns"] == 3
    assert not (found["verdict"] == "product" and not found["solved"])
    row = '| planet seen from Earth | 1 | wrong "product" | at most 1 of 60 | 0 of 1 |'
    assert row in (tmp_path / "rows.md").read_text()
