"""A fit on disk: one .npz of arrays and a JSON manifest, or a run folder around it.

No pickle is written or read; loading never executes anything. Files and folders appear whole or not at all.
"""

import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn

from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.factoring.chart import Chart, Cloud
from manifactor.factoring.evidence import Evidence
from manifactor.factoring.factor import Factor
from manifactor.factoring.maxcut import Cut
from manifactor.factoring.pure import Split
from manifactor.factoring.triplets import Triplets
from manifactor.forecast import Forecast
from manifactor.places import Place, fitted_places, from_table, table_as_csv
from manifactor.spectral.kernel import Affinity, Bandwidth
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.parts import Part
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.spectrum import Spectrum
from manifactor.version import __version__

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


ENTRIES = {  # of run.json, where they are there, and their kind
    **dict.fromkeys(("input", "command", "particles", "fingerprint", "reproduce", "input_changed"), str),
    **dict.fromkeys(("n_samples", "n_fitted"), int),
    **dict.fromkeys(("images", "arguments", "components", "neighbors", "seconds", "versions"), dict),
    **dict.fromkeys(("factors", "confounders", "leakage"), list),
}
ROWS: dict[str, dict[str, type]] = {  # what each of those in lists has
    "factors": {"topology": str},
    "confounders": {"name": str, "factor": int, "r2": Real, "p": Real, "meaning": str},
}

UNSAVED = ("_stages",)  # what is there twice


def save(fit, path) -> None:
    """Write a fitted DiffusionMap or ManifoldFactorizer to one .npz file, whole or not at all.

    A `neighbors` object of the caller's own, a RandomState and the `callback` are not written: after loading, a fit
    with such a search has all its results but cannot place new samples.
    """
    name = type(fit).__name__
    if name not in ESTIMATORS or not hasattr(fit, "spectrum_"):
        raise ValueError(f"`fit` must be one of {sorted(ESTIMATORS)} after fit(); got {fit!r}.")
    arrays: dict[str, np.ndarray] = {}
    fitted = {key: value for key, value in vars(fit).items() if key not in fit.get_params() and key not in UNSAVED}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "estimator": name,
        "parameters": {key: _plain_parameter(value) for key, value in fit.get_params(deep=False).items()},
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
            parameters = {k: tuple(v) if isinstance(v, list) else v for k, v in manifest["parameters"].items()}
            fit = ESTIMATORS[manifest["estimator"]](**parameters)
            for key, value in manifest["fitted"].items():
                if hasattr(fit, key):
                    raise KeyError(key)  # would hide a parameter or a method
                setattr(fit, key, _unpack(value, stored))
        fit._graph = fit._graph.with_search(fit._samples, fit.n_jobs)
    except (OSError, _OtherVersion):
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(f"{path} is not a whole manifactor archive. Write one with manifactor.save.") from error
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


