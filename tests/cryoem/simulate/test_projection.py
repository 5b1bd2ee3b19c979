"""Projections of atoms, in any orientation and by the two routes of one view."""

import numpy as np
import pytest

from manifactor.cryoem.files.particles import euler_matrices
from manifactor.cryoem.simulate.molecule import Molecule, channel
from manifactor.cryoem.simulate.projection import (
    ROUTES,
    Frame,
    _coefficients,
    _features,
    project,
    splat,
)

SMALL = {"size": 48, "pixel_size": 5.5, "blur": 4.0}


def projected(molecule, rotations, *, angle=0.3, stretch=(20.0, -10.0), shift=(0, 0)):
    n = len(rotations)
    return project(
        molecule,
        np.full(n, angle),
        np.tile(stretch, (n, 1)).astype(float),
        rotations,
        shift=np.broadcast_to(np.asarray(shift, dtype=float), (n, 2)),
        **SMALL,
    )


def test_an_atom_seen_along_z_lies_at_its_own_place():
    # Two and three pixels right of and below the centre; z does not matter. The rotor
    # is far away.
    atoms = np.array([[0.0, 0.0, 90.0], [11.0, 16.5, -30.0]])
    molecule = Molecule(atoms, np.array([0.0, 7.0]), np.array([0, 1]))
    (image,) = projected(molecule, np.eye(3)[None], stretch=(0, 0))
    assert np.unravel_index(image.argmax(), image.shape) == (24 + 3, 24 + 2)
    assert image.sum() == pytest.approx(7, rel=2e-4)
    blur = 4.0 / 5.5
    assert image.max() == pytest.approx(7 / (2 * np.pi * blur**2), rel=1e-5)
    beside = image[27, 27] / image.max()
    assert beside == pytest.approx(np.exp(-1 / (2 * blur**2)), rel=1e-4)


def test_places_of_atoms_are_those_of_the_moved_and_rotated_molecule(rng):
    molecule = channel()
    rotation = euler_matrices(rng.uniform(-180, 180, size=(1, 3)))
    state = np.array([0.7]), np.array([[30.0, -12.0]])
    (found,) = _coefficients(*state, rotation) @ _features(molecule)
    expected = rotation[0, :2] @ molecule.moved(0.7, [30.0, -12.0]).T
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_view_from_behind_is_the_mirror_image(rng):
    front = euler_matrices(rng.uniform(-180, 180, size=(2, 3)))
    behind = np.diag([1.0, -1.0, -1.0]) @ front
    images = projected(channel(), np.concatenate([front, behind]))
    # The first row of an even image has no counterpart.
    mirrored = images[2:, :0:-1]
    np.testing.assert_allclose(mirrored, images[:2, 1:], atol=1e-4 * images.max())


def test_a_shift_moves_the_image_off_its_centre(rng):
    pose = euler_matrices(rng.uniform(-180, 180, size=(1, 3)))
    (centred,) = projected(channel(), pose)
    (moved,) = projected(channel(), pose, shift=(2.0, -3.0))
    # As RELION's origins, it is the shift that brings the image back.
    back = np.roll(moved, (-3, 2), axis=(0, 1))
    np.testing.assert_allclose(back, centred, atol=1e-4 * centred.max())


def test_every_image_has_the_mass_of_the_molecule_and_no_denormal_numbers(rng):
    images = projected(channel(), euler_matrices(rng.uniform(-180, 180, size=(5, 3))))
    np.testing.assert_allclose(images.sum(axis=(1, 2)), 5256, rtol=1e-4)
    assert images.dtype == np.float32
    assert images.min() >= np.finfo(np.float32).tiny


def test_the_view_of_the_demo_is_that_of_its_own_painter():
    reach = np.array([40.0, 0.0])
    frame = Frame(54, 4.0, -30.0).around(channel(), reach)
    angle, stretch = np.array([0.2, 1.1]), np.array([[30.0, 0.0], [-20.0, 0.0]])
    painted = ROUTES["atoms"](channel(), frame, reach, 4.0)(angle, stretch)
    # The painter's rows are centred on the middle height, between two pixels.
    off_centre = [0.0, 0.5 - frame.middle / 4.0]
    images = project(
        channel(),
        angle,
        stretch,
        euler_matrices(np.tile(frame.view, (2, 1))),
        shift=np.tile(off_centre, (2, 1)),
        size=54,
        pixel_size=4.0,
        blur=4.0,
    )
    for first, second in zip(painted, images, strict=True):
        assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.998


def painter(route="atoms", size=54):
    """The images of states that the test chooses."""
    reach = np.array([40.0, 40.0])
    frame = Frame(size, 4.0, -30.0).around(channel(), reach)
    return ROUTES[route](channel(), frame, reach, 4.0)


@pytest.mark.parametrize("route", ["atoms", "volumes"])
def test_turning_the_rotor_by_a_quarter_gives_the_same_image(route):
    images = painter(route)(
        np.array([0.2, 0.2 + np.pi / 2, 0.2 + np.pi / 4]), np.array([[9.0, 0.0]] * 3)
    )
    np.testing.assert_allclose(images[0], images[1], atol=1e-3 * images[0].max())
    assert np.abs(images[2] - images[0]).max() > 0.05 * images[0].max()


def test_a_stretch_along_y_moves_the_mass_to_the_right_and_one_along_x_downwards():
    images = painter(size=64)(np.zeros(3), np.array([[0.0, 0.0], [0.0, 40.0], [40.0, 0.0]]))
    mass = images.sum(axis=(1, 2))
    rows, columns = (
        images.sum(axis=2) @ np.arange(64) / mass,
        images.sum(axis=1) @ np.arange(64) / mass,
    )
    way = 40 * channel().lift.mean() / 4  # pixels
    np.testing.assert_allclose(columns - columns[0], [0, way, 0], atol=1e-3)
    np.testing.assert_allclose(rows - rows[0], [0, 0, way / 2], atol=1e-3)  # sin 30 degrees = 1/2


@pytest.mark.parametrize("shape", [(6, 7), (4, 5, 6)])
def test_splatting_keeps_mass_and_centre_of_mass(shape, rng):
    at = rng.uniform(size=(len(shape), 50)) * (np.array(shape)[:, None] - 1)
    at[:, 0] = np.array(shape) - 1  # the far corner
    weights = rng.uniform(1, 2, size=50)
    grid = splat(at, weights, shape)
    assert grid.sum() == pytest.approx(weights.sum())
    axes = np.indices(shape).reshape(len(shape), -1)
    np.testing.assert_allclose(axes @ grid.ravel(), at @ weights)
