"""Sampled shapes of which the factors, and for many the spectrum, are known exactly."""

from manifactor.datasets.problems import random_problem
from manifactor.datasets.shapes import SAMPLINGS, SHAPES, exact_eigenvalues, sample

__all__ = ["SAMPLINGS", "SHAPES", "exact_eigenvalues", "random_problem", "sample"]
