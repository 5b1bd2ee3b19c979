"""Inputs of `fit`, one or several: some samples are drawn and fitted, all are placed."""

import csv
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from manifactor._support import __version__
from manifactor._support.errors import one_line, shell_line
from manifactor._support.files import newest_change, real_path, remove, temporary, write_bytes
from manifactor._support.parameters import Choice, choices_as_json, given
from manifactor._support.stages import Stages, fingerprint
from manifactor._support.workers import Here, Workers
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import draw_count, draw_rows
from manifactor.operators.neighbors import chosen
from manifactor.runs.archive import FORMAT, Checkpoints, is_run, load, other_fit, save
from manifactor.runs.cost import Cost, PartCost, cores_of_worker, cost_of_pieces, forecast_input
from manifactor.runs.folder import (
    PARTS_FOLDER,
    InputState,
    last_changed,
    place_in_parts,
    read_record,
    warn_of_changes,
    write_run,
)
from manifactor.runs.options import BESIDE, OF_IMAGES, OF_MOVES, OF_PARTICLES, FitOptions
from manifactor.runs.places import Place, all_places, fitted_places, loadings_as_csv
from manifactor.runs.sources import Input, Opened, open_input

# Numbers of a table whose loadings are written: 6,000 columns of 20,000 samples take some seconds.
MOST_LOADED = 120_000_000


class FitPlan(NamedTuple):
    """Which samples are fitted, with which parameters, and why."""

    rows: np.ndarray  # the samples to fit, ascending; with moves, as many are drawn by the fit
    factorizer: ManifoldFactorizer  # not fitted yet
    choices: dict[str, Choice]


def plan_fit(samples: Opened, options: FitOptions) -> FitPlan:
    """Return which samples to fit and how, before anything is computed."""
    rows, how_many = _draw(samples, options)
    parameters = {**options.parameters, "random_state": options.seed}
    suited, choices = samples.settings(len(rows), parameters)
    factorizer = ManifoldFactorizer(**{**parameters, **suited})
    return FitPlan(rows, factorizer, {"samples fitted": how_many, **choices})


def _draw(samples: Opened, options: FitOptions) -> tuple[np.ndarray, Choice]:
    """Return the samples to fit, ascending, and why so many."""
    count, asked, (most, why) = len(samples.rows), options.fit_samples, samples.most
    rows = np.arange(count)
    if samples.table is None:
        count = draw_count(most if asked == "auto" else asked, len(rows))
        if count == len(rows):
            every = Choice("all", f"there are no more than {most:,}")
            return rows, every if asked == "auto" else given("all")
        rows = draw_rows(len(rows), count, np.random.default_rng(options.seed))
    shown = f"{count:,} of {samples.n_samples:,}"
    return rows, Choice(shown, why) if asked == "auto" else given(shown)


def fit_input(
    samples: Input, plan: FitPlan, *, stages: Stages | None = None, callback=None
) -> tuple[ManifoldFactorizer, tuple[Place, ...]]:
    """Return a factorizer fitted to the planned samples, and the places of all."""
    fit = plan.factorizer.set_params(callback=callback)
    moves: dict = {"fit_samples": len(plan.rows), **samples.moves} if samples.moves else {}
    X = samples.samples if moves else chosen(samples.samples, plan.rows)
    if samples.columns is not None and samples.columns.image is not None:
        X = X.reshape(len(X), *samples.columns.image)
    fit.fit(X, noise=samples.noise, stages=stages, column_names=samples.labels, **moves)
    everything = len(plan.rows) == len(samples.samples)
    return fit, fitted_places(fit) if everything else all_places(fit, samples.samples)


def loadings_file(given: Input, plan: FitPlan, fit: ManifoldFactorizer) -> dict[str, bytes]:
    """Return the file of the loadings of a table's columns, by its name; nothing for images."""
    rows = plan.rows if fit.rows_ is None or given.table is not None else fit.rows_
    if given.columns is None or len(rows) * given.samples.shape[1] > MOST_LOADED:
        return {}
    fitted = chosen(given.samples, rows)
    return {"loadings.csv": loadings_as_csv(fit.loadings(fitted, column_names=given.labels))}


