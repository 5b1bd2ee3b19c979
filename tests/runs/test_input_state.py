"""Inputs that are changed while they are fitted: a finished fit is never lost."""

import numpy as np
import pytest

from manifactor.runs import task as tasks
from manifactor.runs.folder import InputWarning, read_run
from manifactor.runs.options import FitOptions
from manifactor.runs.task import Task


def fit_and(event, task, out, monkeypatch):
    """Fit, and let something happen when the fit is done."""
    fit_input = tasks.fit_input

    def fitted(*arguments, **options):
        found = fit_input(*arguments, **options)
        event()
        return found

    monkeypatch.setattr(tasks, "fit_input", fitted)
    return task.fit(task.read(), out)


@pytest.fixture
def samples(tmp_path, rng):
    np.save(tmp_path / "X.npy", rng.uniform(size=(150, 2)))
    return tmp_path / "X.npy"


@pytest.mark.medium
@pytest.mark.filterwarnings("default::manifactor.SampleWarning")
def test_an_input_that_is_removed_or_overwritten_costs_a_warning(samples, tmp_path, monkeypatch):
    X, out = np.load(samples), tmp_path / "run"

    def overwritten():
        np.save(samples, np.zeros((3, 3)))

    with pytest.warns(InputWarning, match=r"X\.npy was changed while it was fitted"):
        fit_and(overwritten, Task(samples), out, monkeypatch)
    read = read_run(out)[1]
    assert read.locate(X[:9])[0].coordinate.shape == (9,)
    np.save(samples, X)
    with pytest.warns(InputWarning, match=r"X\.npy was removed while it was fitted"):
        fit_and(samples.unlink, Task(samples), tmp_path / "other", monkeypatch)
    assert "input_changed" in read_run(tmp_path / "other")[0]


@pytest.mark.filterwarnings("default::manifactor.SampleWarning")
def test_particles_that_are_removed_cost_only_their_own_file(samples, tmp_path, monkeypatch):
    star = tmp_path / "a.star"
    rows = "".join(f"{k + 1:06d}@a.mrcs {k}\n" for k in range(150))
    star.write_text(f"data_\n\nloop_\n_rlnImageName #1\n_rlnCoordinateX #2\n{rows}")
    task = Task(samples, FitOptions(particles=str(star)))
    with pytest.warns(InputWarning) as found:
        fit_and(star.unlink, task, tmp_path / "run", monkeypatch)
    texts = [str(each.message) for each in found]
    assert any("particles.star of the run was not written" in text for text in texts)
    assert read_run(tmp_path / "run")[0]["particles"] == str(star)
    assert not (tmp_path / "run" / "particles.star").exists()


def test_a_run_that_a_killed_command_had_moved_away_is_put_back_where_it_is_read(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    for name in ("run.json", "factorization.npz"):
        (out / name).write_text("{}")
    out.rename(tmp_path / ".run.old.abcdefgh")
    with pytest.raises(ValueError, match=r"run\.json"):
        read_run(out)  # it is there again, and is not a record
    assert (out / "run.json").is_file()
