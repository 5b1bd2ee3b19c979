"""Which directions show a motion, and which are blind to it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from manifactor.cryoem.all_views.view_map import ViewMap
from manifactor.runs.motions import UNKNOWN, angles_of
from manifactor.runs.places import Place


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
