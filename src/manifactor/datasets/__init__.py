"""Sampled shapes of which the factors, and for many the spectrum, are known exactly."""

from manifactor.datasets.shapes import SHAPES, exact_eigenvalues, sample

__all__ = ["SHAPES", "exact_eigenvalues", "sample"]
