"""`bench` and `reproduce` as commands; the studies have tests of their own."""

import json
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from manifactor._support import errors as extras
from manifactor._support.version import __version__
from manifactor.studies import calibration
from manifactor.studies.paper import recipes

from .conftest import Screen, manifactor, refusal

ANSWER = {
    "seed": 0,
    "kind": "even",
    "verdict": "product",
    "confidence": 0.5,
    "product": True,
    "right": True,
}


def answers(n_problems, *, known=(), workers=None):
    seeds = [seed for seed in range(n_problems) if seed not in known]
    # As they are done, which is in any order.
    return [{**ANSWER, "seed": seed} for seed in reversed(seeds)]


@pytest.mark.parametrize("suffix", [".jsonl", ".md"])
def test_an_earlier_benchmark_is_not_replaced(folder, capsys, suffix):
    (folder / "mine").mkdir()
    (folder / "mine" / f"accuracy{suffix}").touch()
    message = refusal("bench accuracy --quick --out mine", folder, capsys)
    assert f"must not exist yet; mine/accuracy{suffix} does" in message


def test_results_go_into_a_folder(folder, capsys):
    (folder / "mine").touch()
    message = refusal("bench accuracy --quick --out mine", folder, capsys)
    assert "mine, which must be a writable folder" in message
    for line in ("bench calibration --out no/such", "reproduce --out no/such"):
        message = refusal(line, folder, capsys)
        assert "the output goes into no, which must be a writable folder" in message
        assert message.endswith("Choose another --out.\n")


@pytest.mark.parametrize("name", ["results.jsonl", "results.md"])
def test_no_folder_is_made_that_has_the_name_of_a_file(folder, capsys, name):
    message = refusal(f"bench accuracy --quick --out {name}", folder, capsys)
    assert "--out must name a folder, into which accuracy.jsonl is written" in message
    assert f"got {name}. Choose another --out." in message


@pytest.fixture
def answered(monkeypatch):
    """Random problems that take no time."""
    monkeypatch.setattr(calibration, "run", answers)


@pytest.fixture
def pictureless(monkeypatch):
    """An installation without matplotlib."""

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(extras, "import_module", missing)


@pytest.mark.slow
def test_the_calibration_prints_a_table_and_draws_it(folder, capsys, answered):
    assert manifactor("bench calibration --problems 30 --out mine") == 0
    out = capsys.readouterr().out
    assert 'Right when the verdict is "product": 100.0% (30 of 30;' in out
    assert "| even | 30 | 100% | 30 of 30 | - | - | - |" in out
    assert "Reliability diagram: mine/calibration.svg and mine/calibration.png" in out
    lines = (folder / "mine" / "calibration.jsonl").read_text().splitlines()
    assert len(lines) == 30
    text = (folder / "mine" / "calibration.md").read_text()
    assert text.split("\n![")[0] in out
    assert text.endswith("](calibration.svg)\n")
    image = Image.open(folder / "mine" / "calibration.png").convert("L")
    assert (np.asarray(image) < 128).any()
    ElementTree.parse(folder / "mine" / "calibration.svg")


def test_without_any_verdict_no_picture_is_drawn(folder, capsys, monkeypatch):
    def failed(n_problems, *, known=(), workers=None):
        return [{**answer, "verdict": "error: x"} for answer in answers(n_problems)]

    monkeypatch.setattr(calibration, "run", failed)
    assert manifactor("bench calibration --problems 2") == 0
    assert "no picture is drawn: no problem has a verdict" in capsys.readouterr().err
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["calibration.jsonl", "calibration.md"]


