"""Simulate pentane and write the data of examples/plot_molecular_dynamics.py.

    pip install openmm
    python benchmarks/molecular_dynamics.py [--frames 3000] [--out examples/data]

One molecule in vacuum, Langevin dynamics, the united-atom force field TraPPE-UA (Martin
and Siepmann, J. Phys. Chem. B 102, 2569, 1998), whose terms are written out below. It
is simulated twice: as it is, and without the Lennard-Jones interaction of both ends.
"""

import argparse
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openmm
from openmm import unit


@dataclass(frozen=True)
class Pentane:
    """TraPPE-UA for a chain of CH3 and CH2 groups; energies in K, lengths in nm."""

    masses: tuple[float, ...] = (15.035, 14.027, 14.027, 14.027, 15.035)
    bond: float = 0.154
    angle: float = 114.0
    bend: float = 62_500.0
    # U = c1 (1 + cos a) + c2 (1 - cos 2a) + c3 (1 + cos 3a); 180 degrees is trans.
    torsion: tuple[float, float, float] = (355.03, -68.19, 791.32)
    # Of two CH3 groups. In pentane only the ends are four bonds apart.
    sigma: float = 0.375
    epsilon: float = 98.0


@dataclass(frozen=True)
class Run:
    """How the molecule is simulated."""

    # The barriers of 1700 and 2300 K are crossed within picoseconds.
    temperature: float = 600.0
    friction: float = 5.0  # 1/ps
    step: float = 0.002  # ps, with rigid bonds
    interval: float = 5.0  # ps between frames
    warm_up: float = 100.0  # ps
    seed: int = 1


KELVIN = 8.31446e-3  # kJ/mol


def system(molecule: Pentane, *, ends_interact: bool) -> openmm.System:
    made = openmm.System()
    for mass in molecule.masses:
        made.addParticle(mass)
    for atom in range(4):
        made.addConstraint(atom, atom + 1, molecule.bond)
    bends = openmm.HarmonicAngleForce()
    for atom in range(3):
        angle = np.radians(molecule.angle)
        bends.addAngle(atom, atom + 1, atom + 2, angle, molecule.bend * KELVIN)
    made.addForce(bends)
    made.addForce(torsions(molecule))
    if ends_interact:
        made.addForce(lennard_jones(molecule))
    return made


def torsions(molecule: Pentane) -> openmm.PeriodicTorsionForce:
    force = openmm.PeriodicTorsionForce()
    phases = (0.0, np.pi, 0.0)
    for atom in range(2):
        for order, (phase, height) in enumerate(
            zip(phases, molecule.torsion, strict=True), start=1
        ):
            atoms = range(atom, atom + 4)
            force.addTorsion(*atoms, order, phase, height * KELVIN)
    return force


def lennard_jones(molecule: Pentane) -> openmm.CustomBondForce:
    force = openmm.CustomBondForce("4 * epsilon * ((sigma/r)^12 - (sigma/r)^6)")
    force.addGlobalParameter("epsilon", molecule.epsilon * KELVIN)
    force.addGlobalParameter("sigma", molecule.sigma)
    force.addBond(0, 4)
    return force


def stretched(molecule: Pentane) -> np.ndarray:
    """Return the all-trans chain, (5, 3)."""
    half = np.radians(molecule.angle) / 2
    atoms = np.arange(5)
    x = atoms * molecule.bond * np.sin(half)
    y = (atoms % 2) * molecule.bond * np.cos(half)
    return np.column_stack([x, y, np.zeros(5)])


def simulated(molecule: Pentane, run: Run, n_frames: int, **terms) -> np.ndarray:
    """Return positions of the atoms, (n_frames, 5, 3), in nm."""
    integrator = openmm.LangevinMiddleIntegrator(run.temperature, run.friction, run.step)
    integrator.setRandomNumberSeed(run.seed)
    # For five atoms the plain platform is the fastest, and one seed gives one result.
    context = openmm.Context(
        system(molecule, **terms), integrator, openmm.Platform.getPlatformByName("Reference")
    )
    context.setPositions(stretched(molecule))
    context.setVelocitiesToTemperature(run.temperature, run.seed)
    integrator.step(round(run.warm_up / run.step))
    frames = []
    for _ in range(n_frames):
        integrator.step(round(run.interval / run.step))
        state = context.getState(getPositions=True)
        frames.append(state.getPositions(asNumpy=True).value_in_unit(unit.nanometer))
    return np.array(frames)


def superposed(positions: np.ndarray) -> np.ndarray:
    """Return positions in the frame of the three atoms in the middle of the chain."""
    left, middle, right = positions[:, 1], positions[:, 2], positions[:, 3]
    x = unit_vectors(right - left)
    z = unit_vectors(np.cross(x, middle - left))
    axes = np.stack([x, np.cross(z, x), z], axis=1)
    return np.einsum("nij,naj->nai", axes, positions - middle[:, None])


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def torsion_angles(positions: np.ndarray) -> np.ndarray:
    """Return both torsions, (n_frames, 2), from -pi to pi; pi is trans."""
    bonds = np.diff(positions, axis=1)
    normals = np.cross(bonds[:, :-1], bonds[:, 1:])
    found = []
    for k in range(2):
        axis = unit_vectors(bonds[:, k + 1])
        sine = (np.cross(normals[:, k], normals[:, k + 1]) * axis).sum(axis=1)
        cosine = (normals[:, k] * normals[:, k + 1]).sum(axis=1)
        found.append(np.arctan2(sine, cosine))
    return np.column_stack(found)


def provenance(molecule: Pentane, run: Run, n_frames: int) -> str:
    paragraphs = [
        "pentane.npz: molecular dynamics of one molecule of n-pentane",
        f"Made by benchmarks/molecular_dynamics.py --frames {n_frames} with OpenMM "
        f"{openmm.__version__} (platform Reference, double precision, seed "
        f"{run.seed}). No data of others are in it.",
        "Force field: TraPPE-UA (M. G. Martin and J. I. Siepmann, J. Phys. Chem. B "
        f"102, 2569, 1998), united atoms CH3-CH2-CH2-CH2-CH3: {molecule}; energies in "
        "K, lengths in nm, the angle in degrees, masses in Da. Bonds are rigid.",
        f"Dynamics: {run}; temperature in K, friction in 1/ps, times in ps. One "
        "molecule in vacuum.",
        "Arrays, float32, one row for each frame:",
    ]
    arrays = """
    positions          (frames, 5, 3), nm, in the frame of atoms 2, 3 and 4
    torsions           (frames, 2), radians, 180 degrees is trans
    free_positions     the same without the Lennard-Jones interaction of atoms 1 and 5
    free_torsions
    """
    text = "\n\n".join(textwrap.fill(each, 88) for each in paragraphs)
    return f"{text}\n\n{textwrap.indent(textwrap.dedent(arrays).strip(), '  ')}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=3000)
    root = Path(__file__).parents[1]
    parser.add_argument("--out", type=Path, default=root / "examples" / "data")
    arguments = parser.parse_args()
    molecule, run = Pentane(), Run()
    arrays = {}
    for prefix, ends_interact in (("", True), ("free_", False)):
        positions = simulated(molecule, run, arguments.frames, ends_interact=ends_interact)
        arrays[f"{prefix}positions"] = superposed(positions).astype(np.float32)
        arrays[f"{prefix}torsions"] = torsion_angles(positions).astype(np.float32)
    np.savez_compressed(arguments.out / "pentane.npz", **arrays)
    text = provenance(molecule, run, arguments.frames)
    (arguments.out / "pentane.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