def _fitted_once(given: Input, plan: FitPlan, archive: Path, key: str, **how) -> ManifoldFactorizer:
    """Return the fit of an archive, which a key tells to be this one; else fit and write it."""
    known = archive.with_suffix(".key")
    if known.is_file() and archive.is_file():
        if known.read_text(encoding="utf-8") != key:
            raise other_fit(archive.parent)
        return load(archive)
    fit = fit_input(given, plan, **how)[0]
    fit.rows_ = given.rows
    # Parts of another fit must not be taken for those of this one.
    shutil.rmtree(archive.with_name(PARTS_FOLDER), ignore_errors=True)
    archive.unlink(missing_ok=True)
    write_bytes(known, key.encode())
    save(fit, archive)
    return fit


@dataclass(frozen=True)
class Task:
    """One input of `fit`, seen from one direction if there are several, and how to treat it."""

    path: Path
    options: FitOptions = field(default_factory=FitOptions)
    view: tuple[float, float] | None = None
    further: tuple[Path, ...] = ()  # other trajectories, which are fitted together with the input

    @property
    def name(self) -> str:
        """The input's name, with the view."""
        if self.view is None:
            return self.path.stem
        rot, tilt = self.view
        return f"{self.path.stem}_rot{rot:g}_tilt{tilt:g}"

    @property
    def arguments(self) -> list[str]:
        """Arguments of `manifactor` that repeat this fit, without the defaults."""
        return self.options.arguments((self.path, *self.further), self.view)

    @property
    def reproduce(self) -> str:
        """The command that repeats this fit, from any folder."""
        return shell_line("manifactor", *self.arguments)

    @property
    def anywhere(self) -> "Task":
        """The same task for a process that may work in another folder."""
        path, *further = (path.absolute() for path in (self.path, *self.further))
        return Task(path, self.options.anywhere, self.view, tuple(further))

    def open(self) -> Opened:
        """Return the samples of a table, or what is not read yet."""
        return open_input(self.path, self.options, self.view, self.further)

    def read(self, opened: Opened | None = None) -> Input:
        """Return the samples of the input, which may be open, or those drawn of a large table."""
        return (opened or self.open()).read(np.random.default_rng(self.options.seed))

    def forecast(self, opened: Opened, *, n_workers: int = 1, n_cores: int | None = None) -> Cost:
        """Return what the fit costs, from reading to writing."""
        plan = plan_fit(opened, self.options)
        shape = len(plan.rows), opened.n_columns
        fitting = plan.factorizer.forecast_shape(*shape, n_cores=n_cores)
        return forecast_input(opened, fitting, shape[0], n_workers=n_workers, n_cores=n_cores)

    def fit(
        self,
        given: Input,
        out: Path,
        *,
        overwrite: bool = False,
        stages: Stages | None = None,
        callback=None,
        workers: Workers = Here(),
    ) -> tuple[ManifoldFactorizer, dict]:
        """Fit the samples and write the run folder.

        Samples of a large table are placed by `workers`, who see it, and the folder of `out`, by
        the same paths.
        """
        given.require_values()
        beside = self.options.values(*BESIDE).values()
        before = InputState([self.path, *self.further, *beside])
        plan = plan_fit(given, self.options)
        if given.table is not None:
            how = {"stages": stages or Stages(keeps=False), "callback": callback}
            return self._fit_in_parts(given, plan, out, before, workers, overwrite, **how)
        fit, places = fit_input(given, plan, stages=stages, callback=callback)
        files = loadings_file(given, plan, fit)
        rng = np.random.default_rng(self.options.seed)
        more, others = given.files_after(places, before.changed, rng)
        record = self._record(given, plan, fit, before) | more
        warn_of_changes(before)
        write_run(
            fit,
            out,
            record=record,
            places=places,
            rows=given.rows,
            names=given.names,
            files=files | others,
            overwrite=overwrite,
        )
        return fit, record

    def _fit_in_parts(
        self,
        given: Input,
        plan: FitPlan,
        out: Path,
        before: InputState,
        workers: Workers,
        overwrite: bool,
        *,
        stages: Stages,
        callback,
    ) -> tuple[ManifoldFactorizer, dict]:
        """Fit what was drawn of a table, place all in parts, and write the run folder."""
        table = given.table
        assert table is not None
        state = (given.rows, table.n_samples, newest_change(table.path))
        key = fingerprint(__version__, self.arguments, *state)
        # Checkpoints keep the parts after a failure. Others lie beside the future run folder, so
        # that workers can read and write them.
        beside = temporary(out, folder=True)
        with nullcontext(stages.folder) if isinstance(stages, Checkpoints) else beside as work:
            work.mkdir(exist_ok=True)
            archive, parts = work / "fit.npz", work / PARTS_FOLDER
            fit = _fitted_once(given, plan, archive, key, stages=stages, callback=callback)
            timing = stages.start(callback)

            def report(done: float) -> None:
                timing.report("places", min(done, 0.999))

            with timing.timed("places"):
                n_parts = place_in_parts(archive, table, parts, workers=workers, report=report)
            fit.timings_ = {**fit.timings_, **timing.timings}
            record = {**self._record(given, plan, fit, before), "parts": n_parts}
            warn_of_changes(before)
            files = loadings_file(given, plan, fit)
            write_run(fit, out, record=record, files=files, parts=parts, overwrite=overwrite)
        return fit, record

    def _record(
        self, given: Input, plan: FitPlan, fit: ManifoldFactorizer, before: InputState
    ) -> dict:
        """Return what run.json says of the input, the fit, and what was chosen."""
        options = self.options
        further = [str(path.resolve()) for path in self.further]
        moves = {"moves": options.anywhere.values(*OF_MOVES), "further": further}
        return {
            "command": "fit",
            "input": str(self.path.resolve()),
            "seed": options.seed,
            "view": self.view,
            "width": options.width,
            "images": options.values(*OF_IMAGES),
            "particle_choice": options.anywhere.values(*OF_PARTICLES),
            "arguments": options.parameters,
            "fit_samples": options.fit_samples,
            "reproduce": self.reproduce,
            **(moves if given.moves else {}),
            **given.record,
            "n_samples": given.n_samples,
            "n_fitted": len(fit.spectrum_.weights),
            "neighbors": {
                "search": fit.neighbors_,
                "count": fit.n_neighbors_,
                "recall": fit.recall_,
            },
            **before.record,
            # What the plan says comes first.
            "choices": choices_as_json({**plan.choices, **fit.choices_, **plan.choices}),
        }


