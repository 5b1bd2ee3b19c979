"""A table too large for memory: some samples are fitted, all are placed in parts."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from manifactor._support.choices import Choice
from manifactor._support.choices import given as set_by_caller
from manifactor._support.files import write_bytes
from manifactor._support.stages import Stages
from manifactor._support.temporaries import newest_change, temporary
from manifactor._support.workers import Here, Workers
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.drawing import DrawSettings, draw_count, draw_rows
from manifactor.inputs.large import LargeInput, UnreadTable
from manifactor.inputs.stored import StoredTable
from manifactor.runs.archive import load, save
from manifactor.runs.checkpoints import Checkpoints, other_fit
from manifactor.runs.fitting import FitPlan, fit_input
from manifactor.runs.parts import FOLDER, place_in_parts

ARCHIVE, KEY = "fit.npz", "fit.json"


def open_large(
    table: StoredTable,
    *,
    settings: Mapping,
    seed: int,
    n_fitted: int | str = "auto",
    standardise: bool = False,
) -> UnreadTable:
    """Draw the samples of a table that are to be fitted; none is read yet."""
    n_samples, n_columns = table.shape
    factorizer = ManifoldFactorizer(**settings)
    count = draw_count(n_fitted, n_samples)
    factorizer.require_room(count, n_columns)
    rows = draw_rows(n_samples, count, np.random.default_rng(seed))
    return UnreadTable(table, rows, standardise)


def how_many_drawn(
    given: LargeInput, asked: int | str, *, drawing: DrawSettings = DrawSettings()
) -> Choice:
    """Return how many samples were drawn, and why."""
    count = len(given.rows)
    shown = f"{count:,} of {given.n_samples:,}"
    if asked != "auto":
        return set_by_caller(shown)
    why = f"{drawing.most:,} at most, so that a fit stays quick; the others are placed"
    return Choice(shown, why)


def table_state(table: StoredTable) -> tuple[int, int]:
    """Return numbers that change with a table: its rows, and its last change."""
    return table.n_samples, newest_change(table.path)


@contextmanager
def work_folder(out: Path, stages: Stages | None) -> Iterator[Path]:
    """Yield the folder in which the fit and the parts are kept until all are there.

    It is that of the checkpoints, which keeps them after a failure; else a temporary one beside the
    future run folder, so that workers can read and write it.
    """
    if isinstance(stages, Checkpoints):
        stages.folder.mkdir(exist_ok=True)
        yield stages.folder
        return
    with temporary(out, folder=True) as beside:
        yield beside


def fit_large(
    given: LargeInput,
    plan: FitPlan,
    *,
    work: Path,
    key: str,
    stages: Stages | None = None,
    callback=None,
    workers: Workers = Here(),
) -> tuple[ManifoldFactorizer, int]:
    """Fit the samples that were drawn, and place all samples of the table in parts."""
    fit = _kept(work, key) if _resumes(stages) else None
    if fit is None:
        fit = fit_input(given, plan, stages=stages, callback=callback)[0]
        fit.rows_ = given.rows
        _keep(fit, work, key)
    timing = (stages or Stages()).start(callback)
    with timing.timed("places"):
        n_parts = place_in_parts(
            work / ARCHIVE,
            given.table,
            work / FOLDER,
            workers=workers,
            report=lambda done: timing.report("places", min(done, 0.999)),
        )
    fit.timings_ = {**fit.timings_, **timing.timings}
    return fit, n_parts


def _resumes(stages: Stages | None) -> bool:
    return isinstance(stages, Checkpoints) and stages.resume


def _kept(work: Path, key: str) -> ManifoldFactorizer | None:
    """Return the fit of an interrupted run, if it got that far."""
    if not (work / KEY).is_file() or not (work / ARCHIVE).is_file():
        return None
    if json.loads((work / KEY).read_text(encoding="utf-8")) != key:
        raise other_fit(work)
    return load(work / ARCHIVE)


def _keep(fit: ManifoldFactorizer, work: Path, key: str) -> None:
    """Write a fit, and before it the key that tells whether it can be resumed."""
    # Parts of another fit must not be taken for those of this one.
    shutil.rmtree(work / FOLDER, ignore_errors=True)
    (work / ARCHIVE).unlink(missing_ok=True)
    write_bytes(work / KEY, json.dumps(key).encode())
    save(fit, work / ARCHIVE)
