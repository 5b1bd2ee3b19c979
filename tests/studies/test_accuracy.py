import json

from manifactor.command.main import main
from manifactor.studies.accuracy import BASELINES, full_table, render


def test_the_quick_benchmark_prints_a_table_and_writes_every_run(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "accuracy", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "| the paper's | 2 | 100% |" in out
    records = [
        json.loads(line)
        for line in (tmp_path / "accuracy.jsonl").read_text().splitlines()
    ]
    assert len(records) == 7
    assert {
        "group",
        "shape",
        "seed",
        "verdict",
        "solved",
        "own",
        "leak",
        "seconds",
    } <= set(records[0])
    assert main(["bench", "accuracy", "--quick"]) == 2
    assert "must not exist yet" in capsys.readouterr().err


def test_the_table_has_every_group_and_every_baseline():
    cases = [case for case, _ in full_table()]
    assert {case.method for case in cases} >= set(BASELINES)
    assert {
        seeds
        for case, seeds in full_table()
        if case.group in ("the paper's", "repeated eigenvalues")
    } == {20}


def test_the_reliability_of_verdicts_is_counted():
    run = {"group": "random", "number_right": True, "seconds": 1.0}
    records = [
        {**run, "verdict": "product", "solved": True},
        {**run, "verdict": "none", "solved": False},
    ]
    assert "| product | 1 | 1 | 1 |" in render(records)
    assert "| none | 1 | 1 | 0 |" in render(records)
