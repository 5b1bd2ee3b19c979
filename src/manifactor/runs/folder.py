"""A run on disk: a folder with the fit, the coordinates of all samples, and a record."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy
import sklearn

from manifactor._support import __version__
from manifactor._support.files import is_half_replaced, require_place, whole_folder
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.judging.criteria import CRITERIA
from manifactor.factoring.judging.evidence import Evidence
from manifactor.runs.archive import ARCHIVE_VERSION, FORMAT, is_run, load, save, write_tree
from manifactor.runs.confounders import SIGNIFICANCE
from manifactor.runs.places import (
    Place,
    PlacedRows,
    damaged,
    fitted_places,
    from_table,
    table_as_csv,
)


def run_evidence(fit: ManifoldFactorizer, record: Mapping) -> Evidence:
    """Return the evidence of a fit, with more tests for particles of all views.

    One is failed where coordinates depend on the viewing direction: then factors are not
    independent of it. Another is failed where volumes of some views are not those of views far from
    them: then a coordinate does not mean the same in all views.
    """
    evidence = fit.evidence_
    explained = {
        found["factor"]: found["r2"] if found["p"] <= SIGNIFICANCE else 0.0
        for found in record.get("confounders", [])
        if found["name"] == "view" and found["factor"] > 0
    }
    if "all_views" in record and explained:
        views = CRITERIA["views"]
        failed = [f"factor {k} (R^2 {r2:.2f})" for k, r2 in explained.items() if r2 > views.limit]
        test = views.judge(max(explained.values()), dependent=", ".join(failed))
        evidence = evidence.with_test(test)
    shares = enumerate(record.get("all_views", {}).get("consistency", []), start=1)
    known = {number: share for number, share in shares if share is not None}
    if known:
        drift = CRITERIA["consistency"]
        failed = [f"factor {k} ({share:.2f})" for k, share in known.items() if share < drift.limit]
        test = drift.judge(min(known.values()), drifting=", ".join(failed))
        evidence = evidence.with_test(test)
    return evidence


def write_run(
    fit: ManifoldFactorizer,
    folder,
    *,
    record: dict,
    places: Sequence[Place] | None = None,
    rows: np.ndarray | None = None,
    files: Mapping[str, object] | None = None,
    parts: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Write a run folder: factorization.npz, coordinates.csv and run.json."""
    folder = Path(folder)
    require_new_run(folder, overwrite=overwrite)
    # JSON knows neither nan nor inf.
    text = json.dumps(_summary(fit, record), default=str)
    text = json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2) + "\n"
    with whole_folder(folder) as beside:
        save(fit, beside / "factorization.npz")
        if parts is None:
            places = fitted_places(fit) if places is None else places
            rows = np.arange(len(places[0])) if rows is None else rows
            (beside / "coordinates.csv").write_bytes(table_as_csv(places, rows))
        for name, content in (files or {}).items():
            if isinstance(content, bytes):
                (beside / name).write_bytes(content)
            else:
                write_tree(beside / name, content)
        (beside / "run.json").write_text(text, encoding="utf-8")
        # Last: an error before leaves them where --resume finds them.
        if parts is not None:
            parts.rename(beside / parts.name)


def _summary(fit: ManifoldFactorizer, record: dict) -> dict:
    """Return what run.json holds."""
    evidence = run_evidence(fit, record)
    return {
        "format": f"{FORMAT} run",
        "version": ARCHIVE_VERSION,
        "n_samples": len(fit.spectrum_.weights),
        **record,
        "verdict": evidence.verdict,
        "sense": evidence.sense,
        "reason": evidence.reason,
        "answer": evidence.answer,
        "advice": evidence.advice,
        "evidence": str(evidence),
        "tests": [asdict(test) for test in evidence.tests],
        "factors": [{"topology": f.topology, "dimension": f.dimension} for f in fit.factors_],
        "agreement": evidence.agreement,
        "reliability": evidence.reliability,
        "leakage": evidence.leakage.tolist(),
        "seconds": fit.timings_,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    packages = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    return {"manifactor": __version__, **packages}


def require_new_run(folder: Path, *, overwrite: bool) -> None:
    """Raise ValueError for a folder that cannot be written, before any work is done."""
    if os.path.lexists(folder) and not (overwrite and is_run(folder)):
        hint = "Choose another --out, or pass --overwrite."
        if not is_run(folder):
            hint = "It is not a run folder; choose another --out."
        raise ValueError(f"the output folder must not exist yet; {folder} does. {hint}")
    require_place(folder, remedy="Choose another --out.")


def read_run(folder) -> tuple[dict, ManifoldFactorizer]:
    """Return the record in run.json and the fit of a run folder."""
    folder = Path(folder)
    record, fit = read_record(folder), load(folder / "factorization.npz")
    if not isinstance(fit, ManifoldFactorizer):
        raise ValueError(
            f"{folder / 'factorization.npz'} must hold factors; got a "
            f"{type(fit).__name__}. Fit again."
        )
    recorded = [factor["topology"] for factor in record["factors"]]
    if [factor.topology for factor in fit.factors_] != recorded:
        raise ValueError(
            f"{folder / 'run.json'} and factorization.npz do not have the same factors. Fit again."
        )
    return record, fit


def read_record(folder: Path) -> dict:
    """Return what run.json of a run folder says."""
    if not is_run(folder):
        hint = ""
        if is_half_replaced(folder):
            hint = " A command that was replacing it was killed: repeat that command."
        elif not folder.exists():
            hint = " It does not exist: check its name, or run `manifactor fit` first."
        raise ValueError(
            f"{folder} is not a run folder: it must hold run.json and factorization.npz.{hint}"
        )
    from manifactor.runs.record_form import require_form  # only those who read a run need pydantic

    path = folder / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != f"{FORMAT} run":
            raise ValueError("it is not a record of a run")
        version, versions = record["version"], record["versions"]
        if version == ARCHIVE_VERSION or not isinstance(versions, dict):
            require_form(record)
    except KeyError as error:
        raise damaged(path, f"it lacks {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(path, error) from error
    if version != ARCHIVE_VERSION:
        raise ValueError(
            f"{path} has version {version}; this release reads version {ARCHIVE_VERSION}. "
            f"Read it with manifactor {versions.get(FORMAT, 'of that time')}, or fit again."
        )
    return record


def read_places(folder) -> PlacedRows:
    """Return the numbers of a run's samples in the input, and their places."""
    folder = Path(folder)
    record = read_record(folder)
    path = folder / "coordinates.csv"
    if not path.is_file():
        raise ValueError(f"{path} is missing. Fit again.")
    try:
        with path.open(encoding="utf-8") as file:
            header = file.readline().strip().split(",")
        columns = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except ValueError as error:
        # What follows the semicolon is advice for those who call loadtxt.
        raise damaged(path, str(error).partition(";")[0]) from error
    if len(columns) != record["n_samples"]:
        raise damaged(path, f"it has {len(columns)} of {record['n_samples']} samples")
    topologies = [factor["topology"] for factor in record["factors"]]
    return from_table(path, header, columns, topologies)
