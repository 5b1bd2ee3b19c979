"""Do the steps of a molecule show its torsions?

    pip install openmm
    python benchmarks/torsions_in_time.py pentane alanine [--temperature 300] [--friction 5]

Langevin dynamics of pentane (the united atoms of benchmarks/molecular_dynamics.py) and of alanine
dipeptide (Amber ff14SB, implicit water OBC2). Heavy atoms, superposed, are fitted by the metric of
their steps, by lagged pairs, and plainly, as are the true torsions. "heavy" is a control: pentane
whose ends do not interact, with a middle so heavy that no torsion moves the other.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import openmm
from openmm import app, unit
from scipy.spatial.transform import Rotation

from manifactor import ManifoldFactorizer
from manifactor.scores import regression_r2
from molecular_dynamics import Pentane, stretched, system, unit_vectors

from record import record

STEP = 0.002  # ps
# Heavy atoms of alanine dipeptide in nm, near phi -80 and psi 70 degrees, made from usual bonds and
# angles; they are relaxed before the run.
ALANINE = {
    ("ACE", "CH3"): (0.000, 0.000, 0.000),
    ("ACE", "C"): (0.151, 0.000, 0.000),
    ("ACE", "O"): (0.214, 0.105, 0.000),
    ("ALA", "N"): (0.210, -0.120, 0.000),
    ("ALA", "CA"): (0.355, -0.135, 0.000),
    ("ALA", "CB"): (0.394, -0.272, 0.055),
    ("ALA", "C"): (0.411, -0.116, -0.140),
    ("ALA", "O"): (0.458, -0.213, -0.201),
    ("NME", "N"): (0.407, 0.008, -0.188),
    ("NME", "C"): (0.458, 0.041, -0.321),
}
# Heavy atoms of each torsion.
TORSIONS = {
    "alanine": [(1, 3, 4, 6), (3, 4, 6, 8)],
    "pentane": [(0, 1, 2, 3), (1, 2, 3, 4)],
    "heavy": [(0, 1, 2, 3), (1, 2, 3, 4)],
}


def alanine() -> tuple[openmm.System, np.ndarray, list[int]]:
    """Return alanine dipeptide, its positions, and the numbers of its heavy atoms."""
    topology = app.Topology()
    chain, residue = topology.addChain(), None
    for name, atom in ALANINE:
        if residue is None or residue.name != name:
            residue = topology.addResidue(name, chain)
        topology.addAtom(atom, app.Element.getBySymbol(atom[0]), residue)
    topology.createStandardBonds()
    force_field = app.ForceField("amber14-all.xml", "implicit/obc2.xml")
    places = [openmm.Vec3(*place) for place in ALANINE.values()]
    whole = app.Modeller(topology, places * unit.nanometer)
    whole.addHydrogens(force_field)
    made = force_field.createSystem(whole.topology, constraints=app.HBonds)
    heavy = [atom.index for atom in whole.topology.atoms() if atom.element.symbol != "H"]
    return made, whole.positions, heavy


def molecule(name: str) -> tuple[openmm.System, np.ndarray, list[int]]:
    """Return a system, its positions, and the atoms to record."""
    if name == "alanine":
        return alanine()
    middle = 1402.7 if name == "heavy" else 14.027
    chain = Pentane(masses=(15.035, middle, middle, middle, 15.035))
    return system(chain, ends_interact=name == "pentane"), stretched(chain), list(range(5))


def simulated(name: str, options: argparse.Namespace) -> np.ndarray:
    """Return positions of the heavy atoms, (n_frames, n_atoms, 3), in Angstrom."""
    made, positions, atoms = molecule(name)
    integrator = openmm.LangevinMiddleIntegrator(options.temperature, options.friction, STEP)
    integrator.setRandomNumberSeed(options.seed)
    if name == "alanine":
        one = (openmm.Platform.getPlatformByName("CPU"), {"Threads": "1"})
    else:  # five atoms: the plain platform is faster
        one = (openmm.Platform.getPlatformByName("Reference"),)
    context = openmm.Context(made, integrator, *one)
    context.setPositions(positions)
    openmm.LocalEnergyMinimizer.minimize(context)
    context.setVelocitiesToTemperature(options.temperature, options.seed)
    integrator.step(round(20 / STEP))
    frames = []
    for _ in range(round(options.duration / options.interval)):
        integrator.step(round(options.interval / STEP))
        state = context.getState(getPositions=True).getPositions(asNumpy=True)
        frames.append(state.value_in_unit(unit.angstrom)[atoms])
    return np.array(frames)


def superposed(frames: np.ndarray) -> np.ndarray:
    """Return frames, one a row, without their motion as a whole, on the first one."""
    centred = frames - frames.mean(axis=1, keepdims=True)
    turns = [Rotation.align_vectors(centred[0], frame)[0].as_matrix() for frame in centred]
    return (centred @ np.transpose(turns, (0, 2, 1))).reshape(len(frames), -1)


def torsion(frames: np.ndarray, atoms: tuple[int, ...]) -> np.ndarray:
    """Return a torsion, (n_frames,), from -pi to pi."""
    first, axis, last = np.diff(frames[:, atoms], axis=1).transpose(1, 0, 2)
    left, right = np.cross(first, axis), np.cross(axis, last)
    sine = (np.cross(left, right) * unit_vectors(axis)).sum(axis=1)
    return np.arctan2(sine, (left * right).sum(axis=1))


def on_circle(angle: np.ndarray) -> np.ndarray:
    """Return cosine and sine."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def coupling(torsions: np.ndarray) -> dict:
    """Return how much the torsions depend on each other, in their moves and in their wells."""
    moves = np.angle(np.exp(1j * np.diff(torsions, axis=0)))
    # trans, gauche - and gauche +: as many thirds of a turn
    wells = np.digitize(torsions, np.radians([-120, 0, 120])) % 3
    both = 3 * wells[:, 0] + wells[:, 1]
    counts = np.bincount(both, minlength=9)
    expected = np.outer(*[np.bincount(well, minlength=3) for well in wells.T]) / len(wells)
    often = np.flatnonzero(counts > 1000)
    found = [np.corrcoef(moves[both[:-1] == pair].T)[0, 1] for pair in often]
    ratios = (counts / np.maximum(expected.ravel(), 1))[expected.ravel() > 100]
    return {
        "correlation of moves, least and most of all wells": [min(found), max(found)],
        "share of a pair of wells to that of independent torsions": [min(ratios), max(ratios)],
        "changes of well": (np.diff(wells, axis=0) != 0).sum(axis=0).tolist(),
    }


