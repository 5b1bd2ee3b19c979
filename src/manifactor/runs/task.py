"""What the commands do, without printing: inputs to run folders, run folders to files for other programs."""

import csv
import io
import pickle
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from manifactor._support.extras import extra
from manifactor._support.parameters import require_count
from manifactor._support.stages import Stages
from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.cryoem.formats import particles_with, read_particles
from manifactor.cryoem.images import Components
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.stacks import ImageSource, volume_series
from manifactor.cryoem.views import View
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.verdict import weigh_noise
from manifactor.inputs.files import read_samples
from manifactor.inputs.reading import (
    ImageSettings,
    Input,
    picked,
    read_input,
    require_one_view,
    run_images,
)
from manifactor.runs.confounders import confounders
from manifactor.runs.folder import read_places, read_record, write_run
from manifactor.runs.places import (
    Place,
    all_places,
    coordinate_columns,
    fitted_places,
    table_as_csv,
    to_table,
)
from manifactor.spectral.forecast import Forecast
from manifactor.spectral.neighbors import AUTO_NEIGHBORS, chosen

FITTED_IMAGES, FITTED = (
    3000,
    20_000,
)  # samples that are fitted, of noisy images and of all else; the others are placed
PER_NEIGHBOR = 30  # fitted images for each neighbour


def fit_input(
    given: Input,
    *,
    settings: Mapping,
    seed: int,
    n_fitted: int | str = "auto",
    stages: Stages | None = None,
    callback=None,
) -> tuple[ManifoldFactorizer, tuple[Place, ...]]:
    """A factorizer fitted to some of the samples, drawn at random, and the places of all of them.

    Images are noisy, and noise needs neighbourhoods wider than itself: with more and more samples the nearest ones are
    near by noise only. So a few thousand are fitted with many neighbours, and the others are placed.

    Parameters
    ----------
    given : Input
    settings : mapping
        Parameters of the factorizer.
    seed : int
    n_fitted : int, "auto" or "all"
        Samples to fit; "auto" takes up to 3,000 images and up to 20,000 of all else.
    stages : Stages or None
        What is kept of earlier fits.
    callback : callable or None
    """
    n = len(given.samples)
    factorizer, drawn = prepared_fit(
        given, settings=settings, seed=seed, n_fitted=n_fitted
    )
    factorizer.set_params(callback=callback)._stages = stages or Stages()
    samples = chosen(given.samples, drawn)
    fit = factorizer.fit(samples)
    if given.components is not None and settings.get("method") != "deflation":
        _weigh_noise(
            fit, samples, given.components.weights, rng=np.random.default_rng(seed)
        )
    return fit, fitted_places(fit) if len(drawn) == n else all_places(
        fit, given.samples
    )


