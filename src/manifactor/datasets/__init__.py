"""Sampled shapes of which the factors, and for many the spectrum, are known exactly; images of a moving molecule."""

from manifactor.datasets.molecule import Molecule, channel, read_molecule
from manifactor.datasets.particles import (
    Simulation,
    simulate_particles,
    simulate_volumes,
)
from manifactor.datasets.problems import random_problem
from manifactor.datasets.shapes import SAMPLINGS, SHAPES, exact_eigenvalues, sample

__all__ = [
    "SAMPLINGS",
    "SHAPES",
    "Molecule",
    "Simulation",
    "channel",
    "exact_eigenvalues",
    "random_problem",
    "read_molecule",
    "sample",
    "simulate_particles",
    "simulate_volumes",
]