def write_whole(path: Path, write) -> None:
    """Call ``write(file)`` on a file beside `path`, then rename: `path` is whole or untouched."""
    require_writable(path.parent)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def write_run(
    fit: ManifoldFactorizer,
    folder,
    *,
    record: dict,
    places: Sequence[Place] | None = None,
    rows: np.ndarray | None = None,
    files: Mapping[str, bytes] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a run folder: factorization.npz, coordinates.csv and run.json, which holds `record` and the verdict.

    Parameters
    ----------
    fit : ManifoldFactorizer
    folder : path
        Must not exist yet, unless `overwrite` is set and it is a run folder.
    record : dict
        What was run: command, arguments, input.
    places : sequence of Place or None
        Of all samples of the input; None where all were fitted.
    rows : ndarray of int or None
        The samples' numbers in the input, from 0; None where they are all that the input has.
    files : mapping of str to bytes or None
        More files of the run.
    """
    folder = Path(folder)
    places = fitted_places(fit) if places is None else places
    rows = np.arange(len(places[0].coordinate)) if rows is None else rows
    require_new_run(folder, overwrite=overwrite)
    summary = {
        "format": f"{FORMAT} run",
        "version": VERSION,
        **record,
        "verdict": fit.verdict_,
        "reason": fit.evidence_.reason,
        "evidence": str(fit.evidence_),
        "factors": [{"topology": f.topology, "dimension": f.dimension} for f in fit.factors_],
        "agreement": _or_none(fit.evidence_.agreement),
        "reliability": _or_none(fit.evidence_.reliability),
        "leakage": [[_or_none(value) for value in row] for row in fit.evidence_.leakage],
        "seconds": fit.timings_,
        "versions": versions(),
    }
    with whole_folder(folder) as beside:
        save(fit, beside / "factorization.npz")
        (beside / "coordinates.csv").write_bytes(table_as_csv(places, rows))
        for name, content in (files or {}).items():
            (beside / name).write_bytes(content)
        (beside / "run.json").write_text(json.dumps(summary, indent=2, default=str) + "\n", encoding="utf-8")


def _or_none(value: float) -> float | None:
    """A number as JSON has it, which knows no nan."""
    return float(value) if np.isfinite(value) else None


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"manifactor": __version__, **{m.__name__: m.__version__ for m in (np, scipy, sklearn)}}


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes the place of `folder` when all went well, and is removed otherwise."""
    require_writable(folder.parent)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield beside
        beside.chmod(0o777 & ~_umask())
        _exchange(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _exchange(new: Path, folder: Path) -> None:
    """Put a folder in the place of another, which is removed only when the new one stands."""
    if not folder.exists():
        new.rename(folder)
        return
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old.")) / folder.name
    try:
        folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        with suppress(OSError):
            old.parent.rmdir()
        raise
    shutil.rmtree(old.parent, ignore_errors=True)


def require_new_run(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot be written or that would lose something, before any work is done."""
    if folder.exists() and not (overwrite and is_run(folder)):
        hint = "Choose another --out, or pass --overwrite." if is_run(folder) else "It is no run; choose another --out."
        raise ValueError(f"the output folder must not exist yet; {folder} does. {hint}")
    require_writable(folder.parent)


def is_run(folder: Path) -> bool:
    """Whether this is a run folder."""
    return (folder / "run.json").is_file() and (folder / "factorization.npz").is_file()


def read_run(folder) -> tuple[dict, ManifoldFactorizer]:
    """The record in run.json and the fit of a run folder."""
    folder = Path(folder)
    record, fit = read_record(folder), load(folder / "factorization.npz")
    if not isinstance(fit, ManifoldFactorizer):
        raise ValueError(f"{folder / 'factorization.npz'} holds no factors but a {type(fit).__name__}. Fit again.")
    if [f.topology for f in fit.factors_] != [f["topology"] for f in record.get("factors", [])]:
        raise ValueError(f"{folder / 'run.json'} and factorization.npz do not have the same factors. Fit again.")
    return record, fit


def read_record(folder: Path) -> dict:
    """What run.json of a run folder says."""
    if not is_run(folder):
        raise ValueError(f"{folder} is not a run folder: it must hold run.json and factorization.npz.")
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        if record["format"] == f"{FORMAT} run" and record["version"] == VERSION and dict(record["versions"]):
            problem = _misshapen(record)
            if not problem:
                return record
        else:
            problem = "it was written by another version, or is no record of a run"
    except (ValueError, TypeError, KeyError) as error:
        problem = " ".join(str(error).split())
    raise ValueError(f"{folder / 'run.json'} is damaged: {problem}. Fit again.")


def _misshapen(record: dict) -> str:
    """What is not as `write_run` and its callers have it, "" for nothing; an entry may be missing, not another kind."""
    for name, kind in ENTRIES.items():
        if name in record and not isinstance(record[name], kind):
            return f"{name} is {type(record[name]).__name__}, not {kind.__name__}"
    for name, kinds in ROWS.items():
        for row in record.get(name, []):
            if not (isinstance(row, dict) and all(isinstance(row.get(key), kind) for key, kind in kinds.items())):
                return f"{name} must each have {', '.join(kinds)}"
    components = record.get("components", {"text": ""})
    ratios, weights = components.get("signal_to_noise", []), components.get("weights", [])
    if not isinstance(components.get("text"), str) or not all(isinstance(n, Real) for n in [*ratios, *weights]):
        return "components must have text, and numbers as signal_to_noise and weights"
    view = record.get("view") or [0.0, 0.0]
    return "" if len(view) == 2 and all(isinstance(angle, Real) for angle in view) else "view must be two angles"


def read_places(folder) -> tuple[np.ndarray, tuple[Place, ...]]:
    """Numbers of a run's samples in the input, and their places on each factor."""
    folder = Path(folder)
    record = read_record(folder)
    path = folder / "coordinates.csv"
    try:
        with path.open(encoding="utf-8") as file:
            header = file.readline().strip().split(",")
        columns = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        places = from_table(header, columns, [factor["topology"] for factor in record["factors"]])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {' '.join(str(error).split())}. Fit again.") from error
    return columns[:, 0].astype(int), places


def require_writable(folder: Path) -> None:
    """Refuse a folder in which nothing can be written."""
    try:
        os.rmdir(tempfile.mkdtemp(dir=folder))  # asking for permission is not enough: root has it everywhere
    except OSError as error:
        raise ValueError(
            f"the output goes into {folder}, which must be a writable folder: {error.strerror}."
        ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
        parts = {part: _pack(getattr(value, part), f"{name}/{part}", arrays) for part in ("data", "indices", "indptr")}
        return {"csr": parts, "shape": list(value.shape)}
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in ("search", "resident")]
        fields = {key: _pack(getattr(value, key), f"{name}/{key}", arrays) for key in names}
        return {"record": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {"dict": {key: _pack(item, f"{name}/{key}", arrays) for key, item in value.items()}}
    if isinstance(value, tuple | list):
        return {"tuple": [_pack(item, f"{name}/{i}", arrays) for i, item in enumerate(value)]}
    return {"value": _plain_parameter(value)}


def _unpack(tree, stored):
    if "array" in tree:
        return stored[tree["array"]]
    if "csr" in tree:
        parts = [_unpack(tree["csr"][part], stored) for part in ("data", "indices", "indptr")]
        matrix = sp.csr_array(tuple(parts), shape=tuple(tree["shape"]))
        matrix.check_format(full_check=True)  # indices out of range would read foreign memory
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
