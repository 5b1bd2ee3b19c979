"""Turns that move samples of bodies of revolution among themselves, whatever the density."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manifactor.models.separable.symmetry import Turn, find_turn, is_symmetry

from ..factoring.places import ring, sphere


def frustum(rng, n, *, squeeze=1.0):
    """A cone without its tip, dense at its narrow end and on one side, around the axis z."""
    radius, angle = 0.3 + 0.7 * rng.beta(1, 2, n), rng.vonmises(0, 0.5, n)
    return np.column_stack([radius[:, None] * ring(angle) * [1, squeeze], radius])


def near_turn(X, axis):
    """The best turn near one whose axis is wrong by 4 degrees and passes .05 beside the origin."""
    wrong = Rotation.from_rotvec([0.07, 0, 0]).apply(axis)
    field = Turn(wrong, np.array([0.05, 0, 0])).field(X)
    return find_turn(X, field, np.ones(len(X)))


@pytest.mark.medium
def test_the_axis_of_an_uneven_cone_is_found(rng):
    tilt = Rotation.from_rotvec([0.4, 0.3, 0.0])
    X, axis = tilt.apply(frustum(rng, 2000)), tilt.apply([0, 0, 1])
    turn = near_turn(X, axis)
    assert is_symmetry(turn, len(X))
    assert np.degrees(np.arccos(turn.axis @ axis)) < 1.5
    assert np.linalg.norm(np.cross(turn.centre, axis)) < 0.02


def pentagon(rng, n):
    """A regular pentagon, by its five triangles."""
    corner, (u, v) = rng.integers(5, size=n), np.sort(rng.random((2, n)), axis=0)
    first, second = (ring(2 * np.pi * (corner + k) / 5) for k in (0, 1))
    return u[:, None] * first + (v - u)[:, None] * second


@pytest.mark.medium
@pytest.mark.parametrize(
    "shape", [lambda rng, n: frustum(rng, n, squeeze=0.8), pentagon, lambda *a: abs(sphere(*a))]
)
def test_squeezed_cones_pentagons_and_octants_of_spheres_leave_their_place(rng, shape):
    X = shape(rng, 2000)
    assert not is_symmetry(near_turn(X, np.array([0.0, 0.0, 1.0])), len(X))
