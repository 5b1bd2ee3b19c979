import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from manifactor._support.workers import Here
from manifactor.datasets import FIELD
from studies.accuracy import (
    Case,
    TableSettings,
    full_table,
    jobs,
    main,
    quick_table,
    record,
    render,
)
from studies.baselines import BASELINES, METHODS
from studies.field import FieldSettings

FIELDS = {"group", "shape", "seed", "verdict", "solved", "own", "leak", "seconds"}


@pytest.mark.slow
def test_the_quick_benchmark_prints_a_table_and_writes_every_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = [(replace(case, n=400), 1) for case, _ in quick_table()[:2]]
    monkeypatch.setattr("studies.accuracy.quick_table", lambda: small)
    monkeypatch.setattr("studies.running.Processes", Here)
    main(["--quick"])
    out = capsys.readouterr().out
    assert "| the paper's | 1 | 100% |" in out
    lines = (tmp_path / "accuracy.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert set(json.loads(lines[0])) >= FIELDS
    with pytest.raises(ValueError, match="must not exist yet"):
        main(["--quick"])


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
    few = TableSettings(seeds=1, noise_levels=(0.1,), small_sizes=())
    table = full_table(few)
    groups = {case.group: seeds for case, seeds in table}
    assert groups["the paper's"] == groups["noise 0.10"] == 1
    assert "noise 0.05" not in groups
    assert not any(group.startswith("n = ") for group in groups)


def test_the_table_has_every_shape_of_the_field_and_near_products_in_several_sizes():
    table = full_table(TableSettings(field=FieldSettings(near_sizes=(500,))))
    seeds = {case.shape: seeds for case, seeds in table if case.group in FIELD}
    assert set(seeds) == {name for shapes in FIELD.values() for name in shapes}
    assert set(seeds.values()) == {10}
    groups = {case.group: case.n for case, _ in table}
    assert groups["gaussian, n = 30000"] == 30_000
    assert groups["near products, n = 500"] == 500


def test_a_run_is_scored_against_the_truth():
    found = record(Case("boxes", "square", n=200, method="pca"), 0)
    assert set(found) >= FIELDS
    # The axes of a square's principal components are arbitrary.
    assert found["number_right"]
    assert not found["solved"]
    assert found["attainable"] == 1.0
    assert record(Case("boxes", "rectangle", n=300, method="pca"), 0)["solved"]


def test_a_method_that_fails_is_recorded_and_not_solved(monkeypatch):
    def failing(X, truth, seed):
        raise RuntimeError("no convergence")

    monkeypatch.setitem(METHODS, "failing", failing)
    found = record(Case("boxes", "square", n=100, method="failing"), 0)
    assert found["verdict"] == "error: no convergence"
    assert not found["solved"]


def test_noise_bounds_what_can_be_attained():
    noisy = Case("noise", "square", n=400, noise=0.1, columns=20, method="pca")
    assert 0.5 < record(noisy, 0)["attainable"] < 0.95


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
    table = render(records)
    assert "| random | 2 | 50% | 9%-91% | 100% | 1 / 0 / 1 | 1.0 |" in table
    assert "| product | 1 | 1 | 1 |" in table
    assert "| none | 1 | 1 | 0 |" in table
    # A method without a verdict has none counted.
    *_, row = render([{**run, "verdict": "", "solved": False}]).splitlines()[:3]
    assert row == "| random | 1 | 0% | 0%-79% | 100% | - | 1.0 |"
