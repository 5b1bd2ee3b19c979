from pathlib import Path

from manifactor.cryoem.all_views.fitting import AllViewsTask
from manifactor.runs.options import FitOptions


def test_a_task_for_workers_of_another_folder_has_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = AllViewsTask(Path("all.star"), FitOptions(datadir="data", seed=3))
    moved = task.anywhere
    assert moved.path == tmp_path / "all.star"
    assert Path(moved.options.datadir) == tmp_path / "data"
    assert AllViewsTask(Path("all.star")).anywhere.options.datadir is None
    assert moved.options.seed == 3
