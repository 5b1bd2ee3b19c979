"""Sampled shapes with known factors and spectra; images of a moving molecule."""

from manifactor.cryoem.simulate.all_views import ViewSimulation, simulate_views
from manifactor.cryoem.simulate.ion_channel import channel
from manifactor.cryoem.simulate.molecule import Molecule
from manifactor.cryoem.simulate.particles import Simulation, simulate_particles, simulate_volumes
from manifactor.cryoem.simulate.poses import PreferredDirections
from manifactor.cryoem.simulate.structures import read_molecule
from manifactor.datasets.field import FIELD
from manifactor.datasets.problems import random_problem
from manifactor.datasets.sampling import SAMPLINGS, sample
from manifactor.datasets.shapes import SHAPES, exact_eigenvalues

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
