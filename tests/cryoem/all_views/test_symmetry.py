"""Rotations of point groups, and images of symmetric molecules."""

import numpy as np
import pytest
from scipy.constants import golden
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views.slices import point_group

from .molecules import BODY, random_rotations, symmetric, transforms_of

ORDERS = {"C1": 1, "c7": 7, "D3": 6, "T": 12, "O": 24} | dict.fromkeys(("I1", "I2", "I3", "I4"), 60)


def turned_by(axis, turns):
    unit = np.array(axis) / np.linalg.norm(axis)
    return Rotation.from_rotvec(2 * np.pi / turns * unit).as_matrix()


def holds(group, rotation):
    return np.abs(group - rotation).max(axis=(1, 2)).min() < 1e-5


@pytest.mark.parametrize("name", ORDERS)
def test_a_point_group_is_closed(name):
    group = point_group(name)
    assert len(group) == ORDERS[name]
    np.testing.assert_array_equal(group[0], np.eye(3))
    products = (group[:, None] @ group).reshape(-1, 9)
    assert KDTree(group.reshape(-1, 9)).query(products)[0].max() < 1e-9


@pytest.mark.parametrize(
    ("name", "turns", "axis"),
    [
        ("D3", 2, (1, 0, 0)),
        ("T", 3, (0, 0, 1)),
        ("O", 4, (1, 0, 0)),
        ("I1", 2, (0, 1, 0)),
        ("I1", 5, (golden, 0, -1)),
        ("I1", 5, (golden, 0, 1)),
        ("I2", 2, (1, 0, 0)),
        ("I2", 5, (1, 0, golden)),
        ("I3", 5, (0, 0, 1)),
        ("I3", 3, (-0.491123, 0.356822, 0.794654)),
        ("I4", 3, (0.491123, 0.356822, 0.794654)),
    ],
)
def test_axes_lie_as_relion_has_them(name, turns, axis):
    assert holds(point_group(name), turned_by(axis, turns))


def test_settings_of_the_icosahedron_differ():
    assert not holds(point_group("I1"), turned_by((1, 0, golden), 5))
    assert not holds(point_group("I3"), turned_by((1, 0, golden), 2))


@pytest.mark.parametrize("name", ["C0", "X", "I", "C", "I5", "C4v", ""])
def test_other_symmetries_are_refused(name):
    with pytest.raises(ValueError, match="point group Cn, Dn, T, O, or I1 to I4"):
        point_group(name)


def test_mates_of_a_symmetric_molecule_show_the_same():
    mates = point_group("C2")
    molecule = symmetric(BODY[None], mates)
    images = transforms_of(np.repeat(molecule, 5, axis=0), random_rotations(5))
    pairs = images.with_mates(mates)
    seen = transforms_of(np.repeat(molecule, 10, axis=0), pairs.rotations)
    np.testing.assert_allclose(pairs.values, seen.values, atol=1e-4)
