"""An input fitted: some samples are drawn and fitted, all are placed."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from manifactor._support.files import temporary, write_bytes
from manifactor._support.parameters import Choice, given, require_count
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.components import Components
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.arrays import FEWEST_SAMPLES, MOST_DRAWN, draw_count, draw_rows
from manifactor.runs.archive import load, save
from manifactor.runs.checkpoints import Checkpoints, other_fit
from manifactor.runs.parts import FOLDER, place_in_parts
from manifactor.runs.places import Place, all_places, fitted_places
from manifactor.spectral.neighbors import N_NEIGHBORS, chosen
from manifactor.tables.reading import Input, LargeInput, UnreadImages, UnreadTable
from manifactor.tables.stores import StoredTable

# An input whose files were checked, and not necessarily read.
Opened = Input | UnreadImages | UnreadTable


# Images that are fitted at most. Noise needs neighbourhoods wider than itself. With more and more
# images the nearest ones are near by noise alone, so a few thousand with many neighbours tell more
# than all of them.
MOST_IMAGES = 3000
IMAGES_PER_NEIGHBOR = 30


@dataclass(frozen=True)
class FitPlan:
    """Which samples are fitted, with which parameters, and why."""

    rows: np.ndarray  # the samples to fit, ascending
    parameters: dict  # parameters of the factorizer
    # (n_features,): standard deviation of the noise in every column, where it is known
    noise: np.ndarray | None = None
    choices: dict[str, Choice] = field(default_factory=dict)

    def factorizer(self) -> ManifoldFactorizer:
        """Return the factorizer, not fitted yet."""
        return ManifoldFactorizer(**self.parameters)


def plan_fit(
    samples: Opened, *, settings: Mapping, seed: int, n_fitted: int | str = "auto"
) -> FitPlan:
    """Return which samples to fit and how, before anything is computed."""
    parameters = {**settings, "random_state": seed}
    rows, how_many = _draw(samples, n_fitted, seed)
    choices = {"samples fitted": how_many}
    noise = None
    if _are_images(samples) and parameters.get("n_neighbors", "auto") == "auto":
        near = _neighbors_of_images(len(rows))
        parameters["n_neighbors"] = near.value
        choices["neighbours"] = near
    if isinstance(samples, UnreadImages):
        parameters["preparation"] = "none"
    elif isinstance(samples, Input) and samples.components is not None:
        # Noise was already removed from the images or volumes.
        parameters["preparation"] = "none"
        text = f"noise is removed where the input is read: {samples.components}"
        choices["preparation"] = Choice("principal components", text)
        noise = samples.components.weights
    return FitPlan(rows, parameters, noise, choices)


def _are_images(samples: Opened) -> bool:
    """Return whether samples are made of images, not of a table or of volumes."""
    if isinstance(samples, UnreadImages):
        return samples.view is not None
    return isinstance(samples, Input) and isinstance(samples.components, Components)


def _neighbors_of_images(n_images: int) -> Choice:
    usual = N_NEIGHBORS
    wide = n_images // IMAGES_PER_NEIGHBOR
    if wide <= usual:
        count = min(usual, n_images - 1)
        return Choice(count, "low eigenfunctions are most accurate with 64 to 128 neighbours")
    return Choice(
        wide,
        f"one for every {IMAGES_PER_NEIGHBOR} fitted images: noise needs "
        "neighbourhoods wider than itself",
    )


def _draw(samples: Opened, n_fitted: int | str, seed: int) -> tuple[np.ndarray, Choice]:
    """Return the samples to fit, ascending, and why so many."""
    n_samples = len(samples.rows)  # of a large table, those that were drawn
    of_images = _are_images(samples)
    most, fewest = MOST_IMAGES if of_images else MOST_DRAWN, FEWEST_SAMPLES
    asked = {"auto": most, "all": max(n_samples, fewest)}.get(str(n_fitted), n_fitted)
    count = require_count("fit_samples", asked, low=fewest, high=10**9)
    if count >= n_samples:
        found = given("all")
        if n_fitted == "auto":
            found = Choice("all", f"there are no more than {most:,}")
        return np.arange(n_samples), found
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))
    noise = "few images with many neighbours average out more noise"
    return rows, _some_of(count, n_samples, n_fitted, noise if of_images else _quick(most))


def fit_input(
    samples: Input, plan: FitPlan, *, stages: Stages | None = None, callback=None
) -> tuple[ManifoldFactorizer, tuple[Place, ...]]:
    """Return a factorizer fitted to the planned samples, and the places of all."""
    fit = plan.factorizer().set_params(callback=callback)
    fit.fit(
        chosen(samples.samples, plan.rows),
        noise=plan.noise,
        stages=stages,
        column_names=samples.labels,
    )
    everything = len(plan.rows) == len(samples.samples)
    places = fitted_places(fit) if everything else all_places(fit, samples.samples)
    return fit, places


# A table too large for memory: some samples are fitted, all are placed in parts.

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
    count = draw_count(n_fitted, n_samples)
    ManifoldFactorizer(**settings).require_room(count, n_columns)
    rows = draw_rows(n_samples, count, np.random.default_rng(seed))
    return UnreadTable(table, rows, standardise)


def how_many_drawn(large: LargeInput, asked: int | str) -> Choice:
    """Return how many samples of a large table were drawn, and why."""
    return _some_of(len(large.rows), large.n_samples, asked, _quick(MOST_DRAWN))


def _some_of(count: int, n_samples: int, asked: int | str, why: str) -> Choice:
    shown = f"{count:,} of {n_samples:,}"
    return Choice(shown, why) if asked == "auto" else given(shown)


def _quick(most: int) -> str:
    return f"{most:,} at most, so that a fit stays quick; the others are placed"


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
    large: LargeInput,
    plan: FitPlan,
    *,
    work: Path,
    key: str,
    stages: Stages | None = None,
    callback=None,
    workers: Workers = Here(),
) -> tuple[ManifoldFactorizer, int]:
    """Fit the samples that were drawn, and place all samples of the table in parts."""
    resumes = isinstance(stages, Checkpoints) and stages.resume
    fit = _kept(work, key) if resumes else None
    if fit is None:
        fit = fit_input(large, plan, stages=stages, callback=callback)[0]
        fit.rows_ = large.rows
        _keep(fit, work, key)
    timing = (stages or Stages()).start(callback)
    with timing.timed("places"):
        n_parts = place_in_parts(
            work / ARCHIVE,
            large.table,
            work / FOLDER,
            workers=workers,
            report=lambda done: timing.report("places", min(done, 0.999)),
        )
    fit.timings_ = {**fit.timings_, **timing.timings}
    return fit, n_parts


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
