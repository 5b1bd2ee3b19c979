"""A fit on disk: one .npz of arrays and a JSON manifest.

No pickle is written or read; loading never executes anything.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.array_files import ArrayFileError, ArrayFileSettings, open_archive
from manifactor._support.errors import first_sentence
from manifactor._support.files import write_whole
from manifactor._support.memory import available_memory
from manifactor._support.temporaries import clear_leftovers
from manifactor._support.version import __version__
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.runs.record_rules import BOOK, FittedAttributes
from manifactor.runs.rules import BrokenRule
from manifactor.runs.tree import ARCHIVE_VERSION, pack, plain_parameter, unpack

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
