"""Studies of accuracy and calibration: their tables, their answers, and records on disk."""

import io
import json
from dataclasses import asdict, replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from manifactor import ManifoldFactorizer
from manifactor._support import __version__
from manifactor._support.workers import Here
from manifactor.datasets import FIELD
from manifactor.factoring.judging.criteria import Criterion
from studies import accuracy, calibration
from studies.accuracy import Case, TableSettings, full_table, jobs, quick_table
from studies.baselines import BASELINES, METHODS
from studies.calibration import CalibrationSettings, curves, diagram
from studies.confidence import margin, verdict_confidence
from studies.field import FieldSettings
from studies.keeping import finish, in_order, keep, kept_records, positions, unfinished

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


def test_every_record_can_be_told_from_the_others():
    table = full_table(TableSettings(seeds=2, random_problems=2))
    names = jobs(table)
    assert len(names) == sum(seeds for _, seeds in table)
    case, _ = table[0]
    assert names[0].items() <= {**asdict(case), "seed": 0}.items()
    assert names[0]["n"] == 3000
    assert "n" not in next(name for name in names if name["shape"] == "random")


def test_the_table_has_every_group_and_every_baseline():
    table = full_table()
    assert {case.method for case, _ in table} == set(METHODS)
    assert set(BASELINES) < set(METHODS)
    for case, seeds in table:
        if case.group in ("the paper's", "repeated eigenvalues"):
            assert seeds == 20


def test_the_settings_say_how_many_seeds_and_which_levels():
    table = full_table(TableSettings(seeds=1, noise_levels=(0.1,), small_sizes=()))
    groups = {case.group: seeds for case, seeds in table}
    assert groups["the paper's"] == groups["noise 0.10"] == 1
    assert not any(group.startswith(("noise 0.05", "n = ")) for group in groups)


def test_the_table_has_every_shape_of_the_field_and_near_products_in_several_sizes():
    table = full_table(TableSettings(field=FieldSettings(near_sizes=(500,))))
    seeds = {case.shape: seeds for case, seeds in table if case.group in FIELD}
    assert set(seeds) == {name for shapes in FIELD.values() for name in shapes}
    assert set(seeds.values()) == {10}
    groups = {case.group: case.n for case, _ in table}
    assert groups["gaussian, n = 30000"] == 30_000
    assert groups["near products, n = 500"] == 500


def test_a_run_is_scored_against_the_truth():
    found = accuracy.record(Case("boxes", "square", n=200, method="pca"), 0)
    assert set(found) >= FIELDS
    # The axes of a square's principal components are arbitrary.
    assert found["number_right"]
    assert not found["solved"]
    assert found["attainable"] == 1.0
    assert accuracy.record(Case("boxes", "rectangle", n=300, method="pca"), 0)["solved"]


def test_a_method_that_fails_is_recorded_and_not_solved(monkeypatch):
    def failing(X, truth, seed):
        raise RuntimeError("no convergence")

    monkeypatch.setitem(METHODS, "failing", failing)
    found = accuracy.record(Case("boxes", "square", n=100, method="failing"), 0)
    assert found["verdict"] == "error: no convergence"
    assert not found["solved"]


def test_noise_bounds_what_can_be_attained():
    noisy = Case("noise", "square", n=400, noise=0.1, columns=20, method="pca")
    assert 0.5 < accuracy.record(noisy, 0)["attainable"] < 0.95


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
    records = [
        {**run, "verdict": "product", "solved": True},
        {**run, "verdict": "none", "solved": False},
    ]
    table = accuracy.render(records)
    assert "| random | 2 | 50% | 9%-91% | 100% | 1 / 0 / 1 | 1.0 |" in table
    assert "| product | 1 | 1 | 1 |" in table
    assert "| none | 1 | 1 | 0 |" in table
    # A method without a verdict has none counted.
    *_, row = accuracy.render([{**run, "verdict": "", "solved": False}]).splitlines()[:3]
    assert row == "| random | 1 | 0% | 0%-79% | 100% | - | 1.0 |"


# Calibration.


@pytest.fixture
def few_samples(monkeypatch):
    """Let problems have 600 to 700 samples."""
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (600, 700))


def answer(verdict, right, **given):
    usual = {"seed": 0, "kind": "even", "product": True, "confidence": 0.5}
    return {**usual, "verdict": verdict, "right": right, **given}


@pytest.mark.slow
@pytest.mark.usefixtures("few_samples")
def test_an_answer_is_compared_with_the_truth():
    found = calibration.record(1)  # a rectangle
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
    report = calibration.render(near)
    assert "| near | 3 | 100% | 1 of 1 | 2 of 2 | - | 1 of 3 |" in report
    assert 'but called "product": 33.3% (1 of 3;' in report


def test_a_fit_that_fails_is_recorded_and_not_solved(monkeypatch, few_samples):
    def fit(self, X):
        raise RuntimeError("no convergence")

    monkeypatch.setattr(ManifoldFactorizer, "fit", fit)
    found = calibration.record(0)
    assert found["verdict"] == "error: no convergence"
    assert not found["solved"]
    assert not found["right"]
    assert "Fits that failed: 1, problems 0." in calibration.render([found])


