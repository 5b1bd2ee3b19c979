"""Factor a data manifold into its independent degrees of freedom."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manifactor.version import __version__

if TYPE_CHECKING:
    from manifactor import datasets
    from manifactor.archive import load, save
    from manifactor.estimators import DiffusionMap, ManifoldFactorizer
    from manifactor.factoring.evidence import Evidence, NoProductStructureWarning, SampleWarning
    from manifactor.factoring.factor import Factor
    from manifactor.spectral.neighbors import DisconnectedGraphWarning
    from manifactor.spectral.solvers import EigenpairWarning
    from manifactor.spectral.spectrum import Spectrum

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

# where each public name lives; imported when first asked for, so that the command answers an interrupt from the start
_HOMES = {
    "DiffusionMap": "manifactor.estimators",
    "DisconnectedGraphWarning": "manifactor.spectral.neighbors",
    "EigenpairWarning": "manifactor.spectral.solvers",
    "Evidence": "manifactor.factoring.evidence",
    "Factor": "manifactor.factoring.factor",
    "ManifoldFactorizer": "manifactor.estimators",
    "NoProductStructureWarning": "manifactor.factoring.evidence",
    "SampleWarning": "manifactor.factoring.evidence",
    "Spectrum": "manifactor.spectral.spectrum",
    "load": "manifactor.archive",
    "save": "manifactor.archive",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("manifactor.datasets")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'manifactor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