def prepared_fit(
    given: Input, *, settings: Mapping, seed: int, n_fitted: int | str = "auto"
) -> tuple[ManifoldFactorizer, np.ndarray]:
    """The factorizer that `fit_input` uses, and the samples that it fits."""
    settings = dict(settings)
    if settings.get("method") == "deflation":  # places no others
        if n_fitted not in ("auto", "all"):
            raise ValueError(
                "deflation fits all samples, since it places no others. Leave --fit-samples out."
            )
        n_fitted = "all"
    drawn = drawn_rows(given, n_fitted, seed=seed)
    if (
        isinstance(given.components, Components)
        and settings.get("n_neighbors", "auto") == "auto"
    ):
        settings["n_neighbors"] = min(
            max(AUTO_NEIGHBORS, len(drawn) // PER_NEIGHBOR), len(drawn) - 1
        )
    if given.components is not None:
        settings["preparation"] = (
            "none"  # noise was told from signal in the images or volumes themselves
        )
    return ManifoldFactorizer(random_state=seed, **settings), drawn


def drawn_rows(given: Input, n_fitted: int | str = "auto", *, seed: int) -> np.ndarray:
    """The samples that `fit_input` fits, ascending."""
    few = FITTED_IMAGES if isinstance(given.components, Components) else FITTED
    n = len(given.samples)
    count = require_count(
        "fit_samples",
        {"auto": few, "all": max(n, 4)}.get(str(n_fitted), n_fitted),
        4,
        10**9,
    )
    if count >= n:
        return np.arange(n)
    return np.sort(
        np.random.default_rng(seed).choice(n, count, replace=False, shuffle=False)
    )


def _weigh_noise(
    fit: ManifoldFactorizer,
    samples: np.ndarray,
    noise: np.ndarray,
    *,
    rng: np.random.Generator,
) -> None:
    """Let the verdict know how much of the places is noise: as much noise again moves them as far as the first did."""
    moved = all_places(fit, samples + noise * rng.normal(size=samples.shape))
    shares = []
    for before, after in zip(fitted_places(fit), moved, strict=True):
        spread = ((before.features - before.features.mean(axis=0)) ** 2).sum()
        shares.append(1 - ((after.features - before.features) ** 2).sum() / spread)
    fit.evidence_ = weigh_noise(fit.evidence_, shares)
    fit.verdict_ = fit.evidence_.verdict


@dataclass(frozen=True)
class Task:
    """One input of `fit`, and how to treat it.

    Attributes
    ----------
    path : Path
    particles, indices : path or None
    view : (rot, tilt) or None
    width : float
    images : ImageSettings
        These five as in `read_input`.
    settings : dict
        Parameters of the factorizer.
    seed : int
    n_fitted : int, "auto" or "all"
        As in `fit_input`.
    """

    path: Path
    particles: str | None = None
    indices: str | None = None
    view: tuple[float, float] | None = None
    width: float = 10.0
    images: ImageSettings = field(default_factory=ImageSettings)
    settings: dict = field(default_factory=dict)
    seed: int = 0
    n_fitted: int | str = "auto"

    @property
    def name(self) -> str:
        """The input's name, with the view."""
        return (
            self.path.stem
            if self.view is None
            else f"{self.path.stem}_rot{self.view[0]:g}_tilt{self.view[1]:g}"
        )

    @property
    def arguments(self) -> list[str]:
        """What to call `manifactor` with to do the same again; only what differs from the defaults."""
        usual, images = Task(self.path), asdict(self.images)
        settings = ManifoldFactorizer().get_params()
        given = [
            *(
                []
                if self.view is None
                else [f"--view={_shortest(self.view[0])},{_shortest(self.view[1])}"]
            ),
            *_options(
                {
                    "particles": _absolute(self.particles),
                    "ind": _absolute(self.indices),
                },
                {},
            ),
            *_options({"width": self.width}, {"width": usual.width}),
            *_options(images, asdict(usual.images)),
            *_options(self.settings, settings),
            *_options(
                {"fit_samples": self.n_fitted, "seed": self.seed},
                {"fit_samples": "auto", "seed": usual.seed},
            ),
        ]
        return ["fit", str(self.path.absolute()), *given]

    def read(self) -> Input:
        """The samples."""
        return read_input(
            self.path,
            particles=self.particles,
            indices=self.indices,
            view=self.view,
            width=self.width,
            settings=self.images,
            rng=np.random.default_rng(self.seed),
        )

    def forecast(self, given: Input) -> Forecast:
        """What fitting the samples will cost."""
        factorizer, drawn = prepared_fit(
            given, settings=self.settings, seed=self.seed, n_fitted=self.n_fitted
        )
        return factorizer.forecast_shape(len(drawn), given.samples.shape[1])

    def fit(
        self,
        given: Input,
        out: Path,
        *,
        overwrite: bool = False,
        stages: Stages | None = None,
        callback=None,
    ) -> tuple:
        """Fit the samples and write the run folder; the fit and what run.json says beside its results."""
        fit, places = fit_input(
            given,
            settings=self.settings,
            seed=self.seed,
            n_fitted=self.n_fitted,
            stages=stages,
            callback=callback,
        )
        record = {
            "command": "fit",
            "input": str(self.path.resolve()),
            "seed": self.seed,
            "view": self.view,
            "width": self.width,
            "images": asdict(self.images),
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
        files: dict[str, bytes] = {}
        if given.particles is not None:
            samples = None if given.components is None else given.samples
            found = confounders(
                given.particles,
                places,
                samples=samples,
                rng=np.random.default_rng(self.seed),
            )
            record["confounders"] = [{**asdict(c), "meaning": c.meaning} for c in found]
            suffix = given.particles.path.suffix.lower()
            files[f"particles{suffix}"] = particles_with(
                given.particles, coordinate_columns(places, suffix)
            )
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


def _options(given: Mapping, usual: Mapping) -> list[str]:
    """Those of the given values that are not the usual ones, as arguments; None and False are the absence of a flag."""
    out: list[str] = []
    for name, value in given.items():
        if value is None or value is False or value == usual.get(name):
            continue
        flag = f"--{name.replace('_', '-')}"
        out += (
            [flag]
            if value is True
            else [flag, _shortest(value) if isinstance(value, float) else str(value)]
        )
    return out


def _shortest(number: float) -> str:
    """The fewest digits that give the number back."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def _absolute(path: str | None) -> str | None:
    """A path that is the same from any folder; a link stays a link, since what belongs to it may lie beside it."""
    return None if path is None else str(Path(path).absolute())


VIEWS = ("view", "particles", "verdict", "factors", "problem")


def fit_side_by_side(tasks: Sequence[Task], folder: Path) -> list[dict[str, str]]:
    """Fit tasks on all cores, each into its own run folder inside `folder`; the rows of a table, also in views.csv."""
    names = [task.name for task in tasks]
    if len(set(names)) < len(names):  # in RELION every job's file has the same name
        names = [f"{task.path.resolve().parent.name}_{task.name}" for task in tasks]
    if len(set(names)) < len(names):
        raise ValueError(
            f"the inputs must have different names; got {', '.join(names)}. Rename them."
        )
    rows = Parallel(n_jobs=-1)(
        delayed(_row)(task, folder / name)
        for task, name in zip(tasks, names, strict=True)
    )
    if all(row["verdict"] == "failed" for row in rows):
        raise ValueError(
            f"no view could be fitted; the first, {rows[0]['view']}: {rows[0]['problem']}"
        )
    with (folder / "views.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, VIEWS)
        writer.writeheader()
        writer.writerows(rows)
    return rows


def _row(task: Task, out: Path) -> dict[str, str]:
    """One row of the table of views; a view that cannot be fitted does not stop the others."""
    try:
        with warnings.catch_warnings(action="ignore"):
            fit, record = task.fit(task.read(), out)
    except (ValueError, OSError, MemoryError) as error:
        values = (out.name, "", "failed", "", " ".join(str(error).split()))
    else:
        shapes = " x ".join(factor.topology for factor in fit.factors_)
        problems = "; ".join(
            c["meaning"] for c in record.get("confounders", []) if c["meaning"]
        )
        values = (out.name, str(record["n_samples"]), fit.verdict_, shapes, problems)
    return dict(zip(VIEWS, values, strict=True))


def last_changed(path: Path) -> str:
    """When a file or folder was last changed, to the second."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(
        timespec="seconds"
    )


@dataclass(frozen=True)
class Run:
    """A run folder, read for later commands."""

    folder: Path
    record: dict
    rows: np.ndarray
    places: tuple[Place, ...]

    def particles(self) -> Particles:
        """The particles of the run's samples, in their order."""
        return self._particles

    @cached_property
    def _particles(self) -> Particles:
        if "particles" not in self.record:
            raise ValueError(
                f"{self.folder} knows no particles. Fit again with --particles ORIGINAL.star or ORIGINAL.cs, or choose "
                "an output that needs none: .csv, .parquet, .pkl."
            )
        everything = read_particles(self.record["particles"])
        if self.rows.max(initial=-1) >= len(everything):
            raise ValueError(
                f"{everything.path} has fewer particles than when it was fitted. Fit again."
            )
        found = everything[self.rows]
        whole = len(self.rows) == self.record.get("n_samples")
        if whole and found.fingerprint != self.record.get("fingerprint"):
            raise ValueError(
                f"{everything.path} holds other particles, or another order, than when fitted. Fit again."
            )
        return found

    @property
    def warnings(self) -> list[str]:
        """What may be wrong with the run, in sentences."""
        path = Path(self.record.get("input", ""))
        if "input_changed" not in self.record:
            return []
        if not path.exists():
            return [f"The input {path} is no longer there."]
        if last_changed(path) != self.record["input_changed"]:
            return [
                f"The input {path} was changed after the fit; what is shown of it may be other samples."
            ]
        return []

    def seen_from(self, view: tuple[float, float], *, width: float) -> "Run":
        """The run's samples seen from a direction."""
        near = np.flatnonzero(
            np.isin(self.rows, picked(self.particles(), view, width).rows)
        )
        return replace(
            self,
            rows=self.rows[near],
            places=tuple(place[near] for place in self.places),
        )

    def images(self) -> View | ImageSource:
        """The images, or volumes, of the run's samples, in their order."""
        path = Path(self.record.get("input", ""))
        if path.is_dir():
            return volume_series(path)
        particles = self.particles() if "particles" in self.record else None
        if "components" in self.record and not path.exists():
            raise ValueError(
                f"{path}, which was fitted, is no longer there. Put it back, or fit again."
            )
        if particles is None and path.suffix.lower() != ".mrcs":
            raise ValueError(
                f"averages need images or volumes; {self.folder} was fitted to numbers alone. Fit again with "
                "--particles, or fit the images themselves."
            )
        if particles is not None:
            require_one_view(particles)
        return run_images(
            path,
            particles,
            phase_flip=bool(self.record.get("images", {}).get("phase_flip", False)),
        )

    def samples(self) -> np.ndarray:
        """The numbers that the run was fitted to, one row a sample."""
        samples = read_samples(self.record.get("input", ""))
        if len(samples) != len(self.rows):
            raise ValueError(
                f"the input has {len(samples)} samples now and had {len(self.rows)}. Fit again."
            )
        return samples

    def place(self, factor: int) -> Place:
        """Places on a factor, counted from 1."""
        if not 1 <= factor <= len(self.places):
            raise ValueError(
                f"`factor` must be one of the run's 1 to {len(self.places)}; got {factor}."
            )
        return self.places[factor - 1]


def open_run(folder) -> Run:
    """A run folder's record and places."""
    folder = Path(folder)
    rows, places = read_places(folder)
    return Run(folder, read_record(folder), rows, places)


def selected(
    run: Run,
    ranges: Sequence[tuple[int, float, float]],
    *,
    least_confidence: float = 0.0,
) -> np.ndarray:
    """Which samples, ascending, lie in all ranges (factor, low, high), with at least this confidence on all factors."""
    inside = np.ones(len(run.rows), dtype=bool)
    for place in run.places:
        if place.confidence is not None:
            inside &= place.confidence >= least_confidence
    for factor, low, high in ranges:
        inside &= run.place(factor).between(low, high)
    if not inside.any():
        raise ValueError(
            "the ranges must hold some samples; they hold none. Widen them."
        )
    return np.flatnonzero(inside)


def selection(run: Run, chosen: np.ndarray, suffix: str) -> bytes:
    """The chosen samples as the bytes of a file."""
    if suffix not in SELECTIONS:
        raise ValueError(
            f"--out must end in one of {', '.join(SELECTIONS)}; got {suffix or 'no ending'}."
        )
    return SELECTIONS[suffix](run, chosen)


def _as_particles(suffix: str) -> Callable[[Run, np.ndarray], bytes]:
    def write(run: Run, chosen: np.ndarray) -> bytes:
        particles = run.particles()
        if particles.path.suffix.lower() != suffix:
            raise ValueError(
                f"the run's particles are {particles.path.name}; choose --out with the same ending."
            )
        return particles_with(
            particles[chosen],
            coordinate_columns([place[chosen] for place in run.places], suffix),
        )

    return write


def _as_csv(run: Run, chosen: np.ndarray) -> bytes:
    return table_as_csv([place[chosen] for place in run.places], run.rows[chosen])


def _as_parquet(run: Run, chosen: np.ndarray) -> bytes:
    header, columns = to_table(
        [place[chosen] for place in run.places], run.rows[chosen]
    )
    arrays = {
        "sample": run.rows[chosen],
        **dict(zip(header[1:], columns.T[1:], strict=True)),
    }
    buffer = io.BytesIO()
    extra("pyarrow.parquet").write_table(extra("pyarrow").table(arrays), buffer)
    return buffer.getvalue()


def _as_pickle(run: Run, chosen: np.ndarray) -> bytes:
    return pickle.dumps(run.rows[chosen])


def _as_npy(run: Run, chosen: np.ndarray) -> bytes:
    return npy_bytes(run.rows[chosen])


SELECTIONS: dict[str, Callable[[Run, np.ndarray], bytes]] = {
    ".star": _as_particles(".star"),
    ".cs": _as_particles(".cs"),
    ".csv": _as_csv,
    ".pkl": _as_pickle,
    ".npy": _as_npy,
    ".parquet": _as_parquet,
}
