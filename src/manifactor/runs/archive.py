"""Records as trees of JSON and arrays, and back: nothing is ever executed."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifactor._support.array_files import ArrayFileError, ArrayFileSettings, open_archive
from manifactor._support.errors import first_sentence
from manifactor._support.files import clear_leftovers, write_whole
from manifactor._support.memory import available_memory
from manifactor._support.parameters import Choice
from manifactor._support.version import __version__
from manifactor.cryoem.all_views.model import MotionModel, ViewMap
from manifactor.cryoem.all_views.motions import Motions, PlaceFeatures
from manifactor.cryoem.all_views.principal import PrincipalVolumes
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.directions import SphereCells
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.factoring.factorization import DividedTerm, Factorization
from manifactor.factoring.factors.charts import Chart, Cloud
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.judging.advice import DataKnown
from manifactor.factoring.judging.criteria import Test
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.sums.independence import Directions
from manifactor.factoring.sums.sheets import Sheet
from manifactor.factoring.sums.summands import Sum, Summand
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.factoring.triplets.search import Triplets
from manifactor.runs.rules import BOOK, UNSAVED, BrokenRule, FittedAttributes
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


# A fit on disk: one .npz of arrays and a JSON manifest.
#
# No pickle is written or read; loading never executes anything.

FORMAT = "manifactor"
ESTIMATORS = {cls.__name__: cls for cls in (DiffusionMap, ManifoldFactorizer)}
# What an archive may set on an estimator, beside its parameters. Anything else would hide a
# parameter or a method.
FITTED = tuple(each.name for each in fields(FittedAttributes))
# What a manifest leads to that is no JSON, or has other entries than `pack` makes.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def save(fit, path) -> None:
    """Write a fitted DiffusionMap or ManifoldFactorizer to one .npz file.

    The file is written whole or not at all, and what an earlier call that was killed
    has left in its folder is removed. A `neighbors` object of the caller's own, a
    RandomState and the `callback` are not written: after loading, a fit with such a
    search has all its results but cannot place new samples.

    Parameters
    ----------
    fit : ManifoldFactorizer or DiffusionMap
        Fitted.
    path : str or Path
    """
    name = type(fit).__name__
    fitted = {key: vars(fit)[key] for key in FITTED if key in getattr(fit, "__dict__", {})}
    if name not in ESTIMATORS or "timings_" not in fitted:
        raise ValueError(f"`fit` must be one of {sorted(ESTIMATORS)} after fit(); got {fit!r}.")
    parameters = fit.get_params(deep=False).items()
    arrays: dict[str, np.ndarray] = {}
    manifest = {
        "format": FORMAT,
        "version": ARCHIVE_VERSION,
        "written_by": __version__,
        "estimator": name,
        "parameters": {key: plain_parameter(value) for key, value in parameters},
        "fitted": {key: pack(value, key, arrays) for key, value in fitted.items()},
    }
    if Path(path).is_dir():
        raise ValueError(f"`path` must be a file to write, such as fit.npz; {path} is a folder.")
    clear_leftovers(Path(path).parent)
    _write(Path(path), manifest, arrays)


def load(path):
    """Return the fitted estimator that `save` wrote, or the one in a run folder.

    Parameters
    ----------
    path : str or Path
        A file of `save`, or a run folder.

    Raises
    ------
    FileNotFoundError
    ValueError
        If it is something else, or damaged.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist. Name a run folder, or a file of manifactor.save."
        )
    path = path / "factorization.npz" if is_run(path) else path
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder, but no run folder: it must hold run.json and "
            "factorization.npz. Name a run folder, or a file of manifactor.save."
        )
    try:
        manifest, arrays = _read(path)
        _require_version(manifest, path)
        fit, fitted = _unpacked(manifest, arrays)
    except ArchiveVersionError:
        raise
    except MALFORMED as error:
        raise _not_whole(path, error) from error
    for name, value in fitted.items():
        setattr(fit, name, value)
    try:
        fit.restore()
    except ValueError as error:  # a parameter that no fit accepts
        raise _not_whole(path, error) from error
    return fit


def _not_whole(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{path} is not a whole manifactor archive{_reason(error, path)}. Write one "
        "with manifactor.save."
    )


def _read(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the manifest and the arrays of an archive; sizes are checked first."""
    # Arrays stay as they are: indices take half of the memory of floats.
    settings = ArrayFileSettings(bytes_per_number=1)
    most_bytes = available_memory()
    with open_archive(path, most_bytes=most_bytes, settings=settings) as archive:
        arrays = archive.read()
    return json.loads(arrays["manifest"].tobytes()), arrays


def _reason(error: Exception, path: Path) -> str:
    """Return what is wrong, where the error says it in words for a reader."""
    if not isinstance(error, BrokenRule | ArrayFileError):
        return ""
    return f" ({first_sentence(error).removeprefix(f'{path} ')})"


class ArchiveVersionError(ValueError):
    """An archive that this release does not read."""


def _require_version(manifest: dict, path: Path) -> None:
    if manifest["format"] != FORMAT:
        raise KeyError("format")
    if manifest["version"] != ARCHIVE_VERSION:
        raise ArchiveVersionError(
            f"{path} has archive version {manifest['version']}; this release reads "
            f"version {ARCHIVE_VERSION}. Read it with manifactor "
            f"{manifest['written_by']}, or fit again."
        )


def _unpacked(manifest: dict, stored) -> tuple[Any, dict[str, Any]]:
    """Return the estimator of a manifest, and what to set on it, which is checked."""
    parameters = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in manifest["parameters"].items()
    }
    fit = ESTIMATORS[manifest["estimator"]](**parameters)
    tree = manifest["fitted"]
    fitted = FittedAttributes(**{name: unpack(tree[name], stored) for name in tree})
    BOOK.check(fitted)
    return fit, {name: getattr(fitted, name) for name in tree}


def write_tree(path: Path, value) -> None:
    """Write records, arrays and plain values, nested in tuples, to one .npz file."""
    arrays: dict[str, np.ndarray] = {}
    manifest = {"version": ARCHIVE_VERSION, "value": pack(value, "value", arrays)}
    _write(path, manifest, arrays)


def read_tree(path: Path, *, check: Callable[[Any], None] | None = None):
    """Return what `write_tree` wrote."""
    try:
        manifest, arrays = _read(path)
        if manifest["version"] != ARCHIVE_VERSION:
            raise KeyError("version")
        value = unpack(manifest["value"], arrays)
        BOOK.check_all(value)
        if check is not None:
            check(value)
        return value
    except MALFORMED as error:
        raise ValueError(
            f"{path} is damaged, or of another version{_reason(error, path)}. Remove "
            "it, and what it holds is computed again."
        ) from error


def _write(path: Path, manifest: dict, arrays: dict[str, np.ndarray]) -> None:
    text = json.dumps(manifest).encode()
    arrays["manifest"] = np.frombuffer(text, dtype=np.uint8)
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def is_run(folder: Path) -> bool:
    """Return whether this is a run folder."""
    return (folder / "run.json").is_file() and (folder / "factorization.npz").is_file()
