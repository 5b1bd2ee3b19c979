"""The direction from which images along a factor are averaged."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import cores
from manifactor.cryoem.directions import populated_views
from manifactor.cryoem.particles import view_directions
from manifactor.inputs.one_view import is_one_view
from manifactor.runs.motions import RunMotions, angles_of
from manifactor.runs.run import Run


@dataclass(frozen=True)
class ConeSettings:
    """Settings of `choose_cone`."""

    # Degrees around a direction, the narrowest first: the first at which there are enough images is
    # taken. Images more than 30 degrees off show another view.
    widths: tuple[float, ...] = (10.0, 15.0, 20.0, 30.0)
    enough: int = 150

    # A direction must have this share of the images of the fullest one.
    populated: float = 0.5


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


def has_all_views(run: Run) -> bool:
    """Return whether a run's particles are seen from many directions."""
    if "particles" not in run.record or "components" in run.record:
        return False
    return not is_one_view(run.particles)


def given_cone(
    directions: np.ndarray,
    view: tuple[float, float],
    width: float | None,
    *,
    settings: ConeSettings = ConeSettings(),
) -> Cone:
    """Return the images around a view; without a width, enough of them.

    Shapes: directions (n, 3).
    """
    centre = view_directions(np.array([[*view, 0.0]]))[0]
    cosines = np.abs(directions @ centre)
    for angle in settings.widths if width is None else (width,):
        # Rounding must not drop an image at exactly this angle.
        count = int((cosines >= np.cos(np.radians(angle)) - 1e-12).sum())
        if count >= settings.enough:
            break
    return Cone(view, angle, count)


def choose_cone(
    directions: np.ndarray,
    motions: RunMotions | None,
    motion: int,
    *,
    width: float | None = None,
    settings: ConeSettings = ConeSettings(),
) -> Cone:
    """Return a well populated direction that shows a motion best.

    Shapes: directions (n, 3).
    """
    # A view and the one from behind are one.
    tree = KDTree(np.concatenate([directions, -directions]))
    for angle in settings.widths if width is None else (width,):
        cone = _best_cone(tree, motions, motion, angle, settings)
        if cone.n_images >= settings.enough:
            break
    return cone


def _best_cone(
    tree: KDTree, motions: RunMotions | None, motion: int, width: float, settings: ConeSettings
) -> Cone:
    if motions is None:
        (found,) = populated_views(np.asarray(tree.data), width=width, n_views=1)
        return Cone((found.rot, found.tilt), width, found.n_particles)
    views = motions.model.views
    angles = angles_of(views.directions)
    centres = view_directions(np.array([[*view, 0.0] for view in angles]))
    chord = 2 * np.sin(np.radians(width) / 2)
    counts = tree.query_ball_point(centres, chord, return_length=True, workers=cores())
    populated = counts >= settings.populated * counts.max()
    shown = np.where(populated, views.deviations[:, motion], np.inf)
    # The deviation of a cell without particles is not known.
    best = int(np.nanargmin(shown))
    return Cone(angles[best], width, int(counts[best]))
