"""Records as trees of JSON and arrays, and back: nothing is ever executed."""

import dataclasses
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifactor._support.choices import Choice
from manifactor.cryoem.all_views.model import MotionModel
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.place_features import PlaceFeatures
from manifactor.cryoem.all_views.principal import PrincipalVolumes
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.all_views.view_map import ViewMap
from manifactor.cryoem.directions import SphereCells
from manifactor.factoring.factorization import DividedTerm, Factorization
from manifactor.factoring.factors.charts import Chart
from manifactor.factoring.factors.clouds import Cloud
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.judging.advice import DataKnown
from manifactor.factoring.judging.criterion import Test
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.sums.directions import Directions
from manifactor.factoring.sums.sheets import Sheet
from manifactor.factoring.sums.summands import Sum, Summand
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.factoring.triplets.search import Triplets
from manifactor.runs.record_rules import UNSAVED
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.forecast import Forecast
from manifactor.spectral.kernel import Affinity, Bandwidth
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.parts import Part
from manifactor.spectral.pipeline import Walk
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.spectrum import Spectrum

# Raised whenever a record changes. 7: a term of a Sum may have several factors.
ARCHIVE_VERSION = 7
# The only classes that a tree may name.
RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        Affinity,
        Bandwidth,
        Chart,
        Choice,
        Cloud,
        Cut,
        DataKnown,
        Diffusion,
        Directions,
        DividedTerm,
        Evidence,
        Factor,
        Factorization,
        Forecast,
        MotionModel,
        Motions,
        NeighborGraph,
        Part,
        PlaceFeatures,
        Preparation,
        PrincipalVolumes,
        Sheet,
        Spectrum,
        SphereCells,
        Split,
        Sum,
        Summand,
        Test,
        Triplets,
        ViewMap,
        VolumeGrid,
        Walk,
    )
}
CSR_PARTS = ("data", "indices", "indptr")


def pack(value, name: str, arrays: dict[str, np.ndarray]) -> dict:
    """Return a JSON tree for a value.

    Its arrays go into `arrays`, under names that say where they belong.
    """
    if isinstance(value, np.ndarray):
        arrays[name] = value.astype(str) if value.dtype == object else value
        return {"array": name}
    if sp.issparse(value):
        parts = {part: pack(getattr(value, part), f"{name}/{part}", arrays) for part in CSR_PARTS}
        return {"csr": parts, "shape": list(value.shape)}
    if dataclasses.is_dataclass(value):
        fields = {
            field.name: pack(getattr(value, field.name), f"{name}/{field.name}", arrays)
            for field in dataclasses.fields(value)
            if field.name not in UNSAVED
        }
        return {"record": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        items = value.items()
        return {"dict": {key: pack(item, f"{name}/{key}", arrays) for key, item in items}}
    if isinstance(value, tuple | list):
        packed = [pack(item, f"{name}/{i}", arrays) for i, item in enumerate(value)]
        return {"tuple": packed}
    if not isinstance(value, str | bool | np.bool_ | Real | None):
        raise TypeError(f"`{name}` cannot be archived; got {type(value).__name__}.")
    return {"value": plain_parameter(value)}


def unpack(tree: dict, stored) -> Any:
    """Return the value of a JSON tree; `stored` maps the names of arrays to them."""
    if "array" in tree:
        return stored[tree["array"]]
    if "csr" in tree:
        return _matrix(tree, stored)
    if "record" in tree:
        return _record(tree, stored)
    if "dict" in tree:
        return {key: unpack(item, stored) for key, item in tree["dict"].items()}
    if "tuple" in tree:
        return tuple(unpack(item, stored) for item in tree["tuple"])
    return tree["value"]


def _matrix(tree: dict, stored) -> sp.csr_array:
    parts = tuple(unpack(tree["csr"][part], stored) for part in CSR_PARTS)
    matrix = sp.csr_array(parts, shape=tuple(tree["shape"]))
    # Indices out of range would read foreign memory.
    matrix.check_format(full_check=True)
    # SciPy looks at the order of rows only where the last one says there are entries.
    if (np.diff(matrix.indptr) < 0).any():
        raise ValueError("the rows of a sparse matrix must follow each other")
    return matrix


def _record(tree: dict, stored):
    fields = {key: unpack(item, stored) for key, item in tree["fields"].items()}
    if tree["record"] == "NeighborGraph":
        fields["search"] = None
    return RECORDS[tree["record"]](**fields)


def plain_parameter(value):
    """Return a parameter as JSON; what lives in memory only becomes the default."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, tuple | list | np.ndarray):
        return [plain_parameter(item) for item in value]
    return "auto" if hasattr(value, "transform") else None
