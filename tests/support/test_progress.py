"""Progress: where bars are drawn, and where lines are printed."""

import sys

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


def test_an_estimator_shows_its_stages(rectangle, capsys):
    DiffusionMap(5, random_state=0, verbose=1).fit(rectangle[0][:300])
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert names == ["preparation:", "neighbours:", "affinity:", "spectrum:"]
