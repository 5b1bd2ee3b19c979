"""Sampled shapes with known factors and spectra; images of a moving molecule."""

from manifactor.datasets.all_views import ViewSimulation, simulate_views
from manifactor.datasets.field import FIELD
from manifactor.datasets.ion_channel import channel
from manifactor.datasets.molecule import Molecule
from manifactor.datasets.particles import Simulation, simulate_particles
from manifactor.datasets.poses import PreferredDirections
from manifactor.datasets.problems import random_problem
from manifactor.datasets.sampling import SAMPLINGS, sample
from manifactor.datasets.shapes import SHAPES, exact_eigenvalues
from manifactor.datasets.structures import read_molecule
from manifactor.datasets.volumes import simulate_volumes

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