# Several inputs or views fitted side by side, with a table of the results.

TABLE = "views.csv"
FAILED = "failed"


class Row(NamedTuple):
    """A line of the table: an input or view."""

    view: str
    particles: str
    verdict: str
    factors: str
    problem: str


def named_tasks(tasks: Sequence[Task]) -> dict[str, Task]:
    """Return tasks by distinct names; in RELION every job's file has the same one."""
    # Hidden runs are unfinished ones.
    names = [task.name.lstrip(".") for task in tasks]
    if len(set(names)) < len(names):
        folders = [real_path(task.path).parent.name.lstrip(".") for task in tasks]
        names = [f"{folder}_{name}" for folder, name in zip(folders, names, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError(
            f"the inputs must have different names; got {', '.join(names)}. Rename them."
        )
    return dict(zip(names, tasks, strict=True))


def finished_runs(folder: Path) -> list[Path]:
    """Return the runs that a folder of unfinished work holds."""
    return [path for path in sorted(folder.glob("*")) if is_run(path)]


def finished_rows(tasks: Mapping[str, Task], folder: Path) -> dict[str, Row]:
    """Return the rows of the tasks whose runs a folder already holds."""
    clear_away(folder)
    # A command that was stopped at its very end has left the table, too.
    (folder / TABLE).unlink(missing_ok=True)
    rows = {}
    # Hidden files that could not be removed are none of ours.
    for path in sorted(folder.glob("[!.]*")):
        task = tasks.get(path.name)
        if task is None or not _is_of(task, path):
            raise other_fit(folder, f"{path.name} is of other inputs or settings")
        rows[path.name] = _row(path)
    return rows


def clear_away(folder: Path) -> None:
    """Remove what is hidden: unfinished runs of killed workers, files of a system."""
    for path in folder.glob(".*"):
        remove(path)


def fit_side_by_side(
    tasks: Mapping[str, Task], folder: Path, *, workers: Workers, report: Callable[[float], None]
) -> list[Row]:
    """Fit the tasks that a folder has no runs of, each into a run folder inside it.

    A task that fails does not stop the others. What workers have finished is kept.
    """
    rows = finished_rows(tasks, folder)
    further = [name for name in tasks if name not in rows]
    jobs = [(tasks[name].anywhere, folder.absolute() / name) for name in further]
    for found in workers.outcomes(_fit_row, jobs, report=report):
        name = further[found.index]
        rows[name] = found.result if found.error is None else _failed(name, found.error)
    clear_away(folder)
    ordered = [rows[name] for name in tasks]
    if all(row.verdict == FAILED for row in ordered):
        first = ordered[0]
        raise ValueError(f"no view could be fitted; the first, {first.view}: {first.problem}")
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([Row._fields, *ordered])
    return ordered


def _fit_row(task: Task, out: Path) -> Row:
    """Fit a task and return its row of the table."""
    # A worker may have written the run before it was lost, or its command was stopped.
    if not _is_of(task, out):
        with warnings.catch_warnings(action="ignore"):
            task.fit(task.read(), out, overwrite=is_run(out))
    return _row(out)


def _is_of(task: Task, run: Path) -> bool:
    """Return whether a run is that of a task whose inputs have not changed."""
    if not is_run(run):
        return False
    record, written = read_record(run), newest_change(run / "run.json")
    # What belongs to the input: other files, and those inside it.
    files = (task.path if task.path.is_dir() else None, *task.options.values(*BESIDE).values())
    return (
        record.get("reproduce") == task.reproduce
        and record.get("input_changed") == last_changed(task.path)
        and record["versions"].get(FORMAT) == __version__
        and all(newest_change(Path(path)) <= written for path in files if path is not None)
    )


def _row(run: Path) -> Row:
    """Return the row of a run."""
    record = read_record(run)
    meanings = [found["meaning"] for found in record.get("confounders", [])]
    return Row(
        run.name,
        str(record["n_samples"]),
        record["verdict"],
        " x ".join(factor["topology"] for factor in record["factors"]),
        "; ".join(filter(None, meanings)),
    )


def _failed(name: str, error: Exception) -> Row:
    """Return the row of a task that failed."""
    problem = one_line(error)
    # Messages of what the library raises for bad input need no name.
    if not isinstance(error, ValueError | OSError | MemoryError) or not problem:
        problem = f"{type(error).__name__}: {problem}"
    return Row(name, "", FAILED, "", problem)


def forecast_side_by_side(tasks: Sequence[Task], *, n_workers: int) -> Cost:
    """Return what it costs to fit tasks side by side, each with one worker."""
    pieces = []
    for name, task in named_tasks(tasks).items():
        cost = task.forecast(task.open(), n_cores=cores_of_worker(n_workers))
        pieces.append(PartCost(name, cost.seconds, cost.memory))
    return cost_of_pieces(pieces, n_workers=n_workers)
