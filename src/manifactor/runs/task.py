"""Values as arguments of the command line that repeat a fit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.parameters import Choice, choices_as_json
from manifactor._support.stages import Stages, fingerprint
from manifactor._support.version import __version__
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
    table_state,
    work_folder,
)
from manifactor.runs.folder import write_run
from manifactor.runs.parts import FOLDER as PARTS_FOLDER
from manifactor.runs.places import Place
from manifactor.tables.columns import ColumnChoice
from manifactor.tables.images import Given
from manifactor.tables.reading import (
    ImageSettings,
    Input,
    LargeInput,
    UnreadTable,
    open_input,
    read_opened,
)
from manifactor.tables.stores import in_parts, stored_table


def changed_options(given: Mapping, usual: Mapping) -> list[str]:
    """Return the values that are not the usual ones as arguments.

    None and False are the absence of a flag.
    """
    out: list[str] = []
    for name, value in given.items():
        if value is None or value is False or value == usual.get(name):
            continue
        out.append(f"--{name.replace('_', '-')}")
        if value is not True:
            out.append(shortest(value) if isinstance(value, float) else str(value))
    return out


def repeated_options(options: Mapping[str, list]) -> list[str]:
    """Return options as arguments, each repeated for every value."""
    out: list[str] = []
    for name, values in options.items():
        for value in values:
            out += [name, shortest(value) if isinstance(value, float) else str(value)]
    return out


def shortest(number: float) -> str:
    """Return the fewest digits that give the number back."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def absolute(path: str | None) -> str | None:
    """Return a path that is the same from any folder.

    A link stays a link, since what belongs to it may lie beside it.
    """
    return None if path is None else str(Path(path).absolute())


# One input of `fit`: read, fitted, and written as a run folder.


