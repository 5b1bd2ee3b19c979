"""Volumes of half sets, and what is not a motion: errors of poses and contrast."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views.principal import compared_spaces, nuisances, without_nuisances

from .molecules import BODY, GRID, volume_of

SMALL = 0.01


def moved_bodies():
    """The body, a little shifted along or rotated about each axis."""
    shifted = [BODY + SMALL * axis for axis in np.eye(3)]
    rotated = [BODY @ Rotation.from_rotvec(SMALL * a).as_matrix().T for a in np.eye(3)]
    return [*shifted, *rotated]


@pytest.mark.parametrize("motion", range(6))
def test_nuisances_are_small_differences(motion):
    change = volume_of(moved_bodies()[motion]) - volume_of(BODY)
    expected = nuisances(volume_of(BODY), GRID)[motion]
    product = abs(np.vdot(change, expected).real)
    lengths = np.linalg.norm(change) * np.linalg.norm(expected)
    assert product / lengths > 0.95


def test_what_moves_a_part_remains():
    bent = BODY.copy()
    bent[:3] += [SMALL, 0, -SMALL]
    changes = [volume_of(body) - volume_of(BODY) for body in (*moved_bodies(), bent)]
    volumes = np.stack([volume_of(BODY), *changes, 0.1 * volume_of(BODY)])
    left = np.linalg.norm(without_nuisances(volumes, GRID)[1:], axis=1)
    share = left / np.linalg.norm(volumes[1:], axis=1)
    assert np.all(share[:6] < 0.3)
    assert share[6] > 0.4
    assert share[7] < 1e-6


def test_volumes_of_the_same_space_agree_in_any_basis():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((4, 40)) + 1j * rng.standard_normal((4, 40))
    first = np.hstack([half, half[:, ::-1].conj()])
    second = first.copy()
    second[1:] = rng.standard_normal((3, 3)) @ first[1:]
    agreement, _ = compared_spaces(first, second)
    np.testing.assert_allclose(agreement, 1, rtol=1e-6)
