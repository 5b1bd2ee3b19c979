"""What report and explorer show of particles of all views."""

from dataclasses import dataclass

import numpy as np

from manifactor._support.errors import one_line
from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages
from manifactor.cryoem.directions import known_directions
from manifactor.estimators import ManifoldFactorizer
from manifactor.inputs.one_view import picked
from manifactor.runs.cones import Cone, choose_cone, given_cone, has_all_views
from manifactor.runs.given_volumes import GivenVolumes
from manifactor.runs.known_motions import known_motions
from manifactor.runs.motions import RunMotions
from manifactor.runs.run import Run


@dataclass(frozen=True)
class Wanted:
    """What a user asked to see."""

    # Degrees; None for the direction that shows each factor best
    view: tuple[float, float] | None = None
    # Degrees around it in which images are averaged; None for enough of them
    width: float | None = None
    volumes: GivenVolumes | None = None  # of another program, along a factor

    def check(self, run: Run) -> None:
        """Refuse what a run cannot show, before anything is computed."""
        if self.width is not None:
            require_number("width", self.width, above=0, high=90)
        directed = self.view is not None or self.width is not None
        if directed and self.volumes is None and not has_all_views(run):
            raise ValueError(
                "--view and --width choose among particles of all views; "
                f"{run.folder} has none. Leave them out."
            )


@dataclass(frozen=True)
class Shown:
    """What is shown of particles of all views; nothing of other runs."""

    motions: RunMotions | None = None  # the molecule along the factors
    # The images that are averaged along each factor; empty if all show one view
    cones: tuple[Cone, ...] = ()
    why: str = ""  # why there is no molecule, if it could not be computed
    wanted: Wanted = Wanted()  # what the user asked to see

    @property
    def volumes(self) -> GivenVolumes | None:
        """Volumes of another program."""
        return self.wanted.volumes

    def view(self, motion: int) -> tuple[float, float] | None:
        """Return the direction in which a factor, counted from 0, is shown.

        None for the one that shows it best.
        """
        return self.cones[motion].view if self.cones else self.wanted.view


def open_shown(
    run: Run, fit: ManifoldFactorizer, wanted: Wanted = Wanted(), *, stages: Stages | None = None
) -> Shown:
    """Return what is to be shown of a run, computed from images if necessary."""
    wanted.check(run)
    motions, why = None, ""
    try:
        motions = known_motions(run, fit, stages=stages)
    except (ValueError, OSError) as error:
        why = one_line(error)
    return Shown(motions, _cones(run, motions, wanted), why, wanted)


def _cones(run: Run, motions: RunMotions | None, wanted: Wanted) -> tuple[Cone, ...]:
    directions = _directions(run)
    if directions is None:
        return ()
    if wanted.view is None:
        return tuple(
            choose_cone(directions, motions, motion, width=wanted.width)
            for motion in range(len(run.places))
        )
    cone = given_cone(directions, wanted.view, wanted.width)
    # Refuses a view that shows nothing.
    picked(run.particles, cone.view, cone.width, or_opposite=True)
    return (cone,) * len(run.places)


def _directions(run: Run) -> np.ndarray | None:
    """Return the directions of particles of all views; None for any other run."""
    try:
        return known_directions(run.particles) if has_all_views(run) else None
    except (ValueError, OSError):  # the page says what is wrong with the particles
        return None
