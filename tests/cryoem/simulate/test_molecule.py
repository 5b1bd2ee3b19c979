"""The molecule of two moving parts, the distribution of its motions, and the ion channel."""

import numpy as np
import pytest

from manifactor.cryoem.simulate.molecule import Molecule, Motion, channel


def test_zero_stretch_leaves_the_rest_and_a_turn_keeps_the_height_of_the_rotor():
    molecule = channel()
    moved = molecule.moved(0.7, [0.0, 0.0])
    np.testing.assert_array_equal(moved[~molecule.rotor], molecule.atoms[~molecule.rotor])
    np.testing.assert_array_equal(moved[:, 2], molecule.atoms[:, 2])
    turned, rotor = (atoms[molecule.rotor, :2] @ [1, 1j] for atoms in (moved, molecule.atoms))
    np.testing.assert_allclose(turned, rotor * np.exp(0.7j))


def test_the_stretch_grows_with_the_square_of_the_depth():
    atoms = np.array([[0.0, 0, 5], [0, 0, 0], [0, 0, -1], [0, 0, -2]])
    moved = Molecule(atoms, np.ones(4), np.array([0, 1, 1, 2])).moved(0.0, [8.0, -4.0])
    np.testing.assert_allclose(moved - atoms, [[0, 0, 0], [0, 0, 0], [2, -1, 0], [8, -4, 0]])
    # A flat rest does not stretch.
    flat = np.array([[0.0, 0, 5], [0, 0, 0], [1, 0, 0]])
    molecule = Molecule(flat, np.ones(3), np.array([0, 1, 1]))
    np.testing.assert_array_equal(molecule.moved(0.0, [8.0, 0.0]), flat)


def test_the_extremes_reach_as_far_as_the_states(rng):
    molecule = channel()
    extremes = molecule.extremes([40.0, 20.0])
    low, high = extremes.min(axis=0), extremes.max(axis=0)
    for angle, x, y in rng.uniform(-1, 1, size=(20, 3)) * [np.pi, 40, 20]:
        atoms = molecule.moved(angle, [x, y])
        assert (atoms >= low).all()
        assert (atoms <= high).all()
    assert high[0] - molecule.moved(0.0, [40.0, 20.0]).max(axis=0)[0] < 1e-9


def test_a_molecule_needs_arrays_that_fit_finite_atoms_and_two_parts():
    atoms, ones, parts = np.zeros((3, 3)), np.ones(3), np.array([0, 1, 1])
    for given, of, message in (
        (atoms[:, :2], parts, "have shapes"),
        (atoms * np.nan, parts, "must be finite"),
        (atoms, 0 * parts, "both the rotor"),
    ):
        with pytest.raises(ValueError, match=message):
            Molecule(given, ones, of)


@pytest.mark.parametrize("correlation", [-1.0, 0.0, 0.6])
def test_motions_are_uniform_and_the_copula_correlates_angle_and_x_stretch(correlation):
    angle, stretch = Motion("xy", correlation, 4, 40.0, 0.0).draw(20000, np.random.default_rng(0))
    levels = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(np.quantile(angle, levels), np.pi / 2 * levels, atol=0.02)
    for along in stretch.T:
        np.testing.assert_allclose(np.quantile(along, levels), 40 * (2 * levels - 1), atol=1.2)
    found = np.corrcoef(np.c_[angle, stretch].T)
    assert found[0, 1] == pytest.approx(6 / np.pi * np.arcsin(correlation / 2), abs=0.02)
    np.testing.assert_allclose(found[2, :2], 0, atol=0.02)


def test_the_channel_has_four_equal_quarters_and_its_rotor_above_the_rest():
    molecule = channel()
    for part in range(3):
        atoms = molecule.atoms[molecule.parts == part]
        turned = atoms[:, [1, 0, 2]] * [-1, 1, 1]
        # Exactly; -0.0 is 0.0.
        assert set(map(tuple, atoms + 0.0)) == set(map(tuple, turned + 0.0))
    np.testing.assert_allclose(molecule.atoms.mean(axis=0), 0, atol=1e-9)
    assert molecule.atoms[molecule.rotor, 2].mean() > molecule.atoms[~molecule.rotor, 2].max()
    np.testing.assert_allclose(np.ptp(molecule.atoms, axis=0), [114, 114, 176], atol=1)
