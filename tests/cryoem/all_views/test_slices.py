"""Slices of a volume's transform, volumes and likelihoods from images, and point groups."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import fft
from scipy.constants import golden
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views.principal import compare_spaces, nuisances, without_nuisances
from manifactor.cryoem.all_views.regression import FeatureMoments, map_likelihoods, volumes_from
from manifactor.cryoem.all_views.transforms import PADDING, point_group

from .molecules import BODY, GRID, random_rotations, symmetric, transforms_of, volume_of


def still(count, rotations, body=BODY[None]):
    return transforms_of(np.repeat(body, count, axis=0), rotations)


def cosine(one, other):
    return np.vdot(one, other).real / (np.linalg.norm(one) * np.linalg.norm(other))


def test_a_slice_is_the_transform_of_the_projection():
    rotations = random_rotations(20)
    exact = still(20, rotations).values
    sharp = GRID.sharpen(volume_of(BODY)[None])[0]
    slices = (GRID.slices(rotations) @ sharp).reshape(exact.shape)
    assert np.linalg.norm(slices - exact) < 0.04 * np.linalg.norm(exact)


def test_bounded_volumes_are_real_and_inside_the_ball():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1, GRID.size)) + 1j * rng.standard_normal(GRID.size)
    bounded = GRID.bound(noise)
    cube = bounded.reshape(3 * (GRID.side,))
    np.testing.assert_allclose(cube, cube[::-1, ::-1, ::-1].conj(), atol=1e-6)
    density = fft.fftshift(fft.ifftn(fft.ifftshift(cube)).real)
    distance = np.linalg.norm(np.indices(density.shape) - GRID.half, axis=0)
    # The box is half as wide as the cube.
    outside = distance > GRID.radius * GRID.side / PADDING + 1
    # Without the highest frequencies the ball has no sharp surface.
    assert (density[outside] ** 2).sum() < 0.1 * (density**2).sum()


def test_a_volume_is_found_from_its_projections():
    images = still(600, random_rotations(600))
    found = volumes_from(images, FeatureMoments.known(np.ones((600, 1))))[0]
    frequency = np.stack(np.meshgrid(*3 * (GRID.axis,), indexing="ij")).reshape(3, -1)
    distance = np.linalg.norm(frequency, axis=0)
    # The offset of an image is not used, so frequency 0 is only extrapolated.
    shown = (distance > 0) & (distance <= GRID.cut)
    assert cosine(found[shown], volume_of(BODY)[shown]) > 0.97


def both_terms(terms):
    return terms.linear, terms.precision


def test_the_likelihood_is_highest_at_the_true_features():
    weights = np.random.default_rng(3).uniform(0.5, 1.5, size=(50, 2))
    rotations, volumes = random_rotations(50), np.stack([volume_of(BODY), volume_of(-BODY)])
    slices = (GRID.slices(rotations) @ GRID.sharpen(volumes).T).reshape(50, -1, 2)
    values = np.einsum("nmf,nf->nm", slices, weights).astype(np.complex64)
    images = replace(still(50, rotations), values=values)
    linear, quadratic = map_likelihoods(both_terms, images, volumes)
    best = np.linalg.solve(quadratic, linear[..., None])[..., 0]
    np.testing.assert_allclose(best, weights, rtol=1e-3)


ORDERS = {"C1": 1, "c7": 7, "D3": 6, "T": 12, "O": 24} | dict.fromkeys(("I1", "I2", "I3", "I4"), 60)


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
        ("I1", 5, (golden, 0, 1)),
        ("I2", 5, (1, 0, golden)),
        ("I3", 5, (0, 0, 1)),
        ("I3", 3, (-0.491123, 0.356822, 0.794654)),
        ("I4", 3, (0.491123, 0.356822, 0.794654)),
    ],
)
def test_axes_lie_as_relion_has_them(name, turns, axis):
    unit = np.array(axis) / np.linalg.norm(axis)
    rotation = Rotation.from_rotvec(2 * np.pi / turns * unit).as_matrix()
    assert np.abs(point_group(name) - rotation).max(axis=(1, 2)).min() < 1e-5


@pytest.mark.parametrize("name", ["C0", "X", "I", "C", "I5", "C4v", ""])
def test_other_symmetries_are_refused(name):
    with pytest.raises(ValueError, match="point group"):
        point_group(name)


def test_mates_of_a_symmetric_molecule_show_the_same():
    molecule = symmetric(BODY[None], point_group("C2"))
    pairs = replace(still(5, random_rotations(5), molecule), symmetry="C2").with_mates()
    seen = still(10, pairs.rotations, molecule)
    np.testing.assert_allclose(pairs.values, seen.values, atol=1e-4)


def moved_bodies(small=0.01):
    """The body, a little shifted along or rotated about each axis."""
    shifted = [BODY + small * axis for axis in np.eye(3)]
    rotated = [BODY @ Rotation.from_rotvec(small * a).as_matrix().T for a in np.eye(3)]
    return [*shifted, *rotated]


def test_errors_of_poses_and_contrast_are_no_motion_but_what_moves_a_part_is():
    bent = BODY.copy()
    bent[:3] += [0.01, 0, -0.01]
    mean = volume_of(BODY)
    changes = [volume_of(body) - mean for body in (*moved_bodies(), bent)]
    for change, expected in zip(changes[:6], nuisances(mean, GRID), strict=False):
        assert abs(cosine(change, expected)) > 0.95
    volumes = np.stack([mean, *changes, 0.1 * mean])
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
    agreement, _ = compare_spaces(first, second)
    np.testing.assert_allclose(agreement, 1, rtol=1e-6)
