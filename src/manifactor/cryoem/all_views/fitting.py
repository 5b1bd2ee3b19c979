"""Particles of all views: read once, factored, placed, and written as a run folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.memory import available_memory
from manifactor._support.parameters import Choice, choices_as_json
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.model import UNKNOWN, MotionModel, motion_records, view_map
from manifactor.cryoem.all_views.motions import LEVELS, Motions
from manifactor.cryoem.all_views.placing import PlacedParticles, even_places, place_particles
from manifactor.cryoem.all_views.principal import REPRODUCIBLE, PrincipalVolumes, principal_volumes
from manifactor.cryoem.all_views.slices import point_group
from manifactor.cryoem.all_views.transforms import Transforms, read_transforms, transform_grid
from manifactor.cryoem.all_views.volumes import MODEL_FILE, EvenScale, scales_of
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.confounders import confounder_records
from manifactor.runs.cost import Cost, forecast_all_views
from manifactor.runs.folder import input_state, particle_file, warn_of_changes, write_run
from manifactor.runs.options import FitOptions
from manifactor.runs.places import Place, all_places
from manifactor.runs.task import particle_choice
from manifactor.tables.images import is_one_view


@dataclass(frozen=True)
class AllViews:
    """What was found in images of all views."""

    fit: ManifoldFactorizer  # fitted to the principal coordinates of some particles
    rows: np.ndarray  # these particles
    principal: PrincipalVolumes
    # All particles on the motions; None if a factor is neither an interval nor a circle
    placed: PlacedParticles | None


def factor_all_views(
    transforms: Transforms,
    *,
    seed: int = 0,
    symmetry: str = "C1",
    parameters: Mapping | None = None,
    stages: Stages | None = None,
    workers: Workers = Here(),
) -> AllViews:
    """Find the independent motions of a molecule, and place all particles on them."""
    stages = stages or Stages()
    how: dict = {"seed": seed, "symmetry": symmetry, "stages": stages, "workers": workers}
    principal = principal_volumes(transforms, **how)
    if not principal.rank:
        best = principal.agreement.max()
        raise ValueError(
            "the images must show a motion; volumes from two half sets of them have "
            f"nothing in common but their mean (the highest correlation is {best:.2f}). "
            "The molecule is rigid, or its motion is below the noise. Add images, or check "
            "poses and pixel size."
        )
    # The surest coordinates are factored, whose views show all motions. The others are placed.
    variance = np.einsum("nii,i->n", principal.covariance, principal.information)
    count = min(max(int(0.4 * len(variance)), 1), 6000)
    rows = np.sort(np.argpartition(variance, count - 1)[:count])
    own = {"preparation": "none", "random_state": seed, "callback": stages.report}
    fit = ManifoldFactorizer(**{**(parameters or {}), **own})
    fit.fit(samples_of(principal)[rows])
    topologies = tuple(factor.topology for factor in fit.factors_)
    if not set(topologies) <= set(LEVELS):
        return AllViews(fit, rows, principal, None)
    known = np.column_stack([even_places(found.coordinate) for found in fit.factors_])
    placed = place_particles(transforms, Motions(topologies), rows, known, **how)
    return AllViews(fit, rows, principal, placed)


def samples_of(principal: PrincipalVolumes) -> np.ndarray:
    """Return principal coordinates in units of their noise, (n, rank)."""
    return principal.coordinates * np.sqrt(principal.information)


@dataclass(frozen=True)
class AllViewsTask:
    """Particles of all views, and how to treat them."""

    path: Path  # a STAR or .cs file with angles
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
        source = choice.images(particles)
        low_pass, mask_radius = options.low_pass, options.mask_radius
        transform_grid(source, particles, low_pass=low_pass, mask_radius=mask_radius)
        if is_one_view(particles):
            raise ValueError(
                "particles of all views must be seen from many directions; those of "
                f"{self.path} are seen from one. Leave --all-views out."
            )
        return particles, source

    def forecast(self, source: ImageSource, *, n_workers: int = 1) -> Cost:
        """Return what the fit costs; refuse more than the machine's memory."""
        cost = forecast_all_views(
            len(source),
            source.shape[0],
            n_mates=len(point_group(self.options.symmetry)),
            n_workers=n_workers,
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
        rng = np.random.default_rng(self.options.seed)
        confounded = confounder_records(particles, places, all_views=True, rng=rng)
        shares = [] if found.placed is None else found.placed.consistency.tolist()
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
                # How much views predict of views far from them; None where it is not known.
                "consistency": [None if np.isnan(share) else share for share in shares],
            },
        }


def choices(transforms: Transforms, found: AllViews) -> dict[str, Choice]:
    """Return what was chosen automatically."""
    resolution = transforms.box / transforms.grid.cut
    principal = found.principal
    return {
        "low-pass": Choice(f"{resolution:.3g} A", "motions show at a tenth of a molecule's size"),
        "principal volumes": Choice(
            principal.rank,
            f"two half sets of images agree about them: correlations above {REPRODUCIBLE:g} "
            f"({', '.join(f'{value:.2f}' for value in principal.agreement[: principal.rank])})",
        ),
        "samples fitted": Choice(
            f"{len(found.rows):,} of {len(transforms):,}",
            "their views show all motions best; all are placed by their images",
        ),
        "preparation": Choice(
            "principal volumes", "noise is removed where images become coordinates"
        ),
        **{name: choice for name, choice in found.fit.choices_.items() if name != "preparation"},
    }


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


def quantiles_of(placed: PlacedParticles) -> np.ndarray:
    """Return quantiles of the places of all particles, (n_motions, n_levels)."""
    return np.quantile(placed.places, np.linspace(0, 1, 41), axis=0).T


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


def model_of(transforms: Transforms, placed: PlacedParticles) -> MotionModel:
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


# Memory and time, estimated before any image is read.
