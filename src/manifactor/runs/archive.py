"""A fit, or pieces of one, on disk: one .npz of arrays and a JSON manifest, and back.

No pickle is written or read. A record becomes a tree of JSON that names its class and the arrays of
its fields. Only records that a fit can hold are made from one, whose fields must have the types
that their class declares. Fields unknown to this release are ignored, and those with a default may
be missing, so that archives of earlier releases can be read.
"""

import dataclasses
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import scipy.sparse as sp

from manifactor._support import __version__
from manifactor._support.array_files import ArrayFileError, open_archive
from manifactor._support.errors import first_sentence, warn_caller
from manifactor._support.files import hold, remove, write_bytes, write_whole
from manifactor._support.parameters import Choice
from manifactor._support.plugins import loaded
from manifactor._support.stages import Callback, Result, Stages
from manifactor._support.workers import Here, Jobs, Report, Work, Workers, ignored
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.factorization import Factorization
from manifactor.operators.forecast import Forecast
from manifactor.operators.neighbors import NeighborGraph
from manifactor.operators.operator import Operator
from manifactor.runs.old_archives import OLDEST_VERSION, renewed
from manifactor.runs.record_form import misfit
from manifactor.samples.preparation import Preparation, Transformation

# Raised whenever a record changes. 8: a Factorization has a placer.
ARCHIVE_VERSION = 8
READABLE_VERSIONS = range(OLDEST_VERSION, ARCHIVE_VERSION + 1)
FORMAT = "manifactor"
# Fields that live in memory only: a search tree, functions on a device, settings, which the
# estimator's parameters give back, moves that a fit has tested its factors by, and other results.
UNSAVED = {"search", "resident", "settings", "path", "lagged"}
UNSAVED |= {"take", "drawn", "warned"}
CSR_PARTS = ("data", "indices", "indptr")
ESTIMATORS = {cls.__name__: cls for cls in (DiffusionMap, ManifoldFactorizer)}
# What an archive sets on an estimator, beside its parameters, and of which type.
FITTED: dict[str, Any] = {
    "forecast_": Forecast,
    "timings_": dict[str, float],
    "n_features_in_": int,
    "diffusion_": Operator | None,
    "factorization_": Factorization | None,
    "rows_": np.ndarray | None,
    "image_shape_": tuple[int, ...] | None,
    "feature_names_in_": np.ndarray | None,
}


# What a manifest leads to that is not JSON, or has other entries than `pack` makes.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class BrokenRecord(ValueError):
    """A record that no computation has made."""


def pack(value, name: str, arrays: dict[str, np.ndarray]) -> dict:
    """Return a JSON tree for a value; its arrays go into `arrays`, under names of their places."""

    def attributes(names: Sequence[str]) -> dict:
        return {key: pack(getattr(value, key), f"{name}/{key}", arrays) for key in names}

    if isinstance(value, np.ndarray):
        arrays[name] = value.astype(str) if value.dtype == object else value
        return {"array": name, "checksum": _checksum(arrays[name])}
    if sp.issparse(value):
        return {"csr": attributes(CSR_PARTS), "shape": list(value.shape)}
    if dataclasses.is_dataclass(value):
        saved = [field.name for field in dataclasses.fields(value) if field.name not in UNSAVED]
        return {"record": _name(type(value)), "fields": attributes(saved)}
    if isinstance(value, dict):
        return {"dict": {k: pack(item, f"{name}/{k}", arrays) for k, item in value.items()}}
    if isinstance(value, tuple | list):
        return {"tuple": [pack(item, f"{name}/{i}", arrays) for i, item in enumerate(value)]}
    if not isinstance(value, str | bool | np.bool_ | Real | None):
        raise TypeError(f"`{name}` cannot be archived; got {type(value).__name__}.")
    return {"value": value}


def unpack(tree: dict, stored) -> Any:
    """Return the value of a JSON tree; `stored` maps the names of arrays to them."""
    if "array" in tree:
        array = stored[tree["array"]]
        # Archives of 0.2.0 have no checksums.
        if "checksum" in tree and tree["checksum"] != _checksum(array):
            raise BrokenRecord(f"{tree['array']} is not the array that was written")
        return array
    if "csr" in tree:
        return _matrix(tree, stored)
    if "record" in tree:
        return _record(tree, stored)
    if "dict" in tree:
        return {key: unpack(item, stored) for key, item in tree["dict"].items()}
    if "tuple" in tree:
        return tuple(unpack(item, stored) for item in tree["tuple"])
    return tree["value"]


def _checksum(array: np.ndarray) -> int:
    start = zlib.crc32(f"{array.dtype.str} {array.shape}".encode())
    return zlib.crc32(np.ascontiguousarray(array), start)  # type: ignore[arg-type]


