"""Particles of all views: read once, factored, placed, and written as a run folder."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.memory import available_memory
from manifactor._support.parameters import Choice, choices_as_json
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.factoring import AllViews, factor_all_views, samples_of
from manifactor.cryoem.all_views.model import MotionModel, view_map
from manifactor.cryoem.all_views.placing import Placed
from manifactor.cryoem.all_views.principal import PrincipalSettings
from manifactor.cryoem.all_views.shown import motion_records
from manifactor.cryoem.all_views.slices import point_group
from manifactor.cryoem.all_views.transforms import (
    Transforms,
    known_angles,
    read_transforms,
    require_pixel_size,
    transform_grid,
)
from manifactor.cryoem.all_views.volumes import MODEL_FILE, UNKNOWN, EvenScale, scales_of
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.checkpoints import input_state, particle_file, warn_of_changes
from manifactor.runs.confounders import confounder_records
from manifactor.runs.cost import Cost, forecast_all_views
from manifactor.runs.folder import write_run
from manifactor.runs.options import FitOptions
from manifactor.runs.places import Place, all_places
from manifactor.runs.task import particle_choice
from manifactor.tables.images import is_one_view


@dataclass(frozen=True)
class AllViewsTask:
    """Particles of all views, and how to treat them."""

    path: Path  # A STAR or .cs file with angles
    options: FitOptions = field(default_factory=FitOptions)

    @property
    def arguments(self) -> list[str]:
        """Arguments of `manifactor` that repeat this fit, without the defaults."""
        return replace(self.options, all_views=True).arguments(self.path)

    @property
    def anywhere(self) -> "AllViewsTask":
        """The same task for a process that may work in another folder."""
        return replace(self, path=self.path.absolute(), options=self.options.anywhere)

    def read(self) -> tuple[Particles, ImageSource]:
        """Return the particles and their images, which are not read yet."""
        options, choice = self.options, particle_choice(self.options)
        point_group(options.symmetry)
        particles = choice.chosen(choice.read(self.path))
        known_angles(particles)
        if is_one_view(particles):
            raise ValueError(
                "particles of all views must be seen from many directions; those of "
                f"{self.path} are seen from one. Leave --all-views out."
            )
        source = choice.images(particles)
        require_pixel_size(source, particles)
        transform_grid(source, low_pass=options.low_pass, mask_radius=options.mask_radius)
        return particles, source

    def forecast(
        self, source: ImageSource, *, n_workers: int = 1, n_cores: int | None = None
    ) -> Cost:
        """Return what the fit costs; refuse more than the machine's memory."""
        cost = forecast_all_views(
            len(source),
            source.shape[0],
            n_mates=len(point_group(self.options.symmetry)),
            n_workers=n_workers,
            n_cores=n_cores,
        )
        if not cost.fits:
            raise MemoryError(
                f"the fit must fit into memory; {len(source)} particles need {cost}, "
                f"and this machine can give {available_memory() / 1e9:.1f} GB. Give "
                "fewer particles, such as those of one --class or --optics-group."
            )
        return cost

    def fit(
        self,
        particles: Particles,
        source: ImageSource,
        out: Path,
        *,
        overwrite: bool = False,
        stages: Stages | None = None,
        callback=None,
        workers: Workers = Here(),
    ) -> tuple[ManifoldFactorizer, dict]:
        """Find the motions and write the run folder.

        Images are read and placed by `workers`; results do not depend on them.
        """
        before = input_state([self.path])
        stages = (stages or Stages()).start(callback, self.options.seed)
        transforms, found = self._factored(particles, source, stages=stages, workers=workers)
        places = places_of(found)
        record = {**self._record(particles, transforms, found, places), **before.record}
        record["all_views"]["seconds"] = stages.timings
        trees = {}
        if found.placed is not None:
            model = trees[MODEL_FILE] = model_of(transforms, found.placed)
            record["all_views"]["motions"] = motion_records(model.views, places)
        files = particle_file(particles, places, before)
        warn_of_changes(before)
        write_run(
            found.fit,
            out,
            record=record,
            places=places,
            rows=particles.rows,
            files=files,
            trees=trees,
            overwrite=overwrite,
        )
        return found.fit, record

    def _factored(
        self, particles: Particles, source: ImageSource, *, stages: Stages, workers: Workers
    ) -> tuple[Transforms, AllViews]:
        """Return the images, transformed, and the motions that they show."""
        transforms = read_transforms(
            source,
            particles,
            rng=np.random.default_rng(self.options.seed),
            low_pass=self.options.low_pass,
            mask_radius=self.options.mask_radius,
            stages=stages,
            workers=workers,
        )
        found = factor_all_views(
            transforms,
            seed=self.options.seed,
            symmetry=self.options.symmetry,
            parameters=self.options.parameters,
            stages=stages,
            workers=workers,
        )
        return transforms, found

    def _record(
        self,
        particles: Particles,
        transforms: Transforms,
        found: AllViews,
        places: tuple[Place, ...],
    ) -> dict:
        confounded = confounder_records(
            particles, places, all_views=True, rng=np.random.default_rng(self.options.seed)
        )
        return {
            "command": "fit",
            "input": str(self.path.resolve()),
            "particles": str(self.path.resolve()),
            "fingerprint": particles.fingerprint,
            "particle_choice": particle_choice(self.options).record,
            "seed": self.options.seed,
            "arguments": self.options.parameters,
            "reproduce": shell_line("manifactor", *self.arguments),
            "n_samples": len(particles),
            "n_fitted": len(found.rows),
            "confounders": confounded,
            "choices": choices_as_json(choices(transforms, found)),
            "all_views": {
                "symmetry": self.options.symmetry,
                "agreement": found.principal.agreement.tolist(),
                "information": found.principal.information.tolist(),
                "consistency": _consistency(found),
            },
        }


