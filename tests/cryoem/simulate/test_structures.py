import numpy as np
import pytest

from manifactor.cryoem.simulate.molecule import read_molecule

# chain, residue, name, element, x, y, z: chain A is low, B high
ATOMS = [
    ("A", 1, "N", "N", 11.104, 6.134, -6.504),
    ("A", 1, "CA", "C", 11.639, 6.071, -5.147),
    ("A", 2, "C", "C", 10.733, 5.294, -4.192),
    ("A", 2, "O", "O", 9.522, 5.482, -4.191),
    ("A", 3, "CB", "C", 13.071, 5.559, -5.166),
    ("A", 3, "SG", "S", 8.905, 3.104, -1.102),
    ("B", 10, "N", "N", 11.304, 4.449, 3.338),
    ("B", 10, "CA", "C", 10.538, 3.649, 4.386),
    ("B", 11, "C", "C", 11.321, 2.386, 5.048),
    ("B", 11, "O", "O", 12.502, 2.234, 6.786),
    ("B", 12, "CB", "C", 10.153, 4.491, 7.188),
    ("B", 12, "CG", "C", 9.291, 3.743, 8.194),
]
WEIGHTS = {"N": 7, "C": 6, "O": 8, "S": 16}


def pdb(atoms, more=""):
    lines = [
        f"ATOM  {i:5d}  {name:<3s} ALA {chain}{residue:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00 10.00{element:>12s}"
        for i, (chain, residue, name, element, x, y, z) in enumerate(atoms, 1)
    ]
    return "\n".join([*lines, "TER", more, "END", ""])


def mmcif(atoms):
    columns = "group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id"
    columns += " label_entity_id label_seq_id Cartn_x Cartn_y Cartn_z occupancy B_iso_or_equiv"
    columns += " auth_seq_id auth_asym_id pdbx_PDB_model_num"
    names = [f"_atom_site.{column}" for column in columns.split()]
    rows = [
        f"ATOM {i} {element} {name} . ALA {chain} 1 {residue} {x} {y} {z} 1 10 {residue} {chain} 1"
        for i, (chain, residue, name, element, x, y, z) in enumerate(atoms, 1)
    ]
    return "\n".join(["data_test", "loop_", *names, *rows, ""])


@pytest.fixture
def pdb_file(tmp_path):
    path = tmp_path / "molecule.pdb"
    path.write_text(pdb(ATOMS))
    return path


def test_a_file_gives_centred_atoms_atomic_numbers_and_parts(pdb_file):
    molecule = read_molecule(pdb_file, rotor=["B"])
    given = np.array([atom[4:] for atom in ATOMS])
    np.testing.assert_allclose(molecule.atoms, given - given.mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(molecule.weights, [WEIGHTS[atom[3]] for atom in ATOMS])
    np.testing.assert_array_equal(molecule.parts, [0 if atom[0] == "B" else 1 for atom in ATOMS])


def test_pdb_and_mmcif_give_the_same_molecule(pdb_file, tmp_path):
    cif = tmp_path / "molecule.cif"
    cif.write_text(mmcif(ATOMS))
    first, second = (read_molecule(path, rotor=["B:11-12", "A:3-3"]) for path in (pdb_file, cif))
    for name in ("atoms", "weights", "parts"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.rotor.sum() == 6


@pytest.mark.parametrize(
    ("rotor", "message"),
    [
        (["C"], "must name chains of the file, A, B; got 'C'"),
        (["A:1"], """such as "B" or "A:219-421"; got 'A:1'"""),
        (["A:x-y"], "got 'A:x-y'"),
        ([3], "got 3"),
        ([], "selects none. The chains are A, B"),
        (["A:90-99"], "'A:90-99' selects none. Chain A has residues 1 to 3"),
        (["A", "B"], "selects every atom"),
    ],
)
def test_a_selection_that_cannot_be_is_refused(pdb_file, rotor, message):
    with pytest.raises(ValueError, match="`rotor`") as error:
        read_molecule(pdb_file, rotor=rotor)
    assert message in str(error.value)
