import numpy as np

from manifactor.cryoem.simulate.ion_channel import channel


def as_set(atoms):
    return set(map(tuple, atoms + 0.0))  # -0.0 is 0.0


def test_a_quarter_turn_maps_the_channel_exactly_onto_itself():
    molecule = channel()
    for part in range(3):
        atoms = molecule.atoms[molecule.parts == part]
        assert as_set(atoms) == as_set(atoms[:, [1, 0, 2]] * [-1, 1, 1])


def test_the_rotor_of_the_channel_lies_above_the_rest_and_the_whole_is_centred():
    molecule = channel()
    np.testing.assert_allclose(molecule.atoms.mean(axis=0), 0, atol=1e-9)
    assert molecule.atoms[molecule.rotor, 2].mean() > molecule.atoms[~molecule.rotor, 2].max()
    np.testing.assert_allclose(np.ptp(molecule.atoms, axis=0), [114, 114, 176], atol=1)
