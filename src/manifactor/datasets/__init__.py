"""Sampled shapes with known factors and spectra, and what other packages simulate."""

from typing import Any

from manifactor._support.plugins import plugins
from manifactor.datasets.problems import random_problem
from manifactor.datasets.sampling import SAMPLINGS, exact_eigenvalues, sample
from manifactor.datasets.shapes import FIELD, SHAPES

__all__ = ["FIELD", "SAMPLINGS", "SHAPES", "exact_eigenvalues", "random_problem", "sample"]
__all__ += plugins("datasets")


def __getattr__(name: str) -> Any:
    if name not in plugins("datasets"):
        raise AttributeError(f"module 'manifactor.datasets' has no attribute {name!r}")
    return plugins("datasets")[name].load()


def __dir__() -> list[str]:
    return sorted(__all__)