def fits(X: np.ndarray, times: np.ndarray, torsions: np.ndarray, lag: float) -> dict:
    """Return the verdict and R^2 of each torsion with each factor, of all ways to fit."""
    ways = {
        "automatic": {"times": times},
        "metric": {"times": times, "lag": 0},
        "pairs": {"times": times, "lag": lag},
        "plain": {},
    }
    found = {}
    for way, known in ways.items():
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            fit = ManifoldFactorizer(random_state=0).fit(X, fit_samples=3000, **known)
        angles = [on_circle(angle) for angle in torsions[fit.rows_].T]
        found[way] = {
            "verdict": fit.verdict_,
            "failed": [test.name for test in fit.evidence_.failed],
            "r2": [
                [round(regression_r2(factor.embedding, angle), 3) for angle in angles]
                for factor in fit.factors_
            ],
            "seconds": round(time.perf_counter() - start),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("molecules", nargs="+", choices=["pentane", "heavy", "alanine"])
    parser.add_argument("--temperature", type=float, default=300.0, help="K")
    parser.add_argument("--friction", type=float, default=5.0, help="1/ps")
    parser.add_argument("--interval", type=float, default=0.05, help="ps between frames")
    parser.add_argument("--duration", type=float, default=4000.0, help="ps")
    parser.add_argument("--lag", type=float, default=1.0, help="ps, of pairs")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.molecules:
        frames = simulated(name, options)
        times = options.interval * np.arange(len(frames))
        torsions = np.column_stack([torsion(frames, atoms) for atoms in TORSIONS[name]])
        record("torsions_in_time", **{**vars(options), "molecules": name}, **coupling(torsions))
        circles = np.hstack([on_circle(angle) for angle in torsions.T])
        views = {"superposed": superposed(frames), "torsions": circles}
        for view, X in views.items():
            for way, result in fits(X, times, torsions, options.lag).items():
                record("torsions_in_time", molecule=name, samples=view, fit=way, **result)


if __name__ == "__main__":
    main()