def test_the_report_has_the_share_of_products_that_are_right():
    records = [
        *(answer("product", True) for _ in range(3)),
        answer("product", False, kind="wells"),
        answer("none", True, kind="irreducible", product=False),
    ]
    report = calibration.render(records)
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


@pytest.mark.parametrize(
    ("verdict", "right"), [("none", True), ("partial", False), ("product", False)]
)
def test_on_a_problem_with_one_factor_the_verdict_none_is_right(monkeypatch, rng, verdict, right):
    # Even if the coordinates of the one factor are poor.
    n_factors = 1 if verdict == "none" else 2
    factors = [SimpleNamespace(embedding=rng.normal(size=(100, 1)))] * n_factors

    fitted = SimpleNamespace(verdict_=verdict, factors_=factors)
    fitted.evidence_ = SimpleNamespace(tests=[], reason="")
    fitted.fit = lambda X: fitted
    monkeypatch.setattr("studies.calibration.ManifoldFactorizer", lambda **_: fitted)
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (100, 100.1))
    found = calibration.record(2)  # a cloud
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


# How sure a verdict is.


def judged(value, limit, at_least, noise=float("nan")):
    return Criterion("test", limit, at_most=not at_least, meaning="", problem="").judge(
        value, noise
    )


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (judged(0.8, 0.8, True), 0.0),
        (judged(1.0, 0.8, True), 1.0),
        (judged(0.9, 0.8, True), 0.5),
        (judged(0.0, 0.8, True), 1.0),
        (judged(0.0, 0.2, False), 1.0),
        (judged(0.6, 0.2, False), 0.5),
        # Its noise is taken off before.
        (judged(0.3, 0.2, False, noise=0.2), 0.5),
        (judged(-0.1, 0.2, False), 1.0),
        # A count has no largest value.
        (judged(800, 200, True), 0.75),
        (judged(float("nan"), 0.2, False), 0.0),
    ],
)
def test_the_margin_is_the_distance_from_the_limit(test, expected):
    assert margin(test) == pytest.approx(expected)


def test_a_product_is_as_sure_as_its_narrowest_test():
    tests = [judged(0.9, 0.8, True), judged(0.01, 0.2, False)]
    assert verdict_confidence("product", tests) == pytest.approx(0.5)


def test_one_clear_failure_makes_none_sure_and_partial_unsure():
    tests = [judged(0.75, 0.8, True), judged(0.2, 0.8, True), judged(0.9, 0.8, True)]
    assert verdict_confidence("none", tests) == pytest.approx(0.75)
    assert verdict_confidence("partial", tests) == pytest.approx(0.25)


def test_a_verdict_without_tests_is_not_sure():
    assert verdict_confidence("none", []) == 0
    assert verdict_confidence("product", []) == 0


# Records that survive an interrupt.

JOBS = [{"seed": seed} for seed in range(3)]
RECORDS = [{"seed": seed, "solved": True} for seed in range(3)]
VERSIONED = [{**record, "version": __version__} for record in RECORDS]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "study.jsonl"


def interrupted(records):
    yield from records
    raise KeyboardInterrupt


def test_records_are_on_disk_before_they_are_handed_on(out):
    for number, _ in enumerate(keep(out, [], RECORDS), start=1):
        assert kept_records(out, JOBS) == VERSIONED[:number]
    assert not out.exists()
    finish(out, VERSIONED)
    assert len(out.read_text().splitlines()) == 3
    assert not unfinished(out).exists()


def test_a_study_continues_after_the_records_that_were_kept(out):
    with pytest.raises(KeyboardInterrupt):
        list(keep(out, [], interrupted(RECORDS[:2])))
    assert not out.exists()
    kept = kept_records(out, JOBS)
    assert kept == VERSIONED[:2]
    with unfinished(out).open("a") as file:
        file.write('{"seed": 1, "sol')  # a line that was not finished is left out
    assert kept_records(out, JOBS) == kept
    assert list(keep(out, kept, RECORDS[2:])) == VERSIONED[2:]
    finish(out, kept_records(out, JOBS))
    assert len(out.read_text().splitlines()) == 3


def test_records_that_were_done_in_another_order_are_put_in_order(out):
    list(keep(out, [], [RECORDS[2], RECORDS[0]]))
    kept = kept_records(out, JOBS)
    assert positions(kept, JOBS) == [2, 0]
    assert in_order([*kept, VERSIONED[1]], JOBS) == VERSIONED


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines({"seed": 7, "version": __version__}), "it holds others"),
        (lines(*[VERSIONED[0]] * 4), "it holds others"),
        (lines({"seed": 0, "version": "0.0.1"}), "it holds fits of 0.0.1"),
        (lines({"seed": 0}), "it holds fits of an unknown version"),
        ("no JSON\n", "one line of JSON for each fit"),
    ],
)
def test_records_of_another_study_or_version_are_refused(out, text, message):
    unfinished(out).write_text(text)
    with pytest.raises(ValueError, match=message):
        kept_records(out, JOBS)
