"""The scikit-learn estimators: they check, call the core, and remember."""

from manifactor.estimators.diffusion_map import DiffusionMap as DiffusionMap
from manifactor.estimators.factorizer import ManifoldFactorizer as ManifoldFactorizer
