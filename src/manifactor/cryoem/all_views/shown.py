"""What report and explorer show of particles of all views.

That is the molecule along the factors, and the images seen from about one direction, which are
averaged along each factor.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import one_line
from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages
from manifactor._support.threads import cores
from manifactor.cryoem.all_views.model import angles_of
from manifactor.cryoem.all_views.volumes import RunMotions, has_all_views, known_motions
from manifactor.cryoem.directions import known_directions, populated_views
from manifactor.cryoem.files.particles import view_directions
from manifactor.cryoem.given_volumes import GivenVolumes
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.run import Run
from manifactor.tables.reading import picked

# Degrees around a direction, the narrowest first: the first at which there are enough images is
# taken. Images more than 30 degrees off show another view.
WIDTHS = (10.0, 15.0, 20.0, 30.0)
ENOUGH = 150


@dataclass(frozen=True)
class Cone:
    """Images seen from about one direction, or, mirrored, from the opposite one."""

    view: tuple[float, float]  # degrees
    width: float  # largest angle to it, in degrees
    n_images: int

    def __str__(self) -> str:
        rot, tilt = self.view
        return (
            f"{self.n_images:,} images within {self.width:g}° of rot {rot:g}°, tilt "
            f"{tilt:g}° (mirrored from behind)"
        )


def given_cone(directions: np.ndarray, view: tuple[float, float], width: float | None) -> Cone:
    """Return the images around a view; without a width, enough of them.

    Shapes: directions (n, 3).
    """
    cosines = np.abs(directions @ view_directions(np.array([[*view, 0.0]]))[0])
    # Rounding must not drop an image at exactly this angle.
    return _widened(
        lambda angle: Cone(view, angle, int((cosines >= np.cos(np.radians(angle)) - 1e-12).sum())),
        width,
    )


def choose_cone(
    directions: np.ndarray, motions: RunMotions | None, motion: int, *, width: float | None = None
) -> Cone:
    """Return a well populated direction that shows a motion best.

    Shapes: directions (n, 3).
    """
    # A view and the one from behind are one.
    tree = KDTree(np.concatenate([directions, -directions]))
    return _widened(lambda angle: _best_cone(tree, motions, motion, angle), width)


def _widened(find: Callable[[float], Cone], width: float | None) -> Cone:
    """Return the cone of a width, or the first one with enough images."""
    for angle in WIDTHS if width is None else (width,):
        cone = find(angle)
        if cone.n_images >= ENOUGH:
            break
    return cone


def _best_cone(tree: KDTree, motions: RunMotions | None, motion: int, width: float) -> Cone:
    if motions is None:
        (found,) = populated_views(np.asarray(tree.data), width=width, n_views=1)
        return Cone((found.rot, found.tilt), width, found.n_particles)
    views = motions.model.views
    angles = angles_of(views.directions)
    centres = view_directions(np.array([[*view, 0.0] for view in angles]))
    chord = 2 * np.sin(np.radians(width) / 2)
    counts = tree.query_ball_point(centres, chord, return_length=True, workers=cores())
    # A direction must have half of the images of the fullest one.
    populated = counts >= 0.5 * counts.max()
    shown = np.where(populated, views.deviations[:, motion], np.inf)
    # The deviation of a cell without particles is not known.
    best = int(np.nanargmin(shown))
    return Cone(angles[best], width, int(counts[best]))


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
    try:
        directions = known_directions(run.particles) if has_all_views(run) else None
    except (ValueError, OSError):  # the page says what is wrong with the particles
        directions = None
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
