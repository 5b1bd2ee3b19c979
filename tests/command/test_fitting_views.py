"""`fit` of several inputs: what is kept, how it is resumed, and who does the work."""

import shutil

import numpy as np
import pytest

from manifactor._support.workers import Here
from manifactor.command import fitting as fitting_views
from manifactor.runs.task import Task

from .conftest import manifactor, refusal

FIT = "fit a.npy b.npy c.npy --out run --sense geometry"


class Stopping(Here):
    """A worker that is stopped after some pieces."""

    def __init__(self, n_done):
        self.n_done = n_done

    def outcomes(self, work, jobs, **how):
        yield from super().outcomes(work, jobs[: self.n_done], **how)
        raise KeyboardInterrupt


@pytest.fixture
def inputs(folder, monkeypatch):
    for seed, name in enumerate("abc"):
        np.save(folder / f"{name}.npy", np.random.default_rng(seed).uniform(size=(120, 2)))
    # In this process, which can be watched.
    monkeypatch.setattr(fitting_views, "Processes", Here)
    return folder


@pytest.fixture
def fitted(monkeypatch):
    """Names of the inputs that are fitted."""
    names = []
    fit = Task.fit

    def counted(self, *given, **how):
        names.append(self.name)
        return fit(self, *given, **how)

    monkeypatch.setattr(Task, "fit", counted)
    return names


def stop_after(n_done, monkeypatch):
    monkeypatch.setattr(fitting_views, "Processes", lambda: Stopping(n_done))


@pytest.fixture
def stopped(inputs, fitted, capsys, monkeypatch):
    """Three inputs, two of which were fitted when the command was stopped."""
    with monkeypatch.context() as patch:
        stop_after(2, patch)
        assert manifactor(FIT) == 130
    err = capsys.readouterr().err
    assert "2 of 3 views are finished and kept; repeat the command with --resume" in err
    assert fitted == ["a", "b"]
    fitted.clear()
    return inputs


@pytest.mark.slow
def test_finished_views_are_kept_and_none_is_fitted_twice(stopped, fitted, capsys):
    assert not (stopped / "run").exists()
    # What a killed worker has left, a system, and a command that was stopped at its very end.
    (stopped / ".run.stages" / ".c.half").mkdir()
    (stopped / ".run.stages" / ".DS_Store").touch()
    (stopped / ".run.stages" / "views.csv").write_text("view,particles\n")
    assert manifactor(f"{FIT} --resume") == 0
    assert fitted == ["c"]
    captured = capsys.readouterr()
    assert "2 of 3 views are finished; continuing with the others" in captured.err
    assert [line.split()[0] for line in captured.out.splitlines()[1:4]] == list("abc")
    names = {path.name for path in stopped.iterdir()}
    assert names == {"a.npy", "b.npy", "c.npy", "run"}
    assert {path.name for path in (stopped / "run").iterdir()} == {*"abc", "views.csv"}
    assert len((stopped / "run" / "views.csv").read_text().splitlines()) == 4
    assert "must not exist yet; run does" in refusal(FIT, stopped, capsys)


@pytest.mark.slow
def test_views_are_not_resumed_with_other_options_or_inputs(stopped, fitted, capsys):
    belong = "must belong to this fit; they are of other inputs or settings"
    assert belong in refusal(f"{FIT} --seed 1 --resume", stopped, capsys)
    others = FIT.replace("a.npy", "d.npy")
    shutil.copy("a.npy", "d.npy")
    assert belong in refusal(f"{others} --resume", stopped, capsys)
    one = "fit a.npy --out run --sense geometry --resume"
    assert belong in refusal(one, stopped, capsys)
    (stopped / "a.npy").touch()
    assert belong in refusal(f"{FIT} --resume", stopped, capsys)
    assert fitted == []
