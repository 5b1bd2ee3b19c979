"""Molecules made of Gaussian blobs, whose Fourier transforms are known exactly."""

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views.transforms import Transforms, VolumeGrid

WIDTH = 0.05  # of a blob, in units of the box


def blobs_at(points, frequencies):
    """Transforms of blobs at points (..., n_blobs, 3) at frequencies (m, 3)."""
    decay = np.exp(-2 * (np.pi * WIDTH) ** 2 * (frequencies**2).sum(axis=1))
    return np.exp(-2j * np.pi * points @ frequencies.T).sum(axis=-2) * decay


GRID = VolumeGrid(cut=4.0, radius=0.48)
# Blobs without any symmetry.
BODY = np.random.default_rng(7).uniform(-0.22, 0.22, size=(6, 3))


def volume_of(points):
    """The transform of blobs on the grid of volumes."""
    frequencies = np.stack(np.meshgrid(*3 * (GRID.axis,), indexing="ij"), -1)
    return blobs_at(points, frequencies.reshape(-1, 3)) * GRID.inside


def random_rotations(count, seed=0):
    return Rotation.random(count, random_state=seed).as_matrix()


def transforms_of(points, rotations, *, grid=GRID, noise=0.0, scale=1.0, seed=1):
    """Images of blobs, points (n, n_blobs, 3), from n directions."""
    plane = np.column_stack([grid.plane, np.zeros(len(grid.plane))])
    turned = points @ rotations.transpose(0, 2, 1)
    values = np.stack([blobs_at(each, plane) for each in turned]) * scale
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, *values.shape))
    values = values + noise * (parts[0] + 1j * parts[1]) / np.sqrt(2)
    return Transforms(grid, values.astype(np.complex64), rotations, box=100.0)


def turning(angle, body=BODY):
    """The body, with its first three blobs turned about z by angles (n,)."""
    points = np.repeat(body[None], len(angle), axis=0)
    turned = Rotation.from_rotvec(np.outer(angle, [0, 0, 1])).as_matrix()
    # Off the axis, so that turning moves them.
    arm = body[:3] * [1, 1, 0.5] + [0.1, 0, 0]
    points[:, :3] = arm @ turned.transpose(0, 2, 1)
    return points


def shifting(points, amount):
    """Points, with the last two blobs shifted along x by amounts (n,)."""
    moved = points.copy()
    moved[:, -2:, 0] += amount[:, None]
    return moved


def symmetric(unit, mates):
    """A molecule of which units (n, n_blobs, 3) are the asymmetric part."""
    return np.concatenate([unit @ mate.T for mate in mates], axis=1)


def moving(count, *, seed=0, rotations=None, noise=1.0, scale=3.0):
    """Images of a molecule that turns and shifts, with the places on both motions."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(count, 2))
    points = shifting(turning(2 * np.pi * places[:, 0]), 0.3 * places[:, 1] - 0.15)
    rotations = random_rotations(count, seed) if rotations is None else rotations
    return transforms_of(points, rotations, noise=noise, scale=scale), places


def turn_agreement(found, turn):
    """Circular correlation of places around a circle, up to rotation and reflection."""
    angles = 2 * np.pi * found[:, None] * [1, -1] - 2 * np.pi * turn[:, None]
    return np.abs(np.exp(1j * angles).mean(axis=0)).max()
