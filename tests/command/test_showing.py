"""`report`, `explore` and `views`; the page that `explore` serves has tests of its own."""

import json
import shutil

import numpy as np
import pytest

from .conftest import N, manifactor, record_of


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


# `views`


@pytest.fixture
def particles(molecule, folder):
    """Particles of one view in a folder with a space in its name."""
    shutil.copytree(molecule, folder / "my data" / "data")
    return folder / "my data" / "data" / "particles.star"


@pytest.mark.slow
def test_the_printed_command_fits_the_best_view(particles, folder, capsys):
    assert manifactor("views 'my data/data/particles.star'") == 0
    out = capsys.readouterr().out
    assert f"{N} particles; those within 10 degrees of a direction:" in out
    (row,) = [line for line in out.splitlines() if line.startswith("1 ")]
    assert row.split()[2:5] == ["120", str(N), "100.0%"]
    (line,) = [line for line in out.splitlines() if line.startswith("Best view")]
    _, command = line.split(": manifactor ")
    assert manifactor(f"{command} --dry-run") == 0
