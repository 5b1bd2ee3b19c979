"""`report` and `explore`; the page that `explore` serves has tests of its own."""

import json

import numpy as np
import pytest

from .conftest import manifactor, record_of, refusal


@pytest.mark.slow
def test_simulate_fit_and_report_follow_each_other(data, folder, capsys):
    assert manifactor("fit data.npz --n-factors 2") == 0
    out = capsys.readouterr().out
    assert "Verdict: " in out
    assert "Factor 2: " in out
    assert record_of(folder / "data-run")["arguments"]["n_factors"] == 2
    table = (folder / "data-run" / "coordinates.csv").read_text()
    assert len(table.splitlines()) == 801
    assert manifactor("report data-run") == 0
    out = capsys.readouterr().out
    assert "bandwidth" in out
    assert out.endswith("\nReport: data-run/report.html\n")
    assert (folder / "data-run" / "report.html").is_file()


def test_a_page_that_cannot_be_written_is_refused_before_it_is_drawn(folder, capsys, monkeypatch):
    monkeypatch.setattr("manifactor.command.runs.read_run", lambda _: ({}, None))
    (folder / "run").mkdir()
    (folder / "old.html").touch()
    for line, message in [
        ("report run --out page", "--out must end in .html; got page."),
        ("report run --out no/page.html", "writable folder: No such file"),
        ("report run --out old.html", "old.html does. Choose another --out, or"),
    ]:
        assert message in refusal(line, folder, capsys)

    def refused(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    message = refusal("report run", folder, capsys)
    assert "Read-only file system. Give another file with --out." in message


@pytest.mark.slow
def test_the_report_has_signal_to_noise_leakage_and_confounders(run, capsys):
    assert manifactor(f"report {run}") == 0
    out = capsys.readouterr().out
    for text in ("Principal components of the images or volumes", "Leakage: R^2", "half set"):
        assert text in out
    record = record_of(run)
    assert record["components"]["signal_to_noise"][0] > 100
    assert {c["name"] for c in record["confounders"]} == {"half set"}
    assert 0 < record["agreement"] <= 1
    assert 0.98 < record["reliability"] <= 1


def spoilt(value):
    """What run.json holds, with signs in every text that steer a terminal or a page."""
    if isinstance(value, dict):
        return {name: spoilt(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [spoilt(inside) for inside in value]
    return f"{value}\x1b[2J\x9b<b>\u202e\udcff" if isinstance(value, str) else value


@pytest.mark.slow
def test_text_of_a_run_steers_neither_the_terminal_nor_the_page(folder, capsys):
    np.save("a.npy", np.random.default_rng(0).uniform(size=(150, 2)))
    assert manifactor("fit a.npy --n-factors 1 --out 'a run'") == 0
    assert "run: manifactor report 'a run'\n" in capsys.readouterr().out
    record = record_of(folder / "a run")
    free = ("input", "reproduce", "started", "versions", "reason", "choices", "columns")
    changed = {name: spoilt(record[name]) for name in free if name in record}
    assert changed.keys() >= {"input", "reproduce", "versions"}
    (folder / "a run" / "run.json").write_text(json.dumps({**record, **changed}))
    assert manifactor("report 'a run'") == 0
    out = capsys.readouterr().out
    assert "\\x1b[2J\\x9b<b>\\u202e\\udcff" in out
    assert not any(sign in out for sign in "\x1b\x9b\u202e\udcff")
    page = (folder / "a run" / "report.html").read_text()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


@pytest.mark.parametrize("command", ["report", "explore"])
def test_a_folder_that_is_no_run_is_refused(folder, capsys, command):
    assert "is not a run folder" in refusal(f"{command} .", folder, capsys)
    assert "nowhere does not exist" in refusal(f"{command} nowhere", folder, capsys)


def test_a_folder_for_selections_must_be_writable(folder, capsys):
    line = "explore . --save-to no/such/folder"
    assert "must be a writable folder" in refusal(line, folder, capsys)
