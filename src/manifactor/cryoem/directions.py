"""From which directions, unit vectors (n, 3), particles are seen: cones, one view, counts."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.parameters import require_number
from manifactor._support.threads import cores
from manifactor._support.values import ceil_div
from manifactor.cryoem.files.particles import Particles, group_sizes, view_directions


@dataclass(frozen=True)
class Cone:
    """Particles seen from about one direction."""

    rot: float  # RELION's angles of the direction, in degrees
    tilt: float
    width: float  # largest angle to it, in degrees
    n_particles: int

    @property
    def view(self) -> tuple[float, float]:
        """Rot and tilt."""
        return self.rot, self.tilt

    @property
    def direction(self) -> np.ndarray:
        """The unit vector of the direction, (3,)."""
        return view_directions(np.array([self.view]))[0]

    def __str__(self) -> str:
        return (
            f"{self.n_particles:,} images within {self.width:g}° of rot {self.rot:g}°, tilt "
            f"{self.tilt:g}° (mirrored from behind)"
        )


def known_directions(particles: Particles) -> np.ndarray:
    """Return the directions from which particles are seen; refuse missing angles."""
    if particles.angles is None:
        raise ValueError(
            f"viewing directions need poses; {particles.path} has none. Give the file of a 3D "
            "refinement, with rlnAngleRot and rlnAngleTilt (.star) or alignments3D/pose (.cs)."
        )
    finite = np.isfinite(particles.angles).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"viewing directions need a pose of every particle; {(~finite).sum()} of "
            f"{len(finite)} in {particles.path} have none. Remove these particles."
        )
    return view_directions(particles.angles)


def populated_views(directions: np.ndarray, *, width: float = 10.0, n_views: int = 8) -> list[Cone]:
    """Return cones with many particles that do not overlap, the fullest first."""
    require_number("width", width, low=0.01, high=90)
    tree = KDTree(directions)
    # Cones are tried around some directions: among 4000 of any density, one is near the centre of
    # the fullest cone.
    candidates = directions[:: ceil_div(len(directions), 4000)]
    counts = counts_within(tree, candidates, width)
    # At a distance of two half-widths cones touch, and most of them are the sides of one preferred
    # direction. Wider cones than opposite directions allow overlap all others.
    apart = np.cos(np.radians(min(3.0 * width, 180)))
    found: list[Cone] = []
    while len(candidates) and len(found) < n_views:
        found.append(_centred_cone(tree, candidates[counts.argmax()], width))
        free = candidates @ found[-1].direction < apart
        candidates, counts = candidates[free], counts[free]
    return sorted(found, key=lambda cone: -cone.n_particles)


def _centred_cone(tree: KDTree, candidate: np.ndarray, width: float) -> Cone:
    """Return the fuller cone: around a direction, or around the mean of the directions there."""
    near = tree.query_ball_point(candidate, _chord(width))
    # A centre in whole degrees is too coarse for a narrow cone.
    digits = 0 if width >= 5.0 else 2
    cones = []
    for centre in (tree.data[near].mean(axis=0), candidate):
        # Zero is added to turn -0 into 0.
        rot, tilt = (round(angle, digits) + 0.0 for angle in direction_angles(centre).tolist())
        count = counts_within(tree, view_directions(np.array([[rot, tilt]])), width)[0]
        cones.append(Cone(rot, tilt, width, int(count)))
    return max(cones, key=lambda cone: cone.n_particles)


def direction_angles(directions: np.ndarray) -> np.ndarray:
    """Return RELION's rot, 0 along the axis, and tilt of directions, (..., 3), in degrees."""
    x, y, z = np.moveaxis(directions, -1, 0)
    across = np.hypot(x, y)
    rot = np.where(across > 1e-7, np.arctan2(y, x), 0.0)
    return np.degrees(np.stack([rot, np.arctan2(across, z)], axis=-1))


def counts_within(tree: KDTree, centres: np.ndarray, width: float) -> np.ndarray:
    """Return how many directions lie within `width` degrees of each centre."""
    return tree.query_ball_point(centres, _chord(width), return_length=True, workers=cores())


def _chord(width: float) -> float:
    """Return the distance of unit vectors that are `width` degrees apart."""
    # Rounding must not drop a particle at exactly this angle.
    return 2 * float(np.sin(np.radians(width) / 2)) + 1e-12


# Particles that are seen from one direction.

# Degrees around the mean direction in which particles count as one view.
MAX_ANGLE = 30.0


def checked_width(width: float | None, view: tuple[float, float] | None) -> float:
    """Return the degrees around a view, usually 10; refuse them where there is no view."""
    if width is None:
        return 10.0
    require_number("width", width, low=0, high=180)
    if view is None:
        raise ValueError(
            "--width is the angle around a view; give one with --view ROT,TILT, or "
            "leave --width out."
        )
    return width


