"""Progress: where bars are drawn, and where lines are printed."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from manifactor import DiffusionMap
from manifactor._support.progress import shown_progress
from tests.command.conftest import Screen


def done(callback):
    callback("neighbours", 0.0)
    callback("neighbours", 0.5)
    callback("neighbours", 1.0)


def test_nothing_is_shown_unless_it_is_asked_for(capsys):
    heard = []
    given = lambda *event: heard.append(event)  # noqa: E731
    with shown_progress(given, verbose=0, name="Fit") as callback:
        assert callback is given
    with shown_progress(None, verbose=False, name="Fit") as callback:
        assert callback is None
    assert capsys.readouterr() == ("", "")


def test_lines_name_stages_with_their_seconds_and_the_callback_hears_them(capsys):
    heard = []
    with shown_progress(lambda *event: heard.append(event), verbose=True, name="Fit") as callback:
        done(callback)
        callback("spectrum", 0.0)
    out, err = capsys.readouterr()
    assert (out, err) == ("[Fit] neighbours: 0.00 s\n", "")
    assert heard[:3] == [("neighbours", fraction) for fraction in (0.0, 0.5, 1.0)]


def test_a_terminal_has_bars_that_end_with_an_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Screen())

    def interrupted():
        with shown_progress(None, verbose=1, name="Fit") as callback:
            done(callback)
            callback("spectrum", 0.5)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    drawn = sys.stderr.getvalue()
    assert "neighbours   |" in drawn
    assert drawn.endswith("\n")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("stage", "told"), [("neighbours", False), ("places", True)])
def test_an_estimator_tells_the_remaining_time_of_steady_stages_only(monkeypatch, stage, told):
    monkeypatch.setattr(sys, "stderr", Screen())
    with DiffusionMap(verbose=1)._progress(None) as callback:
        callback(stage, 0.5)
    assert (" left" in sys.stderr.getvalue()) == told


@pytest.fixture
def notebook(monkeypatch):
    """Modules of tqdm as in a notebook; the bars that are made."""
    made = []

    class Bar:
        def __init__(self, **how):
            self.n, self.how, self.closed = 0.0, how, False
            made.append(self)

        def update(self, step):
            self.n += step

        def close(self):
            self.closed = True

    for name in ("tqdm.auto", "tqdm.notebook"):
        module = ModuleType(name)
        module.tqdm = Bar
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    return made


def test_a_notebook_has_the_bars_of_tqdm_auto(notebook, capsys):
    with shown_progress(None, verbose=True, name="Fit") as callback:
        done(callback)
    (bar,) = notebook
    assert (bar.n, bar.closed, bar.how["desc"]) == (1.0, True, "neighbours")
    # The notebook replaces this field, and no other, by a bar of its own.
    assert "{bar}" in bar.how["bar_format"]
    assert capsys.readouterr() == ("", "")


def test_an_estimator_shows_its_stages(rectangle, capsys):
    DiffusionMap(5, random_state=0, verbose=1).fit(rectangle[0][:300])
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert names == ["preparation:", "neighbours:", "affinity:", "spectrum:"]