def _consistency(found: AllViews) -> list[float | None]:
    """How much views predict of views far from them; None where it is not known."""
    if found.placed is None:
        return []
    shares = found.placed.consistency.tolist()
    return [None if np.isnan(share) else share for share in shares]


def choices(transforms: Transforms, found: AllViews) -> dict[str, Choice]:
    """Return what was chosen automatically."""
    resolution = transforms.box / transforms.grid.cut
    fitted, total = len(found.rows), len(transforms)
    principal = found.principal
    return {
        "low-pass": Choice(f"{resolution:.3g} A", "motions show at a tenth of a molecule's size"),
        "principal volumes": Choice(
            principal.rank,
            "two half sets of images agree about them: correlations above "
            f"{PrincipalSettings().reproducible:g} ("
            f"{_listed(principal.agreement[: principal.rank])})",
        ),
        "samples fitted": Choice(
            f"{fitted:,} of {total:,}",
            "their views show all motions best; all are placed by their images",
        ),
        "preparation": Choice(
            "principal volumes", "noise is removed where images become coordinates"
        ),
        **{name: choice for name, choice in found.fit.choices_.items() if name != "preparation"},
    }


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def places_of(found: AllViews) -> tuple[Place, ...]:
    """Return the places of all particles on the factors."""
    if found.placed is None:
        return all_places(found.fit, samples_of(found.principal))
    scales = scales_of(found.fit, quantiles=quantiles_of(found.placed))
    return tuple(
        _place(scale, found.placed.places[:, k], found.placed.deviations[:, k])
        for k, scale in enumerate(scales)
        if isinstance(scale, EvenScale)
    )


def quantiles_of(placed: Placed, *, n_levels: int = 41) -> np.ndarray:
    """Return quantiles of the places of all particles, (n_motions, n_levels)."""
    return np.quantile(placed.places, np.linspace(0, 1, n_levels), axis=0).T


def _place(scale: EvenScale, place: np.ndarray, deviation: np.ndarray) -> Place:
    """Return places in the coordinate of a factor."""
    # The slope over a tenth of the motion: between two samples it is accidental.
    low, high = place - 0.05, place + 0.05
    if scale.topology == "interval":
        low, high = np.maximum(low, 0), np.minimum(high, 1)
    slope = (scale.coordinates(high) - scale.coordinates(low)) / (high - low)
    found = scale.coordinates(place)
    return Place(
        found % (2 * np.pi) if scale.topology == "circle" else found,
        scale.topology,
        # An image that shows nothing has no confidence.
        confidence=np.clip(1 - deviation / UNKNOWN, 0, 1),
        deviation=deviation * slope,
    )


def model_of(transforms: Transforms, placed: Placed) -> MotionModel:
    """Return what shows the molecule in any state from any direction."""
    return MotionModel(
        grid=transforms.grid,
        box=transforms.box,
        motions=placed.motions,
        volumes=placed.volumes.astype(np.complex64),
        views=view_map(transforms.rotations, placed.deviations),
        consistency=placed.consistency,
        quantiles=quantiles_of(placed),
    )
