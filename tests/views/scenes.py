"""A run folder as a scene of the explorer, as the command opens it."""

from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.views.explorer.scene import scene_of


def open_scene(folder, *, shown=None):
    """Return a run folder, opened for looking."""
    run = open_run(folder, some=True)
    _, fit = read_run(run.folder)
    return scene_of(run, fit, shown or Shown(open_motions(run, fit)))