@dataclass(frozen=True)
class Task:
    """One input of `fit`, and how to treat it."""

    path: Path
    particles: str | None = None
    indices: str | None = None
    view: tuple[float, float] | None = None
    width: float | None = None
    images: ImageSettings = field(default_factory=ImageSettings)
    columns: ColumnChoice = field(default_factory=ColumnChoice)
    choice: ParticleChoice = field(default_factory=ParticleChoice)  # these seven as in `open_input`
    settings: dict = field(default_factory=dict)  # parameters of the factorizer
    seed: int = 0
    n_fitted: int | str = "auto"  # as in `plan_fit`
    coordinates: str = "auto"  # as in `in_parts`

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
        usual = Task(self.path)
        view = []
        if self.view is not None:
            view = [f"--view={','.join(shortest(angle) for angle in self.view)}"]
        files = {"particles": absolute(self.particles), "ind": absolute(self.indices)}
        return [
            "fit",
            str(self.path.absolute()),
            *view,
            *changed_options(files, {}),
            *repeated_options(self.choice.options),
            *changed_options({"width": self.width}, {"width": usual.width}),
            *changed_options(asdict(self.images), asdict(usual.images)),
            *changed_options(asdict(self.columns), asdict(usual.columns)),
            *changed_options(self.settings, ManifoldFactorizer().get_params()),
            *changed_options({"fit_samples": self.n_fitted}, {"fit_samples": usual.n_fitted}),
            *changed_options({"coordinates": self.coordinates}, {"coordinates": usual.coordinates}),
            *changed_options({"seed": self.seed}, {"seed": usual.seed}),
        ]

    @property
    def reproduce(self) -> str:
        """The command that repeats this fit, from any folder."""
        return shell_line("manifactor", *self.arguments)

    @property
    def anywhere(self) -> "Task":
        """The same task for a process that may work in another folder."""
        return replace(
            self,
            path=self.path.absolute(),
            particles=absolute(self.particles),
            indices=absolute(self.indices),
            choice=replace(self.choice, datadir=absolute(self.choice.datadir)),
        )

    def open(self) -> Opened:
        """Return the samples of a table, or what is not read yet.

        That is images, and samples that are drawn of a large table.
        """
        if in_parts(self.path, self.coordinates):
            return self._open_large()
        if self.coordinates == "parquet":
            raise ValueError(
                "--coordinates parquet goes with .npy, .parquet, Zarr, and folders of "
                f".parquet, of which rows are read; got {self.path}. Leave it out."
            )
        return open_input(
            self.path,
            particles=self.particles,
            indices=self.indices,
            view=self.view,
            width=self.width,
            settings=self.images,
            columns=self.columns,
            choice=self.choice,
        )

    def _open_large(self) -> UnreadTable:
        """Return the samples that are drawn of a large table."""
        given = Given(
            self.particles, self.indices, self.view, self.images, self.columns, self.choice
        )
        given.require_large_table(self.path)
        return open_large(
            stored_table(self.path, self.columns),
            settings=self.settings,
            seed=self.seed,
            n_fitted=self.n_fitted,
            standardise=self.images.standardise,
        )

    def read(self, opened: Opened | None = None) -> Input:
        """Return the samples of the input, which may be open already.

        Of a large table, these are the samples that are drawn.
        """
        opened = self.open() if opened is None else opened
        if isinstance(opened, UnreadTable):
            return opened.read()
        return read_opened(opened, np.random.default_rng(self.seed))

    def forecast(self, opened: Opened, *, n_workers: int = 1, n_cores: int | None = None) -> Cost:
        """Return what the fit costs, from reading to writing."""
        plan = plan_fit(opened, settings=self.settings, seed=self.seed, n_fitted=self.n_fitted)
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
        before = input_state([self.path, self.particles, self.indices])
        plan = plan_fit(given, settings=self.settings, seed=self.seed, n_fitted=self.n_fitted)
        if isinstance(given, LargeInput):
            how = {"stages": stages, "callback": callback, "workers": workers}
            return self._fit_large(given, plan, out, before, overwrite=overwrite, **how)
        fit, places = fit_input(given, plan, stages=stages, callback=callback)
        record = self._full_record(given, plan, fit, before)
        files: dict[str, bytes] = {}
        if given.particles is not None:
            record["confounders"] = self._confounders(given, places)
            files = particle_file(given.particles, places, before)
        warn_of_changes(before)
        write_run(
            fit,
            out,
            record=record,
            places=places,
            rows=given.rows,
            files=files,
            overwrite=overwrite,
        )
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
        # How many rows are drawn may depend on the memory of the machine.
        state = (given.rows, *table_state(given.table))
        key = fingerprint(__version__, self.arguments, *state)
        with work_folder(out, stages) as work:
            fit, n_parts = fit_large(given, plan, work=work, key=key, stages=stages, **how)
            record = {**self._full_record(given, plan, fit, before), "parts": n_parts}
            parts = work / PARTS_FOLDER
            warn_of_changes(before)
            write_run(fit, out, record=record, parts=parts, overwrite=overwrite)
        return fit, record

    def _full_record(
        self, given: Input, plan: FitPlan, fit: ManifoldFactorizer, before: InputState
    ) -> dict:
        """Return what run.json says of the input, the fit, and what was chosen."""
        chosen = dict(plan.choices)
        if isinstance(given, LargeInput):
            chosen["samples fitted"] = how_many_drawn(given, self.n_fitted)
        choices = {**chosen, **_missing(fit.choices_, chosen)}
        record = {**self._record(given, fit), **before.record}
        return {**record, "choices": choices_as_json(choices)}

    def _record(self, given: Input, fit: ManifoldFactorizer) -> dict:
        return {
            "command": "fit",
            "input": str(self.path.resolve()),
            "seed": self.seed,
            "view": self.view,
            "width": self.width,
            "images": asdict(self.images),
            "particle_choice": self.choice.record,
            "arguments": self.settings,
            "fit_samples": self.n_fitted,
            "reproduce": self.reproduce,
            **given.record,
            "n_samples": given.n_samples,
            "n_fitted": len(fit.spectrum_.weights),
            "neighbors": {
                "search": fit.neighbors_,
                "count": fit.n_neighbors_,
                "recall": fit.recall_,
            },
        }

    def _confounders(self, given: Input, places: tuple[Place, ...]) -> list[dict]:
        """Return what is known of the particles and explains a factor."""
        assert given.particles is not None
        return confounder_records(
            given.particles,
            places,
            samples=None if given.components is None else given.samples,
            rng=np.random.default_rng(self.seed),
        )


def _missing(choices: Mapping[str, Choice], known: Mapping[str, Choice]) -> dict[str, Choice]:
    """Return the choices that are not known yet: the plan's come first."""
    return {name: choice for name, choice in choices.items() if name not in known}
