"""A fit on disk: one .npz of arrays and a JSON manifest.

No pickle is written or read; loading never executes anything.
"""

import dataclasses
import json
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifactor._support.files import write_whole
from manifactor._support.version import __version__
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.factoring.charts import Chart, Cloud
from manifactor.factoring.division import Split
from manifactor.factoring.evidence import Evidence
from manifactor.factoring.factor import Factor
from manifactor.factoring.maxcut import Cut
from manifactor.factoring.triplets import Triplets
from manifactor.spectral.forecast import Forecast
from manifactor.spectral.kernel import Affinity, Bandwidth
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.parts import Part
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.spectrum import Spectrum

FORMAT, VERSION = "manifactor", 4
ESTIMATORS = {cls.__name__: cls for cls in (DiffusionMap, ManifoldFactorizer)}
RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        Affinity,
        Bandwidth,
        Chart,
        Cloud,
        Cut,
        Evidence,
        Factor,
        Forecast,
        NeighborGraph,
        Part,
        Preparation,
        Spectrum,
        Split,
        Triplets,
    )
}


UNSAVED = ("_stages",)  # what is there twice


def save(fit, path) -> None:
    """Write a fitted DiffusionMap or ManifoldFactorizer to one .npz file, whole or not at all.

    A `neighbors` object of the caller's own, a RandomState and the `callback` are not written: after loading, a fit
    with such a search has all its results but cannot place new samples.
    """
    name = type(fit).__name__
    if name not in ESTIMATORS or not hasattr(fit, "spectrum_"):
        raise ValueError(
            f"`fit` must be one of {sorted(ESTIMATORS)} after fit(); got {fit!r}."
        )
    arrays: dict[str, np.ndarray] = {}
    fitted = {
        key: value
        for key, value in vars(fit).items()
        if key not in fit.get_params() and key not in UNSAVED
    }
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "estimator": name,
        "parameters": {
            key: _plain_parameter(value)
            for key, value in fit.get_params(deep=False).items()
        },
        "fitted": {key: _pack(value, key, arrays) for key, value in fitted.items()},
    }
    arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)
    write_whole(Path(path), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def load(path):
    """The fitted estimator that `save` wrote, or the one in a run folder."""
    path = Path(path)
    path = path / "factorization.npz" if is_run(path) else path
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            manifest = json.loads(stored["manifest"].tobytes())
            if manifest["format"] != FORMAT:
                raise KeyError("format")
            if manifest["version"] != VERSION:
                raise _OtherVersion(
                    f"{path} has archive version {manifest['version']}; this release reads version {VERSION}. "
                    f"Read it with manifactor {manifest['written_by']}."
                )
            parameters = {
                k: tuple(v) if isinstance(v, list) else v
                for k, v in manifest["parameters"].items()
            }
            fit = ESTIMATORS[manifest["estimator"]](**parameters)
            for key, value in manifest["fitted"].items():
                if hasattr(fit, key):
                    raise KeyError(key)  # would hide a parameter or a method
                setattr(fit, key, _unpack(value, stored))
        fit._graph = fit._graph.with_search(fit._samples, fit.n_jobs)
    except (OSError, _OtherVersion):
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is not a whole manifactor archive. Write one with manifactor.save."
        ) from error
    return fit


def write_tree(path: Path, value) -> None:
    """Write records, arrays and plain values, nested in tuples, to one .npz file, whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    manifest = {"version": VERSION, "value": _pack(value, "value", arrays)}
    arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def read_tree(path: Path):
    """What `write_tree` wrote."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            manifest = json.loads(stored["manifest"].tobytes())
            if manifest["version"] != VERSION:
                raise KeyError("version")
            return _unpack(manifest["value"], stored)
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is damaged, or of another version. Remove it, and what it holds is made anew."
        ) from error


class _OtherVersion(ValueError):
    """An archive that this release does not read."""


def is_run(folder: Path) -> bool:
    """Whether this is a run folder."""
    return (folder / "run.json").is_file() and (folder / "factorization.npz").is_file()


def _plain_parameter(value):
    """A parameter as JSON; what only lives in memory becomes the default."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain_parameter(item) for item in value]
    return "auto" if hasattr(value, "transform") else None


def _pack(value, name: str, arrays: dict[str, np.ndarray]):
    """A JSON tree for a value; its arrays go into `arrays` under names that say where they belong."""
    if isinstance(value, np.ndarray):
        arrays[name] = value.astype(str) if value.dtype == object else value
        return {"array": name}
    if sp.issparse(value):
        parts = {
            part: _pack(getattr(value, part), f"{name}/{part}", arrays)
            for part in ("data", "indices", "indptr")
        }
        return {"csr": parts, "shape": list(value.shape)}
    if dataclasses.is_dataclass(value):
        names = [
            field.name
            for field in dataclasses.fields(value)
            if field.name not in ("search", "resident")
        ]
        fields = {
            key: _pack(getattr(value, key), f"{name}/{key}", arrays) for key in names
        }
        return {"record": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {
            "dict": {
                key: _pack(item, f"{name}/{key}", arrays) for key, item in value.items()
            }
        }
    if isinstance(value, tuple | list):
        return {
            "tuple": [
                _pack(item, f"{name}/{i}", arrays) for i, item in enumerate(value)
            ]
        }
    return {"value": _plain_parameter(value)}


def _unpack(tree, stored):
    if "array" in tree:
        return stored[tree["array"]]
    if "csr" in tree:
        parts = [
            _unpack(tree["csr"][part], stored) for part in ("data", "indices", "indptr")
        ]
        matrix = sp.csr_array(tuple(parts), shape=tuple(tree["shape"]))
        matrix.check_format(
            full_check=True
        )  # indices out of range would read foreign memory
        return matrix
    if "record" in tree:
        fields = {key: _unpack(item, stored) for key, item in tree["fields"].items()}
        if tree["record"] == "NeighborGraph":
            fields["search"] = None
        return RECORDS[tree["record"]](**fields)
    if "dict" in tree:
        return {key: _unpack(item, stored) for key, item in tree["dict"].items()}
    if "tuple" in tree:
        return tuple(_unpack(item, stored) for item in tree["tuple"])
    return tree["value"]
