"""Slices of a volume's transform, volumes and likelihoods from images, and point groups."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.constants import golden
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views.regression import FeatureMoments, map_likelihoods, volumes_from
from manifactor.cryoem.all_views.transforms import PADDING, point_group

from .molecules import BODY, GRID, random_rotations, symmetric, transforms_of, volume_of


def test_a_slice_is_the_transform_of_the_projection():
    rotations = random_rotations(20)
    exact = transforms_of(np.repeat(BODY[None], 20, axis=0), rotations).values
    sharp = GRID.sharpened(volume_of(BODY)[None])[0]
    slices = (GRID.slices(rotations) @ sharp).reshape(exact.shape)
    error = np.linalg.norm(slices - exact) / np.linalg.norm(exact)
    assert error < 0.04


def test_bounded_volumes_are_real_and_inside_the_ball():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1, GRID.size)) + 1j * rng.standard_normal(GRID.size)
    bounded = GRID.bounded(noise)
    cube = bounded.reshape(3 * (GRID.side,))
    np.testing.assert_allclose(cube, cube[::-1, ::-1, ::-1].conj(), atol=1e-9)
    density = GRID.densities(bounded)[0]
    axis = np.arange(GRID.side) - GRID.half
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    # The box is half as wide as the cube.
    outside = np.sqrt(x**2 + y**2 + z**2) > GRID.radius * GRID.side / PADDING + 1
    # Without the highest frequencies the ball has no sharp surface.
    assert (density[outside] ** 2).sum() < 0.1 * (density**2).sum()


def test_a_volume_is_found_from_its_projections():
    images = transforms_of(np.repeat(BODY[None], 600, axis=0), random_rotations(600))
    found = volumes_from(images, FeatureMoments.known(np.ones((600, 1))))[0]
    expected = volume_of(BODY)
    frequency = np.stack(np.meshgrid(*3 * (GRID.axis,), indexing="ij")).reshape(3, -1)
    distance = np.linalg.norm(frequency, axis=0)
    # The offset of an image is not used, so frequency 0 is only extrapolated.
    shown = (distance > 0) & (distance <= GRID.cut)
    product = np.vdot(found[shown], expected[shown]).real
    lengths = np.linalg.norm(found[shown]) * np.linalg.norm(expected[shown])
    assert product / lengths > 0.97


def both_terms(terms):
    return terms.linear, terms.quadratic


def test_the_likelihood_is_highest_at_the_true_features():
    rng = np.random.default_rng(3)
    first, second = volume_of(BODY), volume_of(-BODY)
    weights = rng.uniform(0.5, 1.5, size=(50, 2))
    rotations = random_rotations(50)
    sharp = GRID.sharpened(np.stack([first, second]))
    slices = (GRID.slices(rotations) @ sharp.T).reshape(50, -1, 2)
    images = transforms_of(np.repeat(BODY[None], 50, axis=0), rotations)
    values = np.einsum("nmf,nf->nm", slices, weights).astype(np.complex64)
    images = replace(images, values=values)
    linear, quadratic = map_likelihoods(both_terms, images, np.stack([first, second]))
    best = np.linalg.solve(quadratic, linear[..., None])[..., 0]
    np.testing.assert_allclose(best, weights, rtol=1e-3)


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


@pytest.mark.parametrize("name", ["C0", "X", "I", "C", "I5", "C4v", ""])
def test_other_symmetries_are_refused(name):
    with pytest.raises(ValueError, match="point group"):
        point_group(name)


def test_mates_of_a_symmetric_molecule_show_the_same():
    mates = point_group("C2")
    molecule = symmetric(BODY[None], mates)
    images = transforms_of(np.repeat(molecule, 5, axis=0), random_rotations(5))
    pairs = replace(images, symmetry="C2").with_mates()
    seen = transforms_of(np.repeat(molecule, 10, axis=0), pairs.rotations)
    np.testing.assert_allclose(pairs.values, seen.values, atol=1e-4)