def in_view(
    particles: Particles, view: tuple[float, float], width: float, *, or_opposite: bool = False
) -> np.ndarray:
    """Return which particles lie within `width` degrees of a view, or of the opposite one, too."""
    near = particles.near_view(*view, width=width, or_opposite=or_opposite)
    # One image alone has no differences to factor.
    if near.sum() < 2:
        rot, tilt = view
        raise ValueError(
            f"the view must show some particles; within {width:g} degrees of rot "
            f"{rot:g}, tilt {tilt:g} there are {near.sum()} of {len(near)}. Choose "
            "another view or a larger --width."
        )
    return near


def is_one_view(particles: Particles) -> bool:
    """Return whether all particles are seen within an angle of their mean direction."""
    return _spread(particles) <= MAX_ANGLE


def require_one_view(particles: Particles, *, max_angle: float = MAX_ANGLE) -> None:
    """Refuse images of many views, whose differences are mostly those of the views."""
    spread = _spread(particles)
    if spread > max_angle:
        raise ValueError(
            f"images must show one view; those of {particles.path} are up to {spread:.0f} degrees "
            "apart from their middle. Pick one with --view ROT,TILT --width DEGREES (`manifactor "
            "views` lists them), or fit all of them together with --all-views."
        )


def require_one_class(particles: Particles) -> None:
    """Refuse images of several classes of a 2-D classification, which usually are several views."""
    classes = particles.microscope.get("class")
    flat = particles.angles is None or particles.in_plane_only
    if classes is None or not flat or (classes == classes[0]).all():
        return
    raise ValueError(
        f"images must show one view; those of {particles.path} are of "
        f"{len(np.unique(classes))} classes of a 2-D classification: "
        f"{group_sizes(classes)}. Choose one with --class, or several of one view."
    )


def _spread(particles: Particles) -> float:
    """Return the largest angle in degrees between views and their mean direction."""
    # Particles of a 2-D class have no angles; to choose the class was to choose a view.
    if particles.angles is None:
        return 0.0
    directions = view_directions(particles.angles)
    mean = directions.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-6:  # directions that cancel have no mean direction
        return 180.0
    # Rounding may take a cosine beyond 1, where the angle is not a number.
    cosines = np.clip(directions @ mean / length, -1, 1)
    return float(np.degrees(np.arccos(cosines)).max())


# Counts on the sphere.


@dataclass(frozen=True)
class SphereCells:
    """Cells of equal area on the sphere, or on half of it, in bands of equal tilt."""

    # (n_bands,): number of cells in each band, from tilt 0 to tilt 180, or to 90 on half
    per_band: np.ndarray
    half: bool = False  # whether a view and the one from behind, whose image is mirrored, are one

    def __len__(self) -> int:
        return int(self.per_band.sum())

    @property
    def heights(self) -> np.ndarray:
        """cos(tilt) at the edges of the bands, (n_bands + 1,), from 1 to -1 or 0."""
        # The area of a band is proportional to its height.
        before = np.concatenate([[0], np.cumsum(self.per_band)])
        return 1 - (1 if self.half else 2) * before / len(self)

    @property
    def centres(self) -> np.ndarray:
        """The directions of the cells' centres, (n_cells, 3)."""
        z = np.repeat((self.heights[:-1] + self.heights[1:]) / 2, self.per_band)
        first = np.repeat(np.cumsum(self.per_band) - self.per_band, self.per_band)
        position = np.arange(len(self)) - first + 0.5
        rot = 2 * np.pi * position / np.repeat(self.per_band, self.per_band) - np.pi
        across = np.sqrt(1 - z**2)
        return np.column_stack([across * np.cos(rot), across * np.sin(rot), z])

    def index(self, directions: np.ndarray) -> np.ndarray:
        """Return the cell of each direction, counted along rot and then along tilt."""
        x, y, z = directions.T
        if self.half:
            x, y, z = np.where(z < 0, -1, 1) * directions.T
        band = np.searchsorted(-self.heights[1:-1], -z, side="right")
        share = (np.arctan2(y, x) / (2 * np.pi) + 0.5) % 1
        here = (share * self.per_band[band]).astype(int)
        first = np.cumsum(self.per_band) - self.per_band
        return first[band] + np.minimum(here, self.per_band[band] - 1)

    def counts(self, directions: np.ndarray) -> np.ndarray:
        """Return the number of directions in each cell."""
        return np.bincount(self.index(directions), minlength=len(self))


def sphere_cells(n_bands: int = 24) -> SphereCells:
    """Return cells of equal area that are about as wide as they are high."""
    middle = (np.arange(n_bands) + 0.5) * np.pi / n_bands
    # The circumference at a tilt, in heights of a band.
    around = 2 * n_bands * np.sin(middle)
    return SphereCells(np.maximum(np.rint(around).astype(int), 1))


def half_sphere_cells(n_bands: int) -> SphereCells:
    """Return such cells on half of the sphere, in bands from tilt 0 to tilt 90."""
    return SphereCells(sphere_cells(2 * n_bands).per_band[:n_bands], half=True)