def _check(tree: dict, stored, hint: Any, name: str) -> Any:
    """Return the value of a tree; refuse one that is not of the type that is declared."""
    value = unpack(tree, stored)
    if problem := misfit(value, hint, name):
        raise BrokenRecord(problem)
    return value


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
    """Return the record of a tree, with those of its fields that its class has."""
    kind, trees = _records()[tree["record"]], tree["fields"]
    fields: dict[str, Any] = {"search": None} if kind is NeighborGraph else {}
    for name, hint in _hints(kind).items():
        if name in trees:
            fields[name] = _check(trees[name], stored, hint, f"{kind.__name__}.{name}")
    return kind(**fields)


@cache
def _records() -> dict[str, Any]:
    """Return the only classes that a tree may name: records, and those in their fields."""
    records: dict[str, Any] = {}
    left: list[Any] = [Preparation, Transformation, Choice, *FITTED.values()]
    left += loaded("records").values()
    while left:
        hint = left.pop()
        if hasattr(hint, "__dataclass_fields__") and hint not in records.values():
            # Records of tensors, whose types are known to type checkers alone, are not archived.
            with suppress(NameError):
                left += _hints(hint).values()
                records[_name(hint)] = hint
        left += get_args(hint)
    return records


def _name(kind: type) -> str:
    """Return the name of a record in archives, as earlier releases wrote it."""
    return "Diffusion" if kind is Operator else kind.__name__


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a record that archives hold."""
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return {name: hints[name] for name in names if name not in UNSAVED}


def save(fit, path) -> None:
    """Write a fitted DiffusionMap or ManifoldFactorizer to one .npz file.

    The file is written whole or not at all, and what an earlier call that was killed
    has left of it is removed. A `neighbors` object of the caller's own, a
    RandomState and the `callback` are not written: after loading, a fit with such a
    search has all its results but cannot place new samples.

    Parameters
    ----------
    fit : ManifoldFactorizer or DiffusionMap
        Fitted.
    path : str or Path
    """
    name = type(fit).__name__
    values = getattr(fit, "__dict__", {})
    fitted = {key: values[key] for key in FITTED if key in values}
    if name not in ESTIMATORS or "timings_" not in fitted:
        raise ValueError(f"`fit` must be one of {sorted(ESTIMATORS)} after fit(); got {fit!r}.")
    arrays: dict[str, np.ndarray] = {}
    manifest = {
        "format": FORMAT,
        "version": ARCHIVE_VERSION,
        "written_by": __version__,
        "estimator": name,
        "parameters": fit.get_params(deep=False),
        "fitted": {key: pack(value, key, arrays) for key, value in fitted.items()},
    }
    if Path(path).is_dir():
        raise ValueError(f"`path` must be a file to write, such as fit.npz; {path} is a folder.")
    with hold(Path(path)):
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
            f"{path} is a folder, but not a run folder: it must hold run.json and "
            "factorization.npz. Name a run folder, or a file of manifactor.save."
        )
    damage = path, "is not a whole manifactor archive", "Write one with manifactor.save."
    with _refuse(*damage):
        manifest, arrays = _read(path)
        if manifest["format"] != FORMAT:
            raise KeyError("format")
        version, written_by = manifest["version"], manifest["written_by"]
    require_version(path, version, written_by, "archive version")
    with _refuse(*damage):
        fit = _read_fit(renewed(manifest, version), arrays)
    with _refuse(*damage, errors=(ValueError,)):  # a parameter that no fit accepts
        fit.restore()
    return fit


@contextmanager
def _refuse(path: Path, what: str, advice: str, *, errors=MALFORMED) -> Iterator[None]:
    """Say of a file that is not as it was written what is wrong, where that is known in words."""
    try:
        yield
    except errors as error:
        reason = ""
        if isinstance(error, BrokenRecord | ArrayFileError):
            # Of a damaged file, what its reader said.
            reason = f" ({first_sentence(error.__cause__ or error).removeprefix(f'{path} ')})"
        raise ValueError(f"{path} {what}{reason}. {advice}") from error


def _read(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the manifest and the arrays of an archive; sizes are checked first."""
    with open_archive(path) as archive:
        arrays = archive.read()
    return json.loads(arrays["manifest"].tobytes()), arrays


def _read_fit(manifest: dict, stored) -> Any:
    """Return the estimator of a manifest, with what it fitted."""
    fit = ESTIMATORS[manifest["estimator"]]()
    for name in fit.get_params(deep=False).keys() & manifest["parameters"].keys():
        value = manifest["parameters"][name]
        setattr(fit, name, tuple(value) if isinstance(value, list) else value)
    for name, tree in manifest["fitted"].items():
        if name in FITTED:
            setattr(fit, name, _check(tree, stored, FITTED[name], name))
    main = "diffusion_" if type(fit) is DiffusionMap else "factorization_"
    if getattr(fit, main, None) is None:
        raise BrokenRecord("the estimator was not fitted")
    return fit


