"""Factor a data manifold into its independent degrees of freedom."""

from manifactor import datasets
from manifactor.archive import load, save
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.factoring.evidence import Evidence, NoProductStructureWarning, SampleWarning
from manifactor.factoring.factor import Factor
from manifactor.spectral.neighbors import DisconnectedGraphWarning
from manifactor.spectral.solvers import EigenpairWarning
from manifactor.spectral.spectrum import Spectrum
from manifactor.version import __version__

__all__ = [
    "DiffusionMap",
    "DisconnectedGraphWarning",
    "EigenpairWarning",
    "Evidence",
    "Factor",
    "ManifoldFactorizer",
    "NoProductStructureWarning",
    "SampleWarning",
    "Spectrum",
    "__version__",
    "datasets",
    "load",
    "save",
]