def test_an_interrupted_calibration_continues(folder, capsys, pictureless, monkeypatch):
    def stopped(n_problems, *, known=(), workers=None):
        yield from [answers(n_problems)[i] for i in (3, 1)]
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration, "run", stopped)
    line = "bench calibration --problems 5"
    assert manifactor(line) == 130
    assert "kept in calibration.jsonl.part; repeat" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["calibration.jsonl.part"]
    monkeypatch.setattr(calibration, "run", answers)
    assert manifactor("bench calibration --problems 1") == 2
    assert "it holds others" in capsys.readouterr().err
    assert manifactor(line) == 0
    captured = capsys.readouterr()
    assert "continuing after 2 of 5 problems" in captured.err
    assert "(5 of 5;" in captured.out
    lines = (folder / "calibration.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1, 2, 3, 4]
    assert not (folder / "calibration.jsonl.part").exists()


def test_the_remaining_time_is_that_of_the_fits_to_come(folder, answered, pictureless, monkeypatch):
    kept = [{**answer, "version": __version__} for answer in answers(3)]
    lines = "".join(f"{json.dumps(record)}\n" for record in kept)
    (folder / "calibration.jsonl.part").write_text(lines)
    monkeypatch.setattr(sys, "stderr", Screen())
    assert manifactor("bench calibration --problems 5") == 0
    bars = re.findall(r"\d of 5, [\d:]+, \S+ left", sys.stderr.getvalue())
    assert bars[0] == "3 of 5, 00:00, ? left"
    assert bars[-1].startswith("5 of 5")


@pytest.mark.parametrize(
    ("problem", "code"), [(KeyboardInterrupt(), 130), (OSError("disk full"), 2)]
)
def test_a_calibration_that_stops_while_it_draws_continues(
    folder, capsys, answered, monkeypatch, problem, code
):
    def half_drawn(records):
        (folder / "calibration.svg").touch()
        raise problem

    pictures = {".svg": b"<svg/>", ".png": b"pixels"}
    monkeypatch.setattr(calibration, "diagram", half_drawn)
    line = "bench calibration --problems 2"
    assert manifactor(line) == code
    assert not (folder / "calibration.jsonl").exists()
    assert "| all | 2 |" in (folder / "calibration.md").read_text()
    monkeypatch.setattr(calibration, "diagram", lambda records: pictures)
    assert manifactor(line) == 0
    assert "continuing after 2 of 2 problems" in capsys.readouterr().err
    assert (folder / "calibration.svg").read_bytes() == b"<svg/>"
    assert (folder / "calibration.md").read_text().endswith("](calibration.svg)\n")
    lines = (folder / "calibration.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]
    assert "must not exist yet" in refusal(line, folder, capsys)


def test_an_interrupted_study_replaces_no_finished_one(folder, capsys):
    for suffix in (".jsonl", ".jsonl.part", ".md"):
        (folder / f"calibration{suffix}").touch()
    message = refusal("bench calibration", folder, capsys)
    assert "must not exist yet; calibration.jsonl does" in message


def test_the_calibration_does_without_a_picture(folder, capsys, answered, pictureless):
    assert manifactor("bench calibration --quick") == 0
    captured = capsys.readouterr()
    assert "no picture will be drawn: this needs the package matplotlib" in captured.err
    assert "| all | 20 |" in captured.out
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["calibration.jsonl", "calibration.md"]
    assert "![" not in (folder / "calibration.md").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bench calibration --problems 0", "must be a whole number in [1, 1000000]"),
        ("bench accuracy --problems 3", "--problems is an option of bench calibration"),
    ],
)
def test_a_benchmark_refuses_what_it_cannot_do(folder, capsys, line, message):
    assert message in refusal(line, folder, capsys)


def test_earlier_pictures_are_not_replaced(folder, capsys):
    (folder / "calibration.png").touch()
    message = refusal("bench calibration", folder, capsys)
    assert "must not exist yet; calibration.png does" in message


@pytest.mark.parametrize("stopped", [False, True])
def test_recipes_are_told_of_as_they_end(folder, capsys, monkeypatch, stopped):
    def reproduce(names, out, settings, *, overwrite, workers, callback):
        yield "fig1", None
        yield "table1", 12.3
        if stopped:
            raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "reproduce", reproduce)
    assert manifactor("reproduce --out made") == (130 if stopped else 0)
    captured = capsys.readouterr()
    assert captured.out.startswith(
        "fig1     already done; --overwrite runs it again\ntable1   12 s\n"
    )
    assert ("made/index.html" in captured.out) is not stopped
    assert ("repeat the command to continue" in captured.err) is stopped


def test_an_unknown_recipe_is_refused(folder, capsys):
    assert "fig99" in refusal("reproduce fig99", folder, capsys)
