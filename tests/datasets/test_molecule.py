import numpy as np
import pytest

from manifactor.cryoem.simulate.ion_channel import channel
from manifactor.cryoem.simulate.molecule import Molecule


def test_zero_stretch_leaves_the_rest_and_a_turn_keeps_the_height_of_the_rotor():
    molecule = channel()
    moved = molecule.moved(0.7, [0.0, 0.0])
    np.testing.assert_array_equal(moved[~molecule.rotor], molecule.atoms[~molecule.rotor])
    np.testing.assert_array_equal(moved[:, 2], molecule.atoms[:, 2])
    turned, rotor = moved[molecule.rotor], molecule.atoms[molecule.rotor]
    np.testing.assert_allclose(
        turned[:, 0] + 1j * turned[:, 1], (rotor[:, 0] + 1j * rotor[:, 1]) * np.exp(0.7j)
    )


def test_the_stretch_grows_with_the_square_of_the_depth():
    atoms = np.array([[0.0, 0, 5], [0, 0, 0], [0, 0, -1], [0, 0, -2]])
    moved = Molecule(atoms, np.ones(4), np.array([0, 1, 1, 2])).moved(0.0, [8.0, -4.0])
    np.testing.assert_allclose(moved - atoms, [[0, 0, 0], [0, 0, 0], [2, -1, 0], [8, -4, 0]])


def test_a_flat_rest_does_not_stretch():
    atoms = np.array([[0.0, 0, 5], [0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(
        Molecule(atoms, np.ones(3), np.array([0, 1, 1])).moved(0.0, [8.0, 0.0]), atoms
    )


def test_the_extremes_reach_as_far_as_the_states(rng):
    molecule = channel()
    low, high = (
        molecule.extremes([40.0, 20.0]).min(axis=0),
        molecule.extremes([40.0, 20.0]).max(axis=0),
    )
    for angle, x, y in rng.uniform(-1, 1, size=(20, 3)) * [np.pi, 40, 20]:
        atoms = molecule.moved(angle, [x, y])
        assert (atoms >= low).all()
        assert (atoms <= high).all()
    assert high[0] - molecule.moved(0.0, [40.0, 20.0]).max(axis=0)[0] < 1e-9


def test_a_molecule_needs_arrays_that_fit_finite_atoms_and_two_parts():
    atoms, ones = np.zeros((3, 3)), np.ones(3)
    with pytest.raises(
        ValueError, match=r"`atoms`, `weights` and `parts` must have shapes .* got \(3, 2\)"
    ):
        Molecule(atoms[:, :2], ones, np.array([0, 1, 1]))
    with pytest.raises(ValueError, match="must be finite"):
        Molecule(atoms * np.nan, ones, np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"must hold both the rotor.* 3 of 3"):
        Molecule(atoms, ones, np.zeros(3, dtype=int))
