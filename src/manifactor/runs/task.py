"""Inputs of `fit`, one or several: some samples are drawn and fitted, all are placed."""

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifactor._support import __version__
from manifactor._support.errors import one_line, shell_line
from manifactor._support.files import newest_change, real_path, remove, temporary
from manifactor._support.parameters import Choice, choices_as_json, given
from manifactor._support.stages import Callback, Stages
from manifactor._support.workers import Here, Workers
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import draw_count, draw_rows
from manifactor.operators.neighbors import chosen
from manifactor.runs.archive import Checkpoints, is_run, load, save
from manifactor.runs.cost import PROCESS_BYTES, Cost, cost_of_input
from manifactor.runs.folder import (
    PARTS_FOLDER,
    InputState,
    place_in_parts,
    read_record,
    warn_of_changes,
    write_run,
)
from manifactor.runs.options import BESIDE, OF_IMAGES, OF_MOVES, OF_PARTICLES, FitOptions
from manifactor.runs.places import Place, all_places, fitted_places, loadings_as_csv
from manifactor.runs.sources import Input, Opened, open_input
from manifactor.tables.stores import StoredTable

# Numbers of a table whose loadings are written: 6,000 columns of 20,000 samples take some seconds.
MOST_LOADED = 120_000_000


class FitPlan(NamedTuple):
    """Which samples are fitted, with which parameters, and why."""

    rows: np.ndarray  # the samples to fit, ascending; with moves, as many are drawn by the fit
    factorizer: ManifoldFactorizer  # not fitted yet
    choices: dict[str, Choice]
    candidate: int = 0  # number of what is returned, in all that is proposed


def plan_fit(samples: Opened, options: FitOptions) -> FitPlan:
    """Return which samples to fit and how, before anything is computed."""
    rows, how_many = _draw(samples, options)
    parameters = {**options.parameters, "random_state": options.seed}
    suited, choices = samples.settings(len(rows), parameters)
    factorizer = ManifoldFactorizer(**{**parameters, **suited})
    choices = {"samples fitted": how_many, **choices}
    return FitPlan(rows, factorizer, choices, options.candidate)


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
    samples: Input, plan: FitPlan, *, callback: Callback | None = None
) -> tuple[ManifoldFactorizer, tuple[Place, ...]]:
    """Return a factorizer fitted to the planned samples, and the places of all."""
    fit = plan.factorizer.set_params(callback=callback)
    moves: dict = {"fit_samples": len(plan.rows), **samples.moves} if samples.moves else {}
    X = samples.samples if moves else chosen(samples.samples, plan.rows)
    if samples.columns is not None and samples.columns.image is not None:
        X = X.reshape(len(X), *samples.columns.image)
    fit.fit(X, noise=samples.noise, column_names=samples.labels, **moves)
    fit = fit.choose(plan.candidate) if plan.candidate else fit
    everything = len(plan.rows) == len(samples.samples)
    return fit, fitted_places(fit) if everything else all_places(fit, samples.samples)


def loadings_file(given: Input, plan: FitPlan, fit: ManifoldFactorizer) -> dict[str, bytes]:
    """Return the file of the loadings of a table's columns, by its name; nothing for images."""
    rows = plan.rows if fit.rows_ is None or given.table is not None else fit.rows_
    if given.columns is None or len(rows) * given.samples.shape[1] > MOST_LOADED:
        return {}
    fitted = chosen(given.samples, rows)
    return {"loadings.csv": loadings_as_csv(fit.loadings(fitted, column_names=given.labels))}


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

    @property
    def key(self) -> str:
        """A text that differs where options or inputs do."""
        files = (self.path, *self.further, *self.options.values(*BESIDE, "cluster_of").values())
        changes = [newest_change(Path(file)) for file in files if file is not None]
        return "\n".join(map(str, (__version__, *self.arguments, *changes)))

    def forecast(self, opened: Opened, *, n_workers: int = 1) -> Cost:
        """Return the memory that the fit takes; refuse more than there is."""
        plan = plan_fit(opened, self.options)
        n_fitted = len(plan.rows)
        fitting = plan.factorizer.forecast_shape(n_fitted, opened.n_columns)
        return cost_of_input(opened, fitting, n_fitted, n_workers=n_workers)

    def fit(
        self,
        given: Input,
        out: Path,
        *,
        overwrite: bool = False,
        stages: Stages | None = None,
        workers: Workers = Here(),
    ) -> tuple[ManifoldFactorizer, dict]:
        """Fit the samples and write the run folder.

        Samples of a large table are placed by `workers`, who see it, and the folder of `out`, by
        the same paths.
        """
        given.require_values()
        before = InputState([self.path, *self.further, *self.options.values(*BESIDE).values()])
        plan, stages = plan_fit(given, self.options), stages or Stages()
        write = partial(self._write, given, plan, before, out, overwrite=overwrite)
        if given.table is not None:
            return _fit_in_parts(given, given.table, plan, out, stages, workers, write)
        fit, places = fit_input(given, plan, callback=stages.report)
        rng = np.random.default_rng(self.options.seed)
        more, files = given.files_after(places, before.changed, rng)
        how = {"places": places, "rows": given.rows, "names": given.names}
        return write(fit, more, files=files, **how)

    def _write(
        self,
        given: Input,
        plan: FitPlan,
        before: InputState,
        out: Path,
        fit: ManifoldFactorizer,
        more: dict,
        *,
        files: Mapping[str, bytes] | None = None,
        **how: Any,
    ) -> tuple[ManifoldFactorizer, dict]:
        record = {**self._record(given, plan, fit, before), **more}
        files = {**loadings_file(given, plan, fit), **(files or {})}
        warn_of_changes(before)
        write_run(fit, out, record=record, files=files, **how)
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


def _fit_in_parts(
    given: Input,
    table: StoredTable,
    plan: FitPlan,
    out: Path,
    stages: Stages,
    workers: Workers,
    write: Callable[..., tuple[ManifoldFactorizer, dict]],
) -> tuple[ManifoldFactorizer, dict]:
    """Fit what was drawn of a table, place all in parts, and write the run folder."""
    # Checkpoints keep the parts after a failure. Others lie beside the future run folder, so that
    # workers can read and write them.
    beside = temporary(out, folder=True)
    with nullcontext(stages.open()) if isinstance(stages, Checkpoints) else beside as folder:
        archive, parts = folder / "fit.npz", folder / PARTS_FOLDER
        if archive.is_file():
            fit = load(archive)
        else:
            fit = fit_input(given, plan, callback=stages.report)[0]
            fit.rows_ = given.rows
            save(fit, archive)

        def report(done: float) -> None:
            stages.report("places", min(done, 0.999))

        with stages.timed("places"):
            count = place_in_parts(archive, table, parts, workers=workers, report=report)
        fit.timings_ = {**fit.timings_, **stages.timings}
        return write(fit, {"parts": count}, parts=parts)


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
    rows, names = {}, list(tasks)
    jobs = [(task.anywhere, folder.absolute() / name) for name, task in tasks.items()]
    for found in workers.outcomes(_fit_row, jobs, report=report):
        name = names[found.index]
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
    """Fit a task, unless it was done, and return its row of the table."""
    if not is_run(out):
        with warnings.catch_warnings(action="ignore"):
            task.fit(task.read(), out)
    return _row(out)


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
    most = max(task.forecast(task.open()).memory for task in tasks)
    return Cost(PROCESS_BYTES, 0.0, min(n_workers, len(tasks)), most)
