"""A fit on disk: one .npz of arrays and a JSON manifest.

No pickle is written or read; loading never executes anything.
"""

import json
from pathlib import Path

import numpy as np

from manifactor._support.files import write_whole
from manifactor._support.version import __version__
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.runs.tree import ARCHIVE_VERSION, pack, plain_parameter, unpack

FORMAT = "manifactor"
ESTIMATORS = {cls.__name__: cls for cls in (DiffusionMap, ManifoldFactorizer)}
# What an archive may set on an estimator, beside its parameters. Anything else would
# hide a parameter or a method.
FITTED = (
    "diffusion_",
    "factorization_",
    "forecast_",
    "timings_",
    "rows_",
    "n_features_in_",
    "feature_names_in_",
)


def save(fit, path) -> None:
    """Write a fitted DiffusionMap or ManifoldFactorizer to one .npz file.

    The file is written whole or not at all. A `neighbors` object of the caller's own, a
    RandomState and the `callback` are not written: after loading, a fit with such a
    search has all its results but cannot place new samples.
    """
    name = type(fit).__name__
    fitted = {
        key: vars(fit)[key] for key in FITTED if key in getattr(fit, "__dict__", {})
    }
    if name not in ESTIMATORS or "timings_" not in fitted:
        raise ValueError(
            f"`fit` must be one of {sorted(ESTIMATORS)} after fit(); got {fit!r}."
        )
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
        raise ValueError(
            f"`path` must be a file to write, such as fit.npz; {path} is a folder."
        )
    _write(Path(path), manifest, arrays)


def load(path):
    """Return the fitted estimator that `save` wrote, or the one in a run folder."""
    path = Path(path)
    path = path / "factorization.npz" if is_run(path) else path
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder, but no run folder: it must hold run.json and "
            "factorization.npz. Name a run folder, or a file of manifactor.save."
        )
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            manifest = json.loads(stored["manifest"].tobytes())
            _require_version(manifest, path)
            return _restored(manifest, stored)
    except (OSError, ArchiveVersionError):
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is not a whole manifactor archive. Write one with manifactor.save."
        ) from error


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


def _restored(manifest: dict, stored):
    """Return the estimator of a manifest, ready to place new samples."""
    parameters = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in manifest["parameters"].items()
    }
    fit = ESTIMATORS[manifest["estimator"]](**parameters)
    for name, value in manifest["fitted"].items():
        if name not in FITTED:
            raise KeyError(name)
        setattr(fit, name, unpack(value, stored))
    fit.restore()
    return fit


def write_tree(path: Path, value) -> None:
    """Write records, arrays and plain values, nested in tuples, to one .npz file."""
    arrays: dict[str, np.ndarray] = {}
    manifest = {"version": ARCHIVE_VERSION, "value": pack(value, "value", arrays)}
    _write(path, manifest, arrays)


def read_tree(path: Path):
    """Return what `write_tree` wrote."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            manifest = json.loads(stored["manifest"].tobytes())
            if manifest["version"] != ARCHIVE_VERSION:
                raise KeyError("version")
            return unpack(manifest["value"], stored)
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is damaged, or of another version. Remove it, and what it holds "
            "is computed again."
        ) from error


def _write(path: Path, manifest: dict, arrays: dict[str, np.ndarray]) -> None:
    text = json.dumps(manifest).encode()
    arrays["manifest"] = np.frombuffer(text, dtype=np.uint8)
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def is_run(folder: Path) -> bool:
    """Return whether this is a run folder."""
    return (folder / "run.json").is_file() and (folder / "factorization.npz").is_file()
