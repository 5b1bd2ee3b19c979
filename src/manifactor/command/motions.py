"""Volumes along the factors of a run, computed with a progress bar where necessary."""

from collections.abc import Iterator
from contextlib import contextmanager

from manifactor._support.stages import Stages
from manifactor._support.workers import Workers
from manifactor.command.terminal import ProgressBars, note
from manifactor.runs.averaging import places_along
from manifactor.runs.folder import read_run
from manifactor.runs.known_motions import known_motions, needs_volumes
from manifactor.runs.model_volumes import require_plain
from manifactor.runs.motions import MODEL_FILE, RunMotions
from manifactor.runs.run import Run


@contextmanager
def reported_volumes(run: Run) -> Iterator[Stages]:
    """Yield stages that draw progress bars; say first what takes a while."""
    if needs_volumes(run):
        note(
            "volumes along the factors are computed from the images, once, and kept in "
            f"{run.folder / MODEL_FILE}."
        )
    with ProgressBars() as bars:
        yield Stages().start(bars)


def motions_to_average(
    run: Run, factors: list[int], *, matched: bool, halves: bool, workers: Workers
) -> RunMotions | None:
    """Return what shows the molecule along factors, counted from 1.

    None for a run whose images themselves are averaged.
    """
    has_model = (run.folder / MODEL_FILE).exists() or needs_volumes(run)
    if not has_model:
        return None
    # Before volumes are computed.
    require_plain(matched=matched, halves=halves)
    places_along(run, factors)
    with reported_volumes(run) as stages:
        fit = read_run(run.folder)[1]
        return known_motions(run, fit, stages=stages, workers=workers)
