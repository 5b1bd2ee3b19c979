"""Turns of the plane or of space that move samples among themselves: discs, bodies of revolution.

A commutator is as noisy as the Laplacian, and that of uneven samples is several times noisier than
that of even ones. But turned samples of a body of revolution lie as near to the samples as those
lie to each other, whatever the density.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from manifactor.statistics import even_rows

# Turns by which samples are moved: no polygon with few corners looks the same after one of them.
ANGLES = 0.05 + 2 * np.pi * np.arange(1, 13) / 13
# Largest `off` of a symmetry, but for `SLACK` times the root of the number of samples. The largest
# of 42 bodies of revolution of any density and noise was 1.59 with 1,000 samples and 1.88 with
# 3,000. That of a regular octagon is 1.81 and 2.34, the least of 20 other shapes was 1.87 and 3.99;
# but 1.49 of a Gaussian in a pentagon of 1,000 samples, which hardly shows the border.
MOST_OFF = 1.4
SLACK = 0.011


@dataclass(frozen=True)
class Turn:
    """A turn about an axis in space; that of the plane has a third coordinate of 0."""

    axis: np.ndarray  # (3,), of length 1
    centre: np.ndarray  # (3,): a point on the axis
    # Mean squared distance from turned samples to the nearest sample, in units of the distance of
    # that one to its 8th neighbour, relative to that of the samples themselves: the largest of all
    # turns
    off: float = np.inf

    def field(self, columns: np.ndarray) -> np.ndarray:
        """Return the direction and length of its motion at places, (n, p)."""
        return np.cross(self.axis, _in_space(columns) - self.centre)[:, : columns.shape[1]]

    def around(self, columns: np.ndarray) -> np.ndarray:
        """Return the cosine and sine of the angle about the axis at places, (n, 2)."""
        across = (_in_space(columns) - self.centre) @ _across(self.axis).T
        return across / np.linalg.norm(across, axis=1, keepdims=True)

    def strays(self, columns: np.ndarray) -> float:
        """Return the share of samples, (n, p), that turns bring to where no sample is near."""
        points = _in_space(columns)
        tree = KDTree(points)
        scale = tree.query(points, 9)[0][:, -1]
        nearest = (tree.query(self.moved(points, angle)) for angle in ANGLES)
        return float(np.mean([away > 1.2 * scale[near] for away, near in nearest]))

    def moved(self, points: np.ndarray, angle: float) -> np.ndarray:
        """Return points of space, (n, 3), after a turn."""
        turn = Rotation.from_rotvec(angle * self.axis)
        return turn.apply(points - self.centre) + self.centre


def find_turn(columns: np.ndarray, field: np.ndarray, weights: np.ndarray) -> Turn:
    """Return the turn near a vector field that moves samples best among themselves.

    Shapes: columns (n, p) with p = 2 or 3, field (n, p), weights (n,).
    """
    return _best_turn(columns, _turn_of(columns, field, weights))


def find_second_turn(columns: np.ndarray, first: Turn, middle: np.ndarray) -> Turn:
    """Return a turn about an axis across that of another; a sphere has both.

    Shapes: columns (n, 3), middle (3,): of the samples.
    """
    return _best_turn(columns, Turn(_across(first.axis)[0], middle), most=8.0)


def is_symmetry(turn: Turn, n_samples: int) -> bool:
    """Return whether turned samples lie among the samples."""
    return turn.off < MOST_OFF + SLACK * np.sqrt(n_samples)


def _best_turn(columns: np.ndarray, start: Turn, most: float = np.inf) -> Turn:
    """The best turn about an axis near that of another, if this is off by at most `most`."""
    points = _in_space(columns)
    size = np.sqrt(points.var(axis=0).sum())
    tree = KDTree(points)
    distances, neighbours = tree.query(points, 9)
    scale = distances[:, -1]
    usual = np.mean((distances[:, 1] / scale[neighbours[:, 1]]) ** 2)
    sides = _across(start.axis)

    def changed(change: np.ndarray) -> Turn:
        shift, tilt = np.pad(change, (0, 4 - len(change))).reshape(2, 2) @ sides
        axis = start.axis + tilt
        return replace(start, axis=axis / np.linalg.norm(axis), centre=start.centre + size * shift)

    def off(turn: Turn, angles: np.ndarray, count: int) -> np.ndarray:
        some = points[even_rows(len(points), count)]
        nearest = (tree.query(turn.moved(some, angle)) for angle in angles)
        return np.array([np.mean((away / scale[near]) ** 2) for away, near in nearest]) / usual

    def to_lessen(change: np.ndarray) -> float:
        return float(off(changed(change), ANGLES[::3], 400).mean())

    none = np.zeros(2 * (columns.shape[1] - 1))
    if to_lessen(none) > most:
        return start
    simplex = np.vstack([none, 0.02 * np.eye(len(none))])
    options = {"initial_simplex": simplex, "maxfev": 100, "xatol": 1e-3, "fatol": 1e-2}
    found = minimize(to_lessen, none, method="Nelder-Mead", options=options)
    best = changed(found.x)
    return replace(best, off=float(off(best, ANGLES, 3000).max()))


def _turn_of(columns: np.ndarray, field: np.ndarray, weights: np.ndarray) -> Turn:
    """The turn of the motion of space nearest to a field, less its shift along the axis."""
    points = _in_space(columns)
    middle = points.mean(axis=0)
    turns = np.cross(np.eye(3)[:, None], points - middle)
    shifts = np.broadcast_to(np.eye(3)[:, None], turns.shape)
    scale = np.sqrt(weights)[:, None]
    motions = (scale * np.concatenate([shifts, turns])).reshape(6, -1).T
    shift, speed = np.split(np.linalg.lstsq(motions, (scale * _in_space(field)).ravel())[0], 2)
    square = max(float(speed @ speed), np.finfo(float).tiny)
    return Turn(speed / np.sqrt(square), middle + np.cross(speed, shift) / square)


def _in_space(columns: np.ndarray) -> np.ndarray:
    return np.pad(columns, ((0, 0), (0, 3 - columns.shape[1])))


def _across(axis: np.ndarray) -> np.ndarray:
    """Two directions across an axis, (2, 3)."""
    return np.linalg.svd(axis[None])[2][1:]
