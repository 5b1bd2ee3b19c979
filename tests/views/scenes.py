"""A run folder as a scene of the explorer, as the command opens it."""

from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.views.explorer.scene import scene_of
from manifactor.views.sections import open_additions


def open_scene(folder, *, shown=None):
    """Return a run folder, opened for looking."""
    run = open_run(folder, some=True)
    _, fit = read_run(run.folder)
    return scene_of(run, fit, open_additions(run, fit) if shown is None else shown)
