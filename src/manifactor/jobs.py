"""What the commands do, without printing: inputs to run folders, run folders to files for other programs."""

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from manifactor.archive import read_places, read_record, write_run
from manifactor.cryoem.confounders import confounders
from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.cryoem.extras import extra
from manifactor.cryoem.formats import coordinate_columns, particles_with, read_particles
from manifactor.cryoem.images import Components, View
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.stacks import ImageSource, volume_series
from manifactor.estimators import AUTO_NEIGHBORS, ManifoldFactorizer
from manifactor.inputs import Input, require_one_view, run_images
from manifactor.places import Place, all_places, fitted_places, to_table

FITTED = 3000  # noisy images that are fitted; the others are placed afterwards
PER_NEIGHBOR = 30  # fitted images for each neighbour


def fit_input(given: Input, *, settings: Mapping, seed: int, callback=None) -> tuple[ManifoldFactorizer, tuple]:
    """A fitted factorizer and the places of all samples.

    Images are noisy, and noise needs neighbourhoods wider than itself: with more and more samples the nearest ones are
    near by noise only. So a few thousand are fitted with many neighbours, and the others are placed.
    """
    settings = dict(settings)
    if not isinstance(given.components, Components):
        fit = ManifoldFactorizer(callback=callback, random_state=seed, **settings).fit(given.samples)
        return fit, fitted_places(fit)
    n = len(given.samples)
    drawn = np.sort(np.random.default_rng(seed).permutation(n)[:FITTED])
    if settings.get("n_neighbors", "auto") == "auto":
        settings["n_neighbors"] = min(max(AUTO_NEIGHBORS, len(drawn) // PER_NEIGHBOR), len(drawn) - 1)
    settings["preparation"] = "none"  # noise was told from signal by the images
    fit = ManifoldFactorizer(callback=callback, random_state=seed, **settings).fit(given.samples[drawn])
    if len(drawn) == n or settings.get("method") == "deflation":
        return fit, fitted_places(fit)
    return fit, all_places(fit, given.samples)


def run_fit(given: Input, out: Path, *, record: dict, settings: Mapping, seed: int, overwrite: bool, callback=None):
    """Fit an input and write the run folder; the fit and the record."""
    fit, places = fit_input(given, settings=settings, seed=seed, callback=callback)
    rows = given.rows
    record = {**record, **given.record, "n_samples": len(rows), "n_fitted": len(fit.spectrum_.weights)}
    files: dict[str, bytes] = {}
    if given.particles is not None:
        found = confounders(given.particles, places, rng=np.random.default_rng(seed))
        suffix = given.particles.path.suffix.lower()
        files[f"particles{suffix}"] = particles_with(given.particles, coordinate_columns(places, suffix))
        record["confounders"] = [{**asdict(c), "meaning": c.meaning} for c in found]
    write_run(fit, out, record=record, places=places, rows=rows, files=files, overwrite=overwrite)
    return fit, record


@dataclass(frozen=True)
class Run:
    """A run folder, read for later commands."""

    folder: Path
    record: dict
    rows: np.ndarray
    places: tuple[Place, ...]

    def particles(self) -> Particles:
        """The particles of the run's samples, in their order."""
        if "particles" not in self.record:
            raise ValueError(
                f"{self.folder} knows no particles. Fit again with --particles ORIGINAL.star or ORIGINAL.cs, or choose "
                "an output that needs none: .csv, .parquet, .pkl."
            )
        everything = read_particles(self.record["particles"])
        if self.rows.max(initial=-1) >= len(everything):
            raise ValueError(f"{everything.path} has fewer particles than when it was fitted. Fit again.")
        return everything[self.rows]

    def images(self) -> View | ImageSource:
        """The images, or volumes, of the run's samples, in their order."""
        path = Path(self.record.get("input", ""))
        if path.is_dir():
            return volume_series(path)
        particles = self.particles() if "particles" in self.record else None
        if particles is None and path.suffix.lower() != ".mrcs":
            raise ValueError(
                f"averages need images or volumes; {self.folder} was fitted to numbers alone. Fit again with "
                "--particles, or fit the images themselves."
            )
        if particles is not None:
            require_one_view(particles)
        return run_images(path, particles, phase_flip=bool(self.record.get("images", {}).get("phase_flip", False)))

    def place(self, factor: int) -> Place:
        """Places on a factor, counted from 1."""
        if not 1 <= factor <= len(self.places):
            raise ValueError(f"`factor` must be one of the run's 1 to {len(self.places)}; got {factor}.")
        return self.places[factor - 1]


def open_run(folder) -> Run:
    """A run folder's record and places."""
    folder = Path(folder)
    rows, places = read_places(folder)
    return Run(folder, read_record(folder), rows, places)


def selected(run: Run, ranges: Sequence[tuple[int, float, float]]) -> np.ndarray:
    """Which samples, ascending, lie in all ranges (factor, low, high)."""
    inside = np.ones(len(run.rows), dtype=bool)
    for factor, low, high in ranges:
        inside &= run.place(factor).between(low, high)
    if not inside.any():
        raise ValueError("the ranges must hold some samples; they hold none. Widen them.")
    return np.flatnonzero(inside)


def selection(run: Run, chosen: np.ndarray, suffix: str) -> bytes:
    """The chosen samples as the bytes of a file."""
    if suffix not in SELECTIONS:
        raise ValueError(f"--out must end in one of {', '.join(SELECTIONS)}; got {suffix or 'no ending'}.")
    return SELECTIONS[suffix](run, chosen)


def _as_particles(suffix: str) -> Callable[[Run, np.ndarray], bytes]:
    def write(run: Run, chosen: np.ndarray) -> bytes:
        particles = run.particles()
        if particles.path.suffix.lower() != suffix:
            raise ValueError(f"the run's particles are {particles.path.name}; choose --out with the same ending.")
        return particles_with(particles[chosen], coordinate_columns([place[chosen] for place in run.places], suffix))

    return write


def _as_csv(run: Run, chosen: np.ndarray) -> bytes:
    header, columns = to_table([place[chosen] for place in run.places], run.rows[chosen])
    lines = [",".join(header), *(",".join(f"{value:.8g}" for value in row) for row in columns)]
    return ("\n".join(lines) + "\n").encode()


def _as_parquet(run: Run, chosen: np.ndarray) -> bytes:
    header, columns = to_table([place[chosen] for place in run.places], run.rows[chosen])
    arrays = {"sample": run.rows[chosen], **dict(zip(header[1:], columns.T[1:], strict=True))}
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
    ".pkl": _as_pickle,
    ".npy": _as_npy,
    ".csv": _as_csv,
    ".parquet": _as_parquet,
}
