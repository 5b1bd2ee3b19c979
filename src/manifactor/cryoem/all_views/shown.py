"""Which directions show a motion, and which are blind to it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from manifactor._support.errors import one_line
from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages
from manifactor.cryoem.all_views.model import ViewMap
from manifactor.cryoem.all_views.volumes import (
    UNKNOWN,
    Cone,
    RunMotions,
    angles_of,
    choose_cone,
    given_cone,
    has_all_views,
    known_motions,
)
from manifactor.cryoem.averages.given_volumes import GivenVolumes
from manifactor.cryoem.directions import known_directions
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.places import Place
from manifactor.runs.run import Run
from manifactor.tables.images import picked


@dataclass(frozen=True)
class VisibilitySettings:
    """Settings of `visibility`."""

    # A direction shows a motion if the deviation of its particles is at most this share of that of
    # an image which shows nothing: three quarters of the variance are known. It is blind above the
    # other: less than half of the variance is known.
    shown: float = 0.5
    blind: float = 0.75
    # Mean squared cosine from which on blind directions lie around one axis: that of an angle of 30
    # degrees.
    around_axis: float = 0.75


@dataclass(frozen=True)
class Visibility:
    """How many directions show a motion."""

    shown: float  # shares of the directions with enough particles
    blind: float  # shares of the directions with enough particles
    blind_particles: float  # share of all particles in blind directions
    # Rot and tilt, in degrees, of the axis around which blind directions lie; None if there are
    # none, or no axis
    axis: tuple[float, float] | None


def visibility(
    views: ViewMap, motion: int, *, settings: VisibilitySettings = VisibilitySettings()
) -> Visibility:
    """Return how many directions show a motion, counted from 0."""
    enough = views.populated
    relative = views.deviations[:, motion] / UNKNOWN
    # Empty cells have no deviation and are neither.
    blind = relative > settings.blind
    return Visibility(
        shown=float((relative[enough] <= settings.shown).mean()),
        blind=float(blind[enough].mean()),
        blind_particles=float(views.counts[blind].sum() / views.counts.sum()),
        axis=_axis(views.directions[blind & enough], settings),
    )


def _axis(directions: np.ndarray, settings: VisibilitySettings) -> tuple[float, float] | None:
    """Return rot and tilt of the axis around which directions lie, if there is one."""
    if not len(directions):
        return None
    # Opposite directions are one, and have the same products of components.
    shares, axes = np.linalg.eigh(directions.T @ directions / len(directions))
    if shares[-1] < settings.around_axis:
        return None
    axis = axes[:, -1] if axes[2, -1] >= 0 else -axes[:, -1]
    return angles_of(axis[None])[0]


def motion_records(
    views: ViewMap, places: Sequence[Place], *, settings: VisibilitySettings = VisibilitySettings()
) -> list[dict]:
    """Return how well each motion is known, as run.json has it.

    The median deviation is that of all particles, in the unit of the factor.
    """
    return [
        {
            "topology": place.topology,
            **asdict(visibility(views, motion, settings=settings)),
            "median_deviation": float(np.median(place.displayed_deviation)),
        }
        for motion, place in enumerate(places)
        if place.displayed_deviation is not None
    ]


# What report and explorer show of particles of all views.


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
