"""Factor a data manifold into its independent degrees of freedom."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manifactor._support import __version__ as __version__

if TYPE_CHECKING:  # for type checkers, which cannot follow `_HOMES`
    from manifactor import datasets as datasets
    from manifactor import scores as scores
    from manifactor.estimators import DiffusionMap as DiffusionMap
    from manifactor.estimators import ManifoldFactorizer as ManifoldFactorizer
    from manifactor.estimators.moving import count_subsystems as count_subsystems
    from manifactor.estimators.moving import jacobian as jacobian
    from manifactor.factors.factor import Factor as Factor
    from manifactor.judging.evidence import Evidence as Evidence
    from manifactor.judging.evidence import NoProductStructureWarning as NoProductStructureWarning
    from manifactor.judging.evidence import SampleWarning as SampleWarning
    from manifactor.kinds import MODELS as MODELS
    from manifactor.operators.engines.solvers import EigenpairWarning as EigenpairWarning
    from manifactor.operators.laplacian import Spectrum as Spectrum
    from manifactor.operators.neighbors import DisconnectedGraphWarning as DisconnectedGraphWarning
    from manifactor.runs.alignment import align as align
    from manifactor.runs.archive import load as load
    from manifactor.runs.archive import save as save
    from manifactor.samples.columns import ColumnWarning as ColumnWarning
    from manifactor.views import plots as plots

# The public names and their modules. A module is imported when its name is first used: numpy and
# scikit-learn take a second, during which the command must answer Ctrl-C.
_HOMES = {
    "ColumnWarning": "manifactor.samples.columns",
    "DiffusionMap": "manifactor.estimators",
    "DisconnectedGraphWarning": "manifactor.operators.neighbors",
    "EigenpairWarning": "manifactor.operators.engines.solvers",
    "Evidence": "manifactor.judging.evidence",
    "Factor": "manifactor.factors.factor",
    "MODELS": "manifactor.kinds",
    "ManifoldFactorizer": "manifactor.estimators",
    "NoProductStructureWarning": "manifactor.judging.evidence",
    "SampleWarning": "manifactor.judging.evidence",
    "Spectrum": "manifactor.operators.laplacian",
    "align": "manifactor.runs.alignment",
    "count_subsystems": "manifactor.estimators.moving",
    "datasets": "manifactor.datasets",
    "jacobian": "manifactor.estimators.moving",
    "load": "manifactor.runs.archive",
    "plots": "manifactor.views.plots",
    "save": "manifactor.runs.archive",
    "scores": "manifactor.scores",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'manifactor' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if _HOMES[name].endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
