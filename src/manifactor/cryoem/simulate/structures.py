"""Molecules read from PDB and mmCIF files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.errors import extra
from manifactor.cryoem.simulate.molecule import Molecule


@dataclass(frozen=True)
class _Atoms:
    """The atoms of a file, one a row."""

    path: Path
    chains: np.ndarray  # names
    residues: np.ndarray  # numbers, None where the file has none
    positions: np.ndarray  # (n_atoms, 3), A
    atomic_numbers: np.ndarray

    @property
    def chain_names(self) -> str:
        """The chains in the order of the file."""
        return ", ".join(dict.fromkeys(self.chains.tolist()))


def read_molecule(path, *, rotor: Sequence[str], assembly: str | None = None) -> Molecule:
    """Read a molecule from a PDB or mmCIF file.

    The axis of the rotor must be parallel to z in the file; it is placed at the mean of
    x and y. If the rotor is the lower part, the molecule is turned upside down, by half
    a turn about x, which preserves its handedness. Weights are atomic numbers. Only the
    first model and the first of alternative conformations are read; water is removed.

    Parameters
    ----------
    path : str or Path
    rotor : sequence of str
        The atoms that turn, as chains, ``"B"``, and ranges of residues,
        ``"A:219-421"``, both ends included, with the authors' names and numbers. All
        other atoms are the rest.
    assembly : str or None
        The name of a biological assembly to build, such as "1", if the file holds one
        subunit only. The copies of a chain keep its name.

    Returns
    -------
    Molecule

    Examples
    --------
    >>> read_molecule(
    ...     "channel.cif", rotor=["A:219-421", "B"], assembly="1"
    ... )  # doctest: +SKIP
    """
    found = _read_atoms(Path(path), assembly)
    turns = _rotor_atoms(rotor, found)
    atoms = found.positions - found.positions.mean(axis=0)
    z = atoms[:, 2]
    if z[turns].mean() < z[~turns].mean():
        # Half a turn about x; changing the sign of z alone would be a mirror image.
        atoms = atoms * [1.0, -1.0, -1.0]
    return Molecule(atoms, found.atomic_numbers, np.where(turns, 0, 1))


def _rotor_atoms(rotor: Sequence[str], found: _Atoms) -> np.ndarray:
    """Return the mask of the atoms that the selections name."""
    turns = np.zeros(len(found.chains), dtype=bool)
    # A single selection is a sequence, too: of letters.
    for selection in [rotor] if isinstance(rotor, str) else rotor:
        turns |= _selected(selection, found)
    if turns.all() or not turns.any():
        raise ValueError(
            "`rotor` must select some atoms, not all; it selects "
            f"{'every atom' if turns.any() else 'none'}. The chains are {found.chain_names}."
        )
    return turns


def _selected(selection: str, found: _Atoms) -> np.ndarray:
    """Return the mask of a selection such as "B" or "A:219-421"."""
    # Residue numbers may be negative, as those of tags before the first residue.
    pattern = r"([^\s:]+)(?::(-?\d+)-(-?\d+))?"
    match = re.fullmatch(pattern, selection) if isinstance(selection, str) else None
    if match is None:
        raise ValueError(
            f'`rotor` must hold selections such as "B" or "A:219-421"; got {selection!r}.'
        )
    chain, first, last = match.groups()
    if chain not in found.chains:
        raise ValueError(
            f"`rotor` must name chains of the file, {found.chain_names}; got {selection!r}."
        )
    in_chain = found.chains == chain
    if first is None:
        return in_chain
    numbers = found.residues[in_chain]
    if None in numbers:
        raise ValueError(
            f"`rotor` selects residues by number; in {found.path}, chain {chain} has "
            "residues without one. Number them, or name whole chains."
        )
    selected = in_chain.copy()
    selected[in_chain] = (numbers >= int(first)) & (numbers <= int(last))
    if not selected.any():
        raise ValueError(
            f"`rotor` must select some atoms; {selection!r} selects none. "
            f"Chain {chain} has residues {numbers.min()} to {numbers.max()}."
        )
    return selected


def _read_atoms(path: Path, assembly: str | None) -> _Atoms:
    structure = _read_structure(path)
    known = [each.name for each in structure.assemblies]
    if assembly in known:
        # Copies keep the chain's name, so that a selection of the rotor names all of them.
        structure.transform_to_assembly(assembly, extra("gemmi").HowToNameCopiedChain.Dup)
    elif assembly is not None:
        raise ValueError(
            "`assembly` must be one of "
            f"{known or 'those in the file, which has none'}; got {assembly!r}."
        )
    structure.remove_alternative_conformations()
    structure.remove_waters()
    sites = [site for model in list(structure)[:1] for site in model.all()]
    if not sites:
        raise ValueError(f"{path} must hold atoms; it holds none.")
    return _Atoms(
        path=path,
        chains=np.array([site.chain.name for site in sites]),
        residues=np.array([site.residue.seqid.num for site in sites]),
        positions=np.array([site.atom.pos.tolist() for site in sites]),
        atomic_numbers=np.array([float(site.atom.element.atomic_number) for site in sites]),
    )


def _read_structure(path: Path):
    gemmi = extra("gemmi")
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"`path` must be a file; {path} {problem}.")
    try:
        # By content, since names do not tell: .ent, .pdb1, .cif.gz.
        return gemmi.read_structure(str(path), format=gemmi.CoorFormat.Detect)
    except (RuntimeError, ValueError, IndexError, OSError) as error:
        raise ValueError(
            f"{path} must be a PDB or mmCIF file; it cannot be read as one: {error}"
        ) from error