def write_tree(path: Path, value) -> None:
    """Write records, arrays and plain values, nested in tuples, to one .npz file."""
    arrays: dict[str, np.ndarray] = {}
    manifest = {"version": ARCHIVE_VERSION, "value": pack(value, "value", arrays)}
    _write(path, manifest, arrays)


def read_tree(path: Path, kind: Any = Any):
    """Return what `write_tree` wrote; refuse what is not of this type."""
    advice = "Remove it, and what it holds is computed again."
    with _refuse(path, "is damaged, or of another version", advice):
        manifest, arrays = _read(path)
        if manifest["version"] != ARCHIVE_VERSION:
            raise BrokenRecord("it has another version")
        return _check(manifest["value"], arrays, kind, "value")


def _write(path: Path, manifest: dict, arrays: dict[str, np.ndarray]) -> None:
    arrays["manifest"] = np.frombuffer(json.dumps(manifest, default=_plain).encode(), np.uint8)
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def _plain(value):
    """Return a value for JSON; what lives in memory only becomes the default."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return "auto" if hasattr(value, "transform") else None


def require_version(path: Path, version: object, written_by: str, what: str = "version") -> None:
    """Refuse a file of a version that this release does not read."""
    if version not in READABLE_VERSIONS:
        raise ValueError(
            f"{path} has {what} {version}; this release reads versions {OLDEST_VERSION} to "
            f"{ARCHIVE_VERSION}. Read it with manifactor {written_by}, or fit again."
        )


def is_run(folder: Path) -> bool:
    """Return whether this is a run folder."""
    return (folder / "run.json").is_file() and (folder / "factorization.npz").is_file()


# Pieces of a long fit, in a folder beside the future run, from which `--resume` goes on.

KEY = "fit.key"  # the file that tells the fit, by its options and inputs


class CheckpointWarning(UserWarning):
    """A piece could not be written; the fit continues without."""


class Checkpoints(Stages):
    """Stages whose finished pieces are files of a folder; what it holds is not made again."""

    def __init__(self, folder: Path, key: str = "", callback: Callback | None = None) -> None:
        """Refuse a folder of another fit, which has another key."""
        super().__init__(callback)
        self.folder, self._key, self._counts = folder, key, Counter[str]()
        self._writes = True
        held = {path.name for path in folder.glob("[!.]*")}
        if held and not (KEY in held and (folder / KEY).read_text(encoding="utf-8") == key):
            raise ValueError(
                f"the checkpoints in {folder} must belong to this fit; they are of other inputs or "
                "settings. Repeat the command that was stopped with all its options, or leave "
                "--resume out and start afresh."
            )

    def open(self) -> Path:
        """Return the folder, which is made if necessary."""
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / KEY).is_file():
            write_bytes(self.folder / KEY, self._key.encode())
        return self.folder

    def pieces(
        self,
        name: str,
        work: Work,
        jobs: Jobs,
        *,
        workers: Workers = Here(),
        report: Report = ignored,
    ) -> Iterator[Any]:
        """Yield the results of all jobs, in input order; those that are computed are written."""
        self._counts[name] += 1  # a stage may be repeated, with other samples
        name = f"{name} {self._counts[name]}"
        paths = [self.folder / f"{name}.{number:06d}.npz" for number in range(len(jobs))]
        known = {path for path in paths if path.is_file()}
        missing = [job for path, job in zip(paths, jobs, strict=True) if path not in known]
        done = len(known) / max(1, len(jobs))
        if known:
            report(done)
        made = workers.map(work, missing, report=lambda part: report(done + (1 - done) * part))
        for path in paths:
            yield read_tree(path) if path in known else self._written(path, next(made))
        yield from made  # which ends

    def _written(self, path: Path, result: Result) -> Result:
        """Write a result, if that is possible, and return it."""
        try:
            if self._writes:
                self.open()
                write_tree(path, result)
        except (OSError, ValueError) as error:  # a full disk, or a folder that is gone
            self._writes = False
            if not any(self.folder.glob("*.npz")):
                remove(self.folder)
            warn_caller(
                f"the stage {path.stem!r} could not be written for --resume: {error}. "
                "The fit continues without.",
                CheckpointWarning,
            )
        return result


def require_checkpoints(folder: Path) -> None:
    """Refuse to resume a fit that has left nothing."""
    if not folder.is_dir():
        raise ValueError(f"no checkpoint to resume in {folder}. Leave --resume out.")
