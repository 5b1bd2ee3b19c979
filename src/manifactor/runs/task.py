"""One input of `fit`: read, fitted, and written as a run folder."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support import __version__
from manifactor._support.errors import shell_line
from manifactor._support.files import newest_change
from manifactor._support.parameters import choices_as_json
from manifactor._support.stages import Stages, fingerprint
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.checkpoints import InputState, input_state, particle_file, warn_of_changes
from manifactor.runs.confounders import confounder_records
from manifactor.runs.cost import Cost, forecast_input, n_columns
from manifactor.runs.fitting import (
    FitPlan,
    Opened,
    fit_input,
    fit_large,
    how_many_drawn,
    open_large,
    plan_fit,
    work_folder,
)
from manifactor.runs.folder import write_run
from manifactor.runs.options import FitOptions
from manifactor.runs.parts import FOLDER as PARTS_FOLDER
from manifactor.tables.columns import ColumnChoice
from manifactor.tables.reading import (
    Given,
    ImageSettings,
    Input,
    LargeInput,
    UnreadTable,
    open_input,
    read_opened,
)
from manifactor.tables.stores import in_parts, stored_table

# Options that turn images into samples.
OF_IMAGES = ("phase_flip", "mask_radius", "low_pass", "components", "standardise")


def particle_choice(options: FitOptions) -> ParticleChoice:
    """Return which particles are used, and where their images are."""
    return ParticleChoice(**options.values("datadir", "pixel_size", "classes", "optics_groups"))


@dataclass(frozen=True)
class Task:
    """One input of `fit`, seen from one direction if there are several, and how to treat it."""

    path: Path
    options: FitOptions = field(default_factory=FitOptions)
    view: tuple[float, float] | None = None

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
        return self.options.arguments(self.path, self.view)

    @property
    def reproduce(self) -> str:
        """The command that repeats this fit, from any folder."""
        return shell_line("manifactor", *self.arguments)

    @property
    def anywhere(self) -> "Task":
        """The same task for a process that may work in another folder."""
        return replace(self, path=self.path.absolute(), options=self.options.anywhere)

    def open(self) -> Opened:
        """Return the samples of a table, or what is not read yet.

        That is images, and samples that are drawn of a large table.
        """
        options = self.options
        given = Given(
            options.particles,
            options.ind,
            self.view,
            options.width,
            ImageSettings(**options.values(*OF_IMAGES)),
            ColumnChoice(options.columns, options.drop),
            particle_choice(options),
        )
        if in_parts(self.path, options.coordinates):
            given.require_large_table(self.path)
            return open_large(
                stored_table(self.path, given.columns),
                settings=options.parameters,
                seed=options.seed,
                n_fitted=options.fit_samples,
                standardise=options.standardise,
            )
        if options.coordinates == "parquet":
            raise ValueError(
                "--coordinates parquet goes with .npy, .parquet, Zarr, and folders of "
                f".parquet, of which rows are read; got {self.path}. Leave it out."
            )
        return open_input(self.path, given)

    def read(self, opened: Opened | None = None) -> Input:
        """Return the samples of the input, which may be open already.

        Of a large table, these are the samples that are drawn.
        """
        opened = self.open() if opened is None else opened
        if isinstance(opened, UnreadTable):
            return opened.read()
        return read_opened(opened, np.random.default_rng(self.options.seed))

    def _plan(self, samples: Opened) -> FitPlan:
        options = self.options
        return plan_fit(
            samples, settings=options.parameters, seed=options.seed, n_fitted=options.fit_samples
        )

    def forecast(self, opened: Opened, *, n_workers: int = 1, n_cores: int | None = None) -> Cost:
        """Return what the fit costs, from reading to writing."""
        plan = self._plan(opened)
        n_fitted = len(plan.rows)
        fitting = plan.factorizer().forecast_shape(n_fitted, n_columns(opened), n_cores=n_cores)
        return forecast_input(opened, fitting, n_fitted, n_workers=n_workers, n_cores=n_cores)

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
        before = input_state([self.path, self.options.particles, self.options.ind])
        plan = self._plan(given)
        if isinstance(given, LargeInput):
            how = {"stages": stages, "callback": callback, "workers": workers}
            return self._fit_large(given, plan, out, before, overwrite=overwrite, **how)
        fit, places = fit_input(given, plan, stages=stages, callback=callback)
        record = self._record(given, plan, fit, before)
        files: dict[str, bytes] = {}
        if given.particles is not None:
            record["confounders"] = confounder_records(
                given.particles,
                places,
                samples=None if given.components is None else given.samples,
                rng=np.random.default_rng(self.options.seed),
            )
            files = particle_file(given.particles, places, before)
        warn_of_changes(before)
        what: dict[str, Any] = {"places": places, "rows": given.rows, "files": files}
        write_run(fit, out, record=record, overwrite=overwrite, **what)
        return fit, record

    def _fit_large(
        self,
        given: LargeInput,
        plan: FitPlan,
        out: Path,
        before: InputState,
        *,
        overwrite: bool,
        stages: Stages | None,
        **how,
    ) -> tuple[ManifoldFactorizer, dict]:
        """Fit what was drawn, place all in parts, and write the run folder."""
        table = given.table
        state = (given.rows, table.n_samples, newest_change(table.path))
        key = fingerprint(__version__, self.arguments, *state)
        with work_folder(out, stages) as work:
            fit, n_parts = fit_large(given, plan, work=work, key=key, stages=stages, **how)
            record = {**self._record(given, plan, fit, before), "parts": n_parts}
            parts = work / PARTS_FOLDER
            warn_of_changes(before)
            write_run(fit, out, record=record, parts=parts, overwrite=overwrite)
        return fit, record

    def _record(
        self, given: Input, plan: FitPlan, fit: ManifoldFactorizer, before: InputState
    ) -> dict:
        """Return what run.json says of the input, the fit, and what was chosen."""
        options = self.options
        chosen = dict(plan.choices)
        if isinstance(given, LargeInput):
            chosen["samples fitted"] = how_many_drawn(given, options.fit_samples)
        return {
            "command": "fit",
            "input": str(self.path.resolve()),
            "seed": options.seed,
            "view": self.view,
            "width": options.width,
            "images": options.values(*OF_IMAGES),
            "particle_choice": particle_choice(options).record,
            "arguments": options.parameters,
            "fit_samples": options.fit_samples,
            "reproduce": self.reproduce,
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
            "choices": choices_as_json({**chosen, **fit.choices_, **chosen}),
        }
