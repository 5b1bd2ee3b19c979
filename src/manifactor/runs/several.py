"""Several inputs or views fitted side by side, with a table of the results."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from manifactor.runs.task import Task

COLUMNS = ("view", "particles", "verdict", "factors", "problem")


def fit_side_by_side(tasks: Sequence[Task], folder: Path) -> list[dict[str, str]]:
    """Fit tasks on all cores, each into its own run folder inside `folder`.

    Returns
    -------
    list of dict
        The rows of a table, which is also written to views.csv.
    """
    names = distinct_names(tasks)
    rows = Parallel(n_jobs=-1)(
        delayed(_fit_row)(task, folder / name)
        for task, name in zip(tasks, names, strict=True)
    )
    if all(row["verdict"] == "failed" for row in rows):
        first = rows[0]
        raise ValueError(
            f"no view could be fitted; the first, {first['view']}: {first['problem']}"
        )
    with (folder / "views.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return rows


def distinct_names(tasks: Sequence[Task]) -> list[str]:
    """Return a name for every task; in RELION every job's file has the same one."""
    names = [task.name for task in tasks]
    if len(set(names)) < len(names):
        names = [f"{task.path.resolve().parent.name}_{task.name}" for task in tasks]
    if len(set(names)) < len(names):
        raise ValueError(
            f"the inputs must have different names; got {', '.join(names)}. "
            "Rename them."
        )
    return names


def _fit_row(task: Task, out: Path) -> dict[str, str]:
    """Return one row of the table; a view that fails does not stop the others."""
    try:
        with warnings.catch_warnings(action="ignore"):
            fit, record = task.fit(task.read(), out)
    except (ValueError, OSError, MemoryError) as error:
        problem = " ".join(str(error).split())
        values = (out.name, "", "failed", "", problem)
    else:
        shapes = " x ".join(factor.topology for factor in fit.factors_)
        meanings = [found["meaning"] for found in record.get("confounders", [])]
        problems = "; ".join(meaning for meaning in meanings if meaning)
        values = (out.name, str(record["n_samples"]), fit.verdict_, shapes, problems)
    return dict(zip(COLUMNS, values, strict=True))
