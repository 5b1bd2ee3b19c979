"""Particles seen from one direction."""

import numpy as np

from manifactor._support.parameters import require_number
from manifactor.cryoem.particles import Particles, view_directions
from manifactor.inputs.particle_choice import group_sizes


def checked_width(
    width: float | None, view: tuple[float, float] | None, *, usual: float = 10.0
) -> float:
    """Return the degrees around a view; refuse them where there is no view."""
    if width is None:
        return usual
    require_number("width", width, low=0, high=180)
    if view is None:
        raise ValueError(
            "--width is the angle around a view; give one with --view ROT,TILT, or "
            "leave --width out."
        )
    return width


def picked(
    particles: Particles, view: tuple[float, float], width: float, *, or_opposite: bool = False
) -> Particles:
    """Return the particles within `width` degrees of a view, (rot, tilt).

    Or within as many of the opposite view, if asked for.
    """
    # One image alone has no differences to factor.
    near = particles.near_view(*view, width=width, or_opposite=or_opposite)
    if near.sum() < 2:
        rot, tilt = view
        raise ValueError(
            f"the view must show some particles; within {width:g} degrees of rot "
            f"{rot:g}, tilt {tilt:g} there are {near.sum()} of {len(near)}. Choose "
            "another view or a larger --width."
        )
    return particles[near]


def is_one_view(particles: Particles, *, max_angle: float = 30.0) -> bool:
    """Return whether all particles are seen within an angle of their mean direction.

    Particles without angles count as one view.
    """
    # Particles of a 2-D class have no angles; to choose the class was to choose a view.
    return particles.angles is None or _spread(particles.angles) <= max_angle


def require_one_view(particles: Particles, *, max_angle: float = 30.0) -> None:
    """Refuse images of many views, whose differences are mostly those of the views."""
    if particles.angles is None or is_one_view(particles, max_angle=max_angle):
        return
    raise ValueError(
        f"images must show one view; those of {particles.path} are up to "
        f"{_spread(particles.angles):.0f} degrees apart from their middle. Pick one "
        "with --view ROT,TILT --width DEGREES (`manifactor views` lists them), or fit "
        "all of them together with --all-views."
    )


def require_one_class(particles: Particles) -> None:
    """Refuse images of several classes of a 2-D classification.

    Such classes usually are different views, and no other angles tell these apart.
    """
    classes = particles.microscope.get("class")
    flat = particles.angles is None or particles.in_plane_only
    if classes is None or not flat or (classes == classes[0]).all():
        return
    raise ValueError(
        f"images must show one view; those of {particles.path} are of "
        f"{len(np.unique(classes))} classes of a 2-D classification: "
        f"{group_sizes(classes)}. Choose one with --class, or several of one view."
    )


def _spread(angles: np.ndarray) -> float:
    """Return the largest angle in degrees between views and their mean direction."""
    directions = view_directions(angles)
    mean = directions.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-6:  # directions that cancel have no mean direction
        return 180.0
    # Rounding may take a cosine beyond 1, where the angle is not a number.
    cosines = np.clip(directions @ mean / length, -1, 1)
    return float(np.degrees(np.arccos(cosines)).max())
