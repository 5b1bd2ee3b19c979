"""Memory and time of a fit of all views, estimated before any image is read."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.memory import available_memory
from manifactor._support.parameters import Choice, choices_as_json
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.factoring import (
    AllViews,
    AllViewsSettings,
    factor_all_views,
    samples_of,
)
from manifactor.cryoem.all_views.model import MotionModel, view_map
from manifactor.cryoem.all_views.placing import Placed
from manifactor.cryoem.all_views.principal import PrincipalSettings
from manifactor.cryoem.all_views.shown import motion_records
from manifactor.cryoem.all_views.slices import point_group
from manifactor.cryoem.all_views.transforms import (
    Transforms,
    TransformSettings,
    known_angles,
    read_transforms,
    require_pixel_size,
    transform_grid,
)
from manifactor.cryoem.all_views.volumes import MODEL_FILE, UNKNOWN, EvenScale, scales_of
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.checkpoints import input_state, particle_file, warn_of_changes
from manifactor.runs.confounders import confounder_records
from manifactor.runs.cost import Cost, PartCost, cores_of_worker, cost_of_parts
from manifactor.runs.folder import write_run
from manifactor.runs.places import Place, all_places
from manifactor.runs.task import absolute, changed_options, repeated_options
from manifactor.tables.images import is_one_view


@dataclass(frozen=True)
class AllViewsRates:
    """Rates of `forecast_all_views`.

    They were measured on a core of 2.4 GHz, in fits of 3,000 to 100,000 images of 48 and 256
    pixels.
    """

    # Bytes a second of reading images, in single precision, and of their Fourier transforms.
    read_bytes: float = 3.5e8
    # Seconds for an image in a round of expectation maximisation, and in a comparison with volumes
    # alone; and those of a set of volumes that is solved for, whatever the number of images.
    round_seconds: float = 5e-4
    compare_seconds: float = 1.5e-4
    volume_seconds: float = 0.4
    # Rounds from known places, and cells of views that are compared: estimates.
    known_rounds: int = 5
    n_cells: int = 10
    # Seconds of factoring the coordinates of as many images as are fitted at most, and of all that
    # is written of an image.
    factor_seconds: float = 8.0
    write_seconds: float = 1e-4
    # Bytes that are held for an image: its coefficients, the covariance of its coordinates, and its
    # line of text; and for one that volumes are learned from, products of its features. Beside
    # them, a block of images that is read, volumes, and the sums of each thread.
    image_bytes: float = 4000.0
    learned_bytes: float = 12_000.0
    shared_bytes: float = 8e8
    thread_bytes: float = 1e8


def forecast_all_views(
    n_images: int,
    size: int,
    *,
    n_mates: int = 1,
    n_workers: int = 1,
    n_cores: int | None = None,
    settings: AllViewsSettings = AllViewsSettings(),
    rates: AllViewsRates = AllViewsRates(),
) -> Cost:
    """Estimate memory and time of a fit of all views, before any image is read."""
    most_threads = settings.principal.regression.max_threads
    threads = min(cores_of_worker(n_workers, n_cores), most_threads)
    # Small images have no frequencies up to the usual cut.
    cut = min(1.0, (size // 2 - 1) / TransformSettings().cycles)
    volume_seconds = rates.volume_seconds * cut**3
    fitted = min(settings.fitted_share * n_images, settings.max_fitted)
    n_shown = n_images * n_mates
    learned = min(settings.placing.learned, n_shown)
    here = rates.shared_bytes + rates.image_bytes * n_images
    there = rates.shared_bytes + rates.thread_bytes * threads
    there += rates.image_bytes * n_images / n_workers

    def divided(name: str, work: float, volumes: int, memory: float) -> PartCost:
        seconds = work / (threads * n_workers) + volume_seconds * volumes
        return PartCost(name, seconds, there + memory / n_workers, on_workers=True)

    return cost_of_parts(
        [
            # A core reads while the others wait for the disk.
            divided("reading", threads * _reading_seconds(n_images, size, rates), 0, 0),
            divided("volumes", *_volume_work(n_images, n_shown, settings, rates), 0),
            PartCost("factors", rates.factor_seconds * fitted / settings.max_fitted, here),
            divided(
                "placing",
                *_placing_work(n_images, n_shown, fitted * n_mates, settings, rates),
                rates.learned_bytes * learned,
            ),
            PartCost("writing", rates.write_seconds * n_images, here),
        ],
        n_workers=n_workers,
    )


def _reading_seconds(n_images: int, size: int, rates: AllViewsRates) -> float:
    return 4.0 * n_images * size**2 / rates.read_bytes


def _volume_work(
    n_images: int, n_shown: int, settings: AllViewsSettings, rates: AllViewsRates
) -> tuple[float, int]:
    """Return seconds of a core for principal volumes, and how many are solved for."""
    principal = settings.principal
    # Rounds of two half sets, each with one to start from, and of the final volumes.
    images = min(2 * principal.half_set, n_shown) * (principal.rounds + 1)
    images += min(principal.learned, n_shown) * principal.final_rounds
    # All images are compared with the principal volumes.
    seconds = rates.round_seconds * images + rates.compare_seconds * n_images
    return seconds, 2 * principal.rounds + principal.final_rounds


def _placing_work(
    n_images: int, n_shown: int, n_known: float, settings: AllViewsSettings, rates: AllViewsRates
) -> tuple[float, int]:
    """Return seconds of a core for volumes of the motions and places, and volumes."""
    placing = settings.placing
    # Rounds from known places, which end when no term is added; from all, in which images are
    # compared with volumes before and after; and of cells of views.
    images = (
        min(n_known, placing.learned) * rates.known_rounds
        + min(placing.learned, n_shown) * (2 * placing.rounds + 1)
        + min(placing.consistency.compared, n_images) * rates.n_cells
    )
    seconds = rates.round_seconds * images + rates.compare_seconds * n_images
    # Three sets of volumes in a round of the motions, and in a cell of views.
    return seconds, 3 * (rates.known_rounds + placing.rounds + rates.n_cells)


# Particles of all views: read once, factored, placed, and written as a run folder.

OWN_OPTIONS = ("symmetry", "low_pass", "mask_radius", "seed")


@dataclass(frozen=True)
class AllViewsTask:
    """Particles of all views, and how to treat them."""

    path: Path  # A STAR or .cs file with angles
    choice: ParticleChoice = field(default_factory=ParticleChoice)
    symmetry: str = "C1"  # point group of the molecule
    low_pass: float | None = None  # angstrom; None for what `read_transforms` chooses
    mask_radius: float | None = None  # angstrom; None for what `read_transforms` chooses
    settings: dict = field(default_factory=dict)  # parameters of the factorizer
    seed: int = 0

    @property
    def arguments(self) -> list[str]:
        """Arguments of `manifactor` that repeat this fit, without the defaults."""
        usual = asdict(AllViewsTask(self.path))
        own = {name: getattr(self, name) for name in OWN_OPTIONS}
        return [
            "fit",
            str(self.path.absolute()),
            "--all-views",
            *repeated_options(self.choice.options),
            *changed_options(own, usual),
            *changed_options(self.settings, ManifoldFactorizer().get_params()),
        ]

    @property
    def anywhere(self) -> "AllViewsTask":
        """The same task for a process that may work in another folder."""
        choice = replace(self.choice, datadir=absolute(self.choice.datadir))
        return replace(self, path=self.path.absolute(), choice=choice)

    def read(self) -> tuple[Particles, ImageSource]:
        """Return the particles and their images, which are not read yet."""
        point_group(self.symmetry)
        particles = self.choice.chosen(self.choice.read(self.path))
        known_angles(particles)
        if is_one_view(particles):
            raise ValueError(
                "particles of all views must be seen from many directions; those of "
                f"{self.path} are seen from one. Leave --all-views out."
            )
        source = self.choice.images(particles)
        require_pixel_size(source, particles)
        transform_grid(source, low_pass=self.low_pass, mask_radius=self.mask_radius)
        return particles, source

    def forecast(
        self, source: ImageSource, *, n_workers: int = 1, n_cores: int | None = None
    ) -> Cost:
        """Return what the fit costs; refuse more than the machine's memory."""
        cost = forecast_all_views(
            len(source),
            source.shape[0],
            n_mates=len(point_group(self.symmetry)),
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
        stages = (stages or Stages()).start(callback, self.seed)
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
            rng=np.random.default_rng(self.seed),
            low_pass=self.low_pass,
            mask_radius=self.mask_radius,
            stages=stages,
            workers=workers,
        )
        found = factor_all_views(
            transforms,
            seed=self.seed,
            symmetry=self.symmetry,
            parameters=self.settings,
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
            particles, places, all_views=True, rng=np.random.default_rng(self.seed)
        )
        return {
            "command": "fit",
            "input": str(self.path.resolve()),
            "particles": str(self.path.resolve()),
            "fingerprint": particles.fingerprint,
            "particle_choice": self.choice.record,
            "seed": self.seed,
            "arguments": self.settings,
            "reproduce": shell_line("manifactor", *self.arguments),
            "n_samples": len(particles),
            "n_fitted": len(found.rows),
            "confounders": confounded,
            "choices": choices_as_json(choices(transforms, found)),
            "all_views": {
                "symmetry": self.symmetry,
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
