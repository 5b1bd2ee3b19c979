"""Sampled shapes with known factors and spectra; images of a moving molecule."""

from manifactor.cryoem.simulate.all_views import PreferredDirections, ViewSimulation, simulate_views
from manifactor.cryoem.simulate.molecule import Molecule, channel, read_molecule
from manifactor.cryoem.simulate.one_view import Simulation, simulate_particles, simulate_volumes
from manifactor.datasets.problems import random_problem
from manifactor.datasets.shapes import FIELD, SAMPLINGS, SHAPES, exact_eigenvalues, sample

__all__ = [
    "FIELD",
    "SAMPLINGS",
    "SHAPES",
    "Molecule",
    "PreferredDirections",
    "Simulation",
    "ViewSimulation",
    "channel",
    "exact_eigenvalues",
    "random_problem",
    "read_molecule",
    "sample",
    "simulate_particles",
    "simulate_views",
    "simulate_volumes",
]
