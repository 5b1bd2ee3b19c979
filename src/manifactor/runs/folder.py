"""A run on disk: a folder with the fit, every sample's places, and a record of what was run."""

import json
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path

import numpy as np
import scipy
import sklearn

from manifactor._support.files import require_writable, whole_folder
from manifactor._support.version import __version__
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.archive import FORMAT, VERSION, is_run, load, save
from manifactor.runs.places import Place, fitted_places, from_table, table_as_csv

ENTRIES = {  # of run.json, where they are there, and their kind
    **dict.fromkeys(
        ("input", "command", "particles", "fingerprint", "reproduce", "input_changed"),
        str,
    ),
    **dict.fromkeys(("n_samples", "n_fitted"), int),
    **dict.fromkeys(
        ("images", "arguments", "components", "neighbors", "seconds", "versions"), dict
    ),
    **dict.fromkeys(("factors", "confounders", "leakage"), list),
}
ROWS: dict[str, dict[str, type]] = {  # what each of those in lists has
    "factors": {"topology": str},
    "confounders": {"name": str, "factor": int, "r2": Real, "p": Real, "meaning": str},
}


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
        "factors": [
            {"topology": f.topology, "dimension": f.dimension} for f in fit.factors_
        ],
        "agreement": _or_none(fit.evidence_.agreement),
        "reliability": _or_none(fit.evidence_.reliability),
        "leakage": [
            [_or_none(value) for value in row] for row in fit.evidence_.leakage
        ],
        "seconds": fit.timings_,
        "versions": versions(),
    }
    with whole_folder(folder) as beside:
        save(fit, beside / "factorization.npz")
        (beside / "coordinates.csv").write_bytes(table_as_csv(places, rows))
        for name, content in (files or {}).items():
            (beside / name).write_bytes(content)
        (beside / "run.json").write_text(
            json.dumps(summary, indent=2, default=str) + "\n", encoding="utf-8"
        )


def _or_none(value: float) -> float | None:
    """A number as JSON has it, which knows no nan."""
    return float(value) if np.isfinite(value) else None


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {
        "manifactor": __version__,
        **{m.__name__: m.__version__ for m in (np, scipy, sklearn)},
    }


def require_new_run(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot be written or that would lose something, before any work is done."""
    if folder.exists() and not (overwrite and is_run(folder)):
        hint = (
            "Choose another --out, or pass --overwrite."
            if is_run(folder)
            else "It is no run; choose another --out."
        )
        raise ValueError(f"the output folder must not exist yet; {folder} does. {hint}")
    require_writable(folder.parent)


def read_run(folder) -> tuple[dict, ManifoldFactorizer]:
    """The record in run.json and the fit of a run folder."""
    folder = Path(folder)
    record, fit = read_record(folder), load(folder / "factorization.npz")
    if not isinstance(fit, ManifoldFactorizer):
        raise ValueError(
            f"{folder / 'factorization.npz'} holds no factors but a {type(fit).__name__}. Fit again."
        )
    if [f.topology for f in fit.factors_] != [
        f["topology"] for f in record.get("factors", [])
    ]:
        raise ValueError(
            f"{folder / 'run.json'} and factorization.npz do not have the same factors. Fit again."
        )
    return record, fit


def read_record(folder: Path) -> dict:
    """What run.json of a run folder says."""
    if not is_run(folder):
        raise ValueError(
            f"{folder} is not a run folder: it must hold run.json and factorization.npz."
        )
    path = folder / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != f"{FORMAT} run" or not dict(record["versions"]):
            raise ValueError("it is no record of a run")
        version, problem = record["version"], _misshapen(record)
    except KeyError as error:
        raise ValueError(f"{path} is damaged: it lacks {error}. Fit again.") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: {' '.join(str(error).split())}. Fit again."
        ) from error
    if version != VERSION:
        raise ValueError(
            f"{path} has version {version}; this release reads version {VERSION}. Read it with manifactor "
            f"{record['versions'].get(FORMAT, 'of that time')}, or fit again."
        )
    if problem:
        raise ValueError(f"{path} is damaged: {problem}. Fit again.")
    return record


def _misshapen(record: dict) -> str:
    """What is not as `write_run` and its callers have it, "" for nothing; an entry may be missing, not another kind."""
    for name, kind in ENTRIES.items():
        if name in record and not isinstance(record[name], kind):
            return f"{name} is {type(record[name]).__name__}, not {kind.__name__}"
    for name, kinds in ROWS.items():
        for row in record.get(name, []):
            if not (
                isinstance(row, dict)
                and all(isinstance(row.get(key), kind) for key, kind in kinds.items())
            ):
                return f"{name} must each have {', '.join(kinds)}"
    components = record.get("components", {"text": ""})
    ratios, weights = (
        components.get("signal_to_noise", []),
        components.get("weights", []),
    )
    if not isinstance(components.get("text"), str) or not all(
        isinstance(n, Real) for n in [*ratios, *weights]
    ):
        return "components must have text, and numbers as signal_to_noise and weights"
    view = record.get("view") or [0.0, 0.0]
    return (
        ""
        if len(view) == 2 and all(isinstance(angle, Real) for angle in view)
        else "view must be two angles"
    )


def read_places(folder) -> tuple[np.ndarray, tuple[Place, ...]]:
    """Numbers of a run's samples in the input, and their places on each factor."""
    folder = Path(folder)
    record = read_record(folder)
    path = folder / "coordinates.csv"
    if not path.is_file():
        raise ValueError(f"{path} is missing. Fit again.")
    try:
        with path.open(encoding="utf-8") as file:
            header = file.readline().strip().split(",")
        columns = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        places = from_table(
            header, columns, [factor["topology"] for factor in record["factors"]]
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        problem = " ".join(str(error).split()).partition(";")[
            0
        ]  # what follows is for those who call loadtxt
        raise ValueError(f"{path} is damaged: {problem}. Fit again.") from error
    problem = _misplaced(columns, places, record)
    if problem:
        raise ValueError(f"{path} is damaged: {problem}. Fit again.")
    return columns[:, 0].astype(int), places


def _misplaced(columns: np.ndarray, places: Sequence[Place], record: dict) -> str:
    """What is wrong with places that were read, "" for nothing."""
    if len(columns) != record.get("n_samples", len(columns)):
        return f"it has {len(columns)} of {record['n_samples']} samples"
    if not np.isfinite(columns).all():
        return f"row {int((~np.isfinite(columns)).any(axis=1).argmax()) + 1} has NaN or inf values"
    numbers = columns[:, 0]
    if (
        (numbers % 1 != 0).any()
        or numbers.min(initial=0) < 0
        or (np.diff(numbers) <= 0).any()
    ):
        return "the numbers of the samples must be whole, from 0, and ascend"
    for number, place in enumerate(places, start=1):
        high = {"interval": 1, "circle": 360}.get(place.topology)
        if (
            high is not None
            and not 0
            <= place.coordinate.min(initial=0)
            <= place.coordinate.max(initial=0)
            <= high
        ):
            return f"places on factor {number} must lie in [0, {high}]"
    return ""
