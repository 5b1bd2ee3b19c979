"""The molecule along the factors of another program's coordinates.

Such a run has places of particles of all views. Volumes along the factors are computed from images
when they are first shown, and kept in the run folder.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.known_places import (
    KnownPlaceSettings,
    counted_views,
    model_of_places,
)
from manifactor.cryoem.all_views.model import MotionModel
from manifactor.cryoem.all_views.transforms import read_transforms
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.archive import write_tree
from manifactor.runs.cones import has_all_views
from manifactor.runs.motions import (
    MODEL_FILE,
    RunMotions,
    Scale,
    is_of_all_views,
    open_motions,
    scales_of,
)
from manifactor.runs.run import Run


def needs_volumes(run: Run) -> bool:
    """Return whether volumes along a run's factors are still to be computed.

    That is so for coordinates of particles of all views.
    """
    if (run.folder / MODEL_FILE).exists() or is_of_all_views(run.record):
        return False
    try:
        return has_all_views(run)
    except (ValueError, OSError):
        # Particles that cannot be read are reported where they are averaged.
        return False


def known_motions(
    run: Run,
    fit: ManifoldFactorizer,
    *,
    stages: Stages | None = None,
    workers: Workers = Here(),
    settings: KnownPlaceSettings = KnownPlaceSettings(),
) -> RunMotions | None:
    """Return the motions of a run, computed from its images if there are none yet."""
    if not needs_volumes(run):
        return open_motions(run, fit)
    scales = scales_of(fit, settings=settings)
    model = _model(run, scales, stages or Stages(), workers, settings)
    # In a folder that cannot be written, they are computed again each time.
    with suppress(OSError):
        write_tree(run.folder / MODEL_FILE, model)
    return RunMotions(model, scales, expected=True)


def _model(
    run: Run,
    scales: Sequence[Scale],
    stages: Stages,
    workers: Workers,
    settings: KnownPlaceSettings,
) -> MotionModel:
    # Drawn, not the first: particles are often in an order. The same ones every time.
    rng = np.random.default_rng(0)
    drawn = np.sort(rng.permutation(len(run.rows))[: settings.learned])
    particles = run.particles[drawn]
    source = run.choice.images(particles)
    transforms = read_transforms(source, particles, rng=rng, stages=stages, workers=workers)
    pairs = zip(scales, run.places, strict=True)
    with stages.timed("volumes"):
        model = model_of_places(
            transforms,
            [scale.topology for scale in scales],
            [scale.columns(place[drawn]) for scale, place in pairs],
            rng=rng,
            report=lambda done: stages.report("volumes", done),
            workers=workers,
            settings=settings,
        )
    # Directions of all particles, not only of those that were read.
    views = replace(model.views, counts=counted_views(run.particles).counts)
    return replace(model, views=views)
