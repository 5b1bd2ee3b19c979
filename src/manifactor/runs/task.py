"""One input of `fit`: read, fitted, and written as a run folder."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from manifactor._support.choices import Choice
from manifactor._support.stages import Stages
from manifactor.cryoem.formats import particles_with
from manifactor.estimators import ManifoldFactorizer
from manifactor.inputs.columns import ColumnChoice
from manifactor.inputs.particle_choice import ParticleChoice
from manifactor.inputs.reading import ImageSettings, Input, open_input, read_opened
from manifactor.inputs.unread import UnreadImages
from manifactor.runs.confounders import confounder_records
from manifactor.runs.cost import Cost
from manifactor.runs.fitting import fit_input, plan_fit
from manifactor.runs.folder import write_run
from manifactor.runs.input_cost import forecast_input, n_columns
from manifactor.runs.places import Place, coordinate_columns
from manifactor.runs.run import last_changed


@dataclass(frozen=True)
class Task:
    """One input of `fit`, and how to treat it.

    Attributes
    ----------
    path : Path
    particles, indices : path or None
    view : (rot, tilt) or None
    width : float or None
    images : ImageSettings
    columns : ColumnChoice
    choice : ParticleChoice
        These seven as in `open_input`.
    settings : dict
        Parameters of the factorizer.
    seed : int
    n_fitted : int, "auto" or "all"
        As in `plan_fit`.
    """

    path: Path
    particles: str | None = None
    indices: str | None = None
    view: tuple[float, float] | None = None
    width: float | None = None
    images: ImageSettings = field(default_factory=ImageSettings)
    columns: ColumnChoice = field(default_factory=ColumnChoice)
    choice: ParticleChoice = field(default_factory=ParticleChoice)
    settings: dict = field(default_factory=dict)
    seed: int = 0
    n_fitted: int | str = "auto"

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
            view = [f"--view={','.join(_shortest(angle) for angle in self.view)}"]
        files = {
            "particles": absolute(self.particles),
            "ind": absolute(self.indices),
        }
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
            *changed_options(
                {"fit_samples": self.n_fitted}, {"fit_samples": usual.n_fitted}
            ),
            *changed_options({"seed": self.seed}, {"seed": usual.seed}),
        ]

    def open(self) -> Input | UnreadImages:
        """Return the samples of a table, or images that are not read yet."""
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

    def read(self, opened: Input | UnreadImages | None = None) -> Input:
        """Return the samples of the input, which may be open already."""
        opened = self.open() if opened is None else opened
        return read_opened(opened, np.random.default_rng(self.seed))

    def forecast(
        self,
        opened: Input | UnreadImages,
        *,
        n_workers: int = 1,
        n_cores: int | None = None,
    ) -> Cost:
        """Return what the fit costs, from reading to writing.

        Parameters
        ----------
        opened : Input or UnreadImages
        n_workers : int
            Workers that samples are placed on.
        n_cores : int or None
            Cores of this process, or of each worker; None for as many as there are.
        """
        plan = plan_fit(
            opened, settings=self.settings, seed=self.seed, n_fitted=self.n_fitted
        )
        n_fitted = len(plan.rows)
        fitting = plan.factorizer().forecast_shape(
            n_fitted, n_columns(opened), n_cores=n_cores
        )
        return forecast_input(
            opened, fitting, n_fitted, n_workers=n_workers, n_cores=n_cores
        )

    def fit(
        self,
        given: Input,
        out: Path,
        *,
        overwrite: bool = False,
        stages: Stages | None = None,
        callback=None,
    ) -> tuple[ManifoldFactorizer, dict]:
        """Fit the samples and write the run folder.

        Returns
        -------
        fit : ManifoldFactorizer
        record : dict
            What run.json says beside the results.
        """
        given.require_finite()
        plan = plan_fit(
            given, settings=self.settings, seed=self.seed, n_fitted=self.n_fitted
        )
        fit, places = fit_input(given, plan, stages=stages, callback=callback)
        choices = {**plan.choices, **_missing(fit.choices_, plan.choices)}
        record = {**self._record(given, fit), "choices": choices_as_json(choices)}
        files: dict[str, bytes] = {}
        if given.particles is not None:
            record["confounders"] = self._confounders(given, places)
            suffix = given.particles.path.suffix.lower()
            columns = coordinate_columns(places, suffix)
            files[f"particles{suffix}"] = particles_with(given.particles, columns)
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
            "reproduce": shlex.join(["manifactor", *self.arguments]),
            "input_changed": last_changed(self.path),
            **given.record,
            "n_samples": len(given.rows),
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


def _missing(
    choices: Mapping[str, Choice], known: Mapping[str, Choice]
) -> dict[str, Choice]:
    """Return the choices that are not known yet: the plan's come first."""
    return {name: choice for name, choice in choices.items() if name not in known}


def choices_as_json(choices: Mapping[str, Choice]) -> dict[str, dict]:
    """Return choices as run.json has them."""
    return {
        name: {"value": _plain(choice.value), "why": choice.why}
        for name, choice in choices.items()
    }


def _plain(value):
    """Return a value as JSON knows it; records become their names in words."""
    if isinstance(value, np.generic):
        return value.item()
    known = value is None or isinstance(value, str | int | float | bool)
    return value if known else str(value)


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
            out.append(_shortest(value) if isinstance(value, float) else str(value))
    return out


def repeated_options(options: Mapping[str, list]) -> list[str]:
    """Return options as arguments, each repeated for every value."""
    out: list[str] = []
    for name, values in options.items():
        for value in values:
            out += [name, _shortest(value) if isinstance(value, float) else str(value)]
    return out


def _shortest(number: float) -> str:
    """Return the fewest digits that give the number back."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def absolute(path: str | None) -> str | None:
    """Return a path that is the same from any folder.

    A link stays a link, since what belongs to it may lie beside it.
    """
    return None if path is None else str(Path(path).absolute())
