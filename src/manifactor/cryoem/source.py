"""Particles, stacks of images and volumes as inputs of `fit`, and what their runs add."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.parameters import Choice, require_count
from manifactor.cryoem.components import (
    Components,
    image_components,
    require_filters,
    volume_components,
)
from manifactor.cryoem.confounders import SIGNIFICANCE, confounder_records
from manifactor.cryoem.directions import checked_width, in_view, require_one_class, require_one_view
from manifactor.cryoem.files.cryosparc import read_cs
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import STACK_SUFFIXES, ImageSource, volume_series
from manifactor.cryoem.one_view import View
from manifactor.cryoem.runs import ParticleRun, particle_file, run_images
from manifactor.estimators.arrays import FEWEST_SAMPLES
from manifactor.judging.evidence import Evidence
from manifactor.judging.table import CRITERIA
from manifactor.operators.neighbors import N_NEIGHBORS
from manifactor.runs.options import IMAGES, STACK, VOLUMES, FitOptions
from manifactor.runs.places import Place
from manifactor.runs.sources import Input, Opened
from manifactor.tables.files import MODE, is_frames
from manifactor.tables.pickles import read_pickled_numbers
from manifactor.tables.stores import is_stored, read_npy

# Images that are fitted at most. Noise needs neighbourhoods wider than itself. With more and more
# images the nearest ones are near by noise alone, so a few thousand with many neighbours tell more
# than all of them.
MOST_IMAGES = 3000
IMAGES_PER_NEIGHBOR = 30


def is_cs(path: Path | str) -> bool:
    """Return whether a file is one of cryoSPARC, by its name."""
    return Path(path).suffix.lower() == ".cs"


class OfParticles(Opened):
    """What images, volumes and rows that belong to particles have in common, read or not."""

    particles: Particles | None  # in the order of the samples
    of_images: bool  # whether samples are made of images of one view
    made = ""  # of what they are made, if of images or volumes

    @property
    def n_named(self) -> int:  # type: ignore[override]
        """Rows of the file of the particles."""
        return 0 if self.particles is None else len(self.particles)

    @property
    def most(self) -> tuple[int, str]:
        """How many samples are fitted at most, and why."""
        why = "few images with many neighbours average out more noise"
        return (MOST_IMAGES, why) if self.of_images else super().most

    def settings(self, n_fitted: int, given: dict) -> tuple[dict, dict[str, Choice]]:
        """Return parameters of the fit that suit images, and what was chosen."""
        if not self.made:
            return {}, {}
        parameters: dict = {"preparation": "none"}
        choices = {}
        if self.of_images and given["n_neighbors"] == "auto":
            wide = n_fitted // IMAGES_PER_NEIGHBOR
            count = parameters["n_neighbors"] = max(wide, min(N_NEIGHBORS, n_fitted - 1))
            why = "low eigenfunctions are most accurate with 64 to 128 neighbours"
            if wide > N_NEIGHBORS:
                why = (
                    f"one for every {IMAGES_PER_NEIGHBOR} fitted images: noise needs "
                    "neighbourhoods wider than itself"
                )
            choices["neighbours"] = Choice(count, why)
        # Noise is removed from the images or volumes.
        text = f"noise is removed where the input is read: {self.made}"
        choices["preparation"] = Choice("principal components", text)
        return parameters, choices


@dataclass(frozen=True)
class ParticleInput(OfParticles, Input):
    """Samples of images, or of volumes; or rows of a table that belong to particles."""

    particles: Particles | None = None  # particles in the order of the samples
    components: Components | None = None  # how images or volumes became samples

    @property
    def of_images(self) -> bool:  # type: ignore[override]
        """Whether samples are made of images of one view."""
        return self.components is not None and "low_pass" in self.components.how

    @property
    def made(self) -> str:  # type: ignore[override]
        """Of what samples are made, if of images or volumes."""
        return "" if self.components is None else self.components.text

    @property
    def noise(self) -> np.ndarray | None:
        """Standard deviation of the noise in every column, where it is known."""
        return None if self.components is None else self.components.weights

    @property
    def record(self) -> dict:
        """The entries of run.json."""
        record: dict = {}
        if self.particles is not None:
            record["particles"] = str(self.particles.path.resolve())
            record["fingerprint"] = self.particles.fingerprint
        if self.components is not None:
            # The run keeps its samples in a file of their own.
            arrays = ("signal_to_noise", "weights")
            known = {name: getattr(self.components, name).tolist() for name in arrays}
            record["components"] = {"text": self.made, **known, **self.components.how}
        return record | super().record

    def files_after(
        self, places: Sequence[Place], changed: Sequence[Path], rng: np.random.Generator
    ) -> tuple[dict, dict[str, bytes]]:
        """Return what explains the factors, and the file of the particles with their places."""
        if self.particles is None:
            return {}, {}
        samples = None if self.components is None else self.samples
        found = confounder_records(self.particles, places, samples=samples, rng=rng)
        return {"confounders": found}, particle_file(self.particles, places, changed)


@dataclass(frozen=True)
class UnreadImages(OfParticles):
    """Images of one view, or volumes, that were found and not read yet."""

    path: Path
    source: ImageSource
    view: View | None = None  # the images in one frame; None for volumes
    options: FitOptions = field(default_factory=FitOptions)
    notes: tuple[str, ...] = ()
    made = "images or volumes"

    @property
    def particles(self) -> Particles | None:  # type: ignore[override]
        """Particles in the order of the images."""
        return None if self.view is None else self.view.particles

    @property
    def rows(self) -> np.ndarray:  # type: ignore[override]
        """Row numbers in the file of the particles, or in the stack."""
        return np.arange(len(self.source)) if self.particles is None else self.particles.rows

    @property
    def of_images(self) -> bool:  # type: ignore[override]
        """Whether these are images of one view."""
        return self.view is not None

    @property
    def n_columns(self) -> int:
        """How many columns are expected."""
        return self.options.components or min(10, self.n_samples - 1)

    @property
    def reading_memory(self) -> float:
        """Bytes that are needed beside the samples while they are made, blocks of images first."""
        shape = self.source.shape
        n, pixels, blocks = float(self.n_samples), float(np.prod(shape)), 2.7e8
        if len(shape) == 3:
            # Volumes are reduced to a ball in 32 voxels, of which there are three copies.
            return blocks + 3 * 4 * n * np.pi / 6 * min(pixels, 32**3)
        # Fourier coefficients of an image that are kept, about.
        p = np.pi * max(1.0, min(24.0, shape[0] / 2 - 1)) ** 2
        # As many images as fit into 256 MB are learned from.
        return blocks + 4 * (2 * min(n, 2**28 / (4 * p)) * p + 4 * p**2)

    def read(self, rng: np.random.Generator) -> ParticleInput:
        """Read all of them and return their principal components."""
        if self.view is None:
            components = volume_components(self.source)
        else:
            components = image_components(self.view, self.options, rng=rng)
        return ParticleInput(
            components.samples,
            self.rows,
            notes=self.notes,
            particles=self.particles,
            components=components,
        )


def particles_of_one_view(
    path: Path, options: FitOptions, view: tuple[float, float] | None
) -> Particles:
    """Return the chosen particles of a file, seen from one direction."""
    choice, passthrough = ParticleChoice.of(options), options.particles
    read = choice.read(path) if passthrough is None else choice.read(Path(passthrough), path)
    particles = choice.chosen(read)
    if view is not None:
        particles = particles[in_view(particles, view, checked_width(options.width, view))]
    require_one_view(particles)
    if not choice.classes:
        require_one_class(particles)
    return particles


def _unread_images(path: Path, particles: Particles | None, options: FitOptions) -> UnreadImages:
    """Return images that are enough, and that the options suit."""
    choice = ParticleChoice.of(options)
    view = run_images(path, particles, phase_flip=options.phase_flip, choice=choice)
    source = view.source
    if len(source) < FEWEST_SAMPLES:
        raise ValueError(
            f"a fit needs at least {FEWEST_SAMPLES} images, and hundreds to show a motion; "
            f"{path} gives {len(source)}. Widen the choice, or add images."
        )
    require_filters(source.shape, source.pixel_size, options)
    if options.components is not None:
        require_count("--components", options.components, low=1, high=len(source))
    label = "cell dimensions in its header" if particles is None else particles.pixel_size_label
    note = (
        f"{path} states no pixel size ({label}); 1 A is taken, so that all lengths are "
        "in pixels. Give it in Angstrom with --pixel-size."
    )
    notes: tuple[str, ...] = () if source.stated_size is not None else (note,)
    if particles is not None and particles.angles is None:
        # Nothing shows whether the images are of one view, which the fit assumes: images of several
        # views differ mostly by the view.
        notes += ("the particles have no angles; all images are taken as one view.",)
    return UnreadImages(path, source, view, options, notes)


def _holds_particles(path: Path) -> bool:
    """Return whether a file holds particle images rather than coordinates."""
    if is_cs(path) and path.is_file():
        # cryoSPARC writes the components of a variability analysis into a .cs, too.
        fields = read_cs(path).dtype.names or ()
        return not any(MODE.fullmatch(name) for name in fields)
    return path.suffix.lower() == ".star"


def paired_particles(path: Path, n_samples: int, options: FitOptions) -> Particles | None:
    """Return the particles that rows of coordinates belong to, in the same order."""
    particles, indices, choice = options.particles, options.ind, ParticleChoice.of(options)
    if particles is None:
        # Indices alone name nothing; ignoring them would hide the missing option.
        if indices is not None:
            raise ValueError(
                "--ind says which of the particles were used; give them with --particles."
            )
        return choice.read(path) if is_cs(path) else None
    if is_cs(path) and is_cs(particles):
        if indices is not None:
            raise ValueError(
                f"--ind is not needed: {path} and {particles} are joined by uid. Leave it out."
            )
        return choice.read(Path(particles), results=path)
    found = choice.read(Path(particles))
    if indices is not None:
        found = found[_checked_indices(Path(indices), len(found))]
    if len(found) != n_samples:
        named = "" if indices is None else f" named by {indices}"
        raise ValueError(
            "there must be one particle for each row of coordinates; "
            f"{particles} has {len(found)}{named} and {path} has {n_samples}. If some "
            "were left out, give cryoDRGN's ind.pkl of just these with --ind."
        )
    return found


def _checked_indices(path: Path, count: int) -> np.ndarray:
    """Return row numbers that name each of `count` particles at most once."""
    require_regular_file(path, "--ind")
    # cryoDRGN pickles its indices, whatever the name of the file.
    is_npy = path.suffix.lower() == ".npy"
    indices = read_npy(path) if is_npy else read_pickled_numbers(path)
    is_flat = indices.ndim == 1 and indices.dtype.kind in "iu"
    if not is_flat or (len(indices) and not indices.min() >= 0):
        raise ValueError(
            f"{path} must hold row numbers from 0; got an array of {indices.dtype}, "
            f"shape {indices.shape}."
        )
    if len(indices) and indices.max() >= count:
        raise ValueError(
            f"{path} names particle {indices.max()}, but there are {count}, counted from 0."
        )
    numbers, counts = np.unique(indices, return_counts=True)
    if len(numbers) < len(indices):
        raise ValueError(
            f"{path} must name each particle once; it names particle "
            f"{numbers[counts.argmax()]} {counts.max()} times."
        )
    return indices


class ParticleSource:
    """Particle images of one view, stacks, volumes, and particles of the rows of a table."""

    @staticmethod
    def open(
        path: Path, options: FitOptions, view: tuple[float, float] | None, further: tuple[Path, ...]
    ) -> Opened | None:
        """Open images or volumes, which are only checked; None for inputs of other kinds."""
        ParticleChoice.of(options).require_folder()
        checked_width(options.width, view)
        if path.is_dir() and not is_stored(path) and not is_frames(path):
            options.require(path, VOLUMES)
            return UnreadImages(path, volume_series(path))
        if path.suffix.lower() in STACK_SUFFIXES:
            options.require(path, STACK)
            return _unread_images(path, None, options)
        if not _holds_particles(path):
            return None
        # The results of a job in cryoSPARC, and its passthrough file.
        joined = is_cs(path) and is_cs(options.particles or "")
        options.require(path, IMAGES, *["particles"] * joined)
        particles = particles_of_one_view(path, options, view)
        return _unread_images(particles.path, particles, options)

    @staticmethod
    def paired(table: Input, options: FitOptions) -> Input:
        """Return a table with the particles that its rows belong to."""
        assert table.path is not None
        particles = paired_particles(table.path, table.n_samples, options)
        if particles is None:
            return table
        if options.trajectories and len(options.input) > 1:
            raise ValueError(
                "particles go with one file of coordinates; --trajectories got "
                f"{len(options.input)}. Leave --particles out, or fit one file."
            )
        known = {each.name: getattr(table, each.name) for each in fields(table)}
        # Row numbers count in the file of the particles, so that `select` finds them there.
        return ParticleInput(**{**known, "rows": particles.rows}, particles=particles)

    @staticmethod
    def fit(options: FitOptions) -> bool:
        """Do all that the command `fit` does, if the options ask for all views."""
        if not options.all_views:
            if options.symmetry != "C1" or options.cluster_of is not None:
                which = "--symmetry" if options.cluster_of is None else "--cluster-of"
                raise ValueError(
                    f"{which} goes with --all-views; images of one view have none. Add "
                    "--all-views, or leave it out."
                )
            return False
        # All views need more of the library than other fits.
        from manifactor.cryoem.commands import fit_particles

        fit_particles(options)
        return True

    @staticmethod
    def run(record: Mapping) -> type[ParticleRun] | None:
        """Return the class of runs of particles, of images, and of volumes."""
        images = (record.get("columns") or {}).get("image")
        known = images or "particles" in record or "components" in record
        return ParticleRun if known else None

    @staticmethod
    def evidence(evidence: Evidence, record: Mapping) -> Evidence:
        """Return the evidence of a fit, with more tests for particles of all views."""
        explained = {
            found["factor"]: found["r2"] if found["p"] <= SIGNIFICANCE else 0.0
            for found in record.get("confounders", [])
            if found["name"] == "view" and found["factor"] > 0
        }
        tests = []
        if "all_views" in record and explained:
            views = CRITERIA["views"]
            failed = [
                f"factor {k} (R^2 {r2:.2f})" for k, r2 in explained.items() if r2 > views.limit
            ]
            tests.append(views.judge(max(explained.values()), dependent=", ".join(failed)))
        shares = enumerate(record.get("all_views", {}).get("consistency", []), start=1)
        known = {number: share for number, share in shares if share is not None}
        if known:
            drift = CRITERIA["consistency"]
            failed = [
                f"factor {k} ({share:.2f})" for k, share in known.items() if share < drift.limit
            ]
            tests.append(drift.judge(min(known.values()), drifting=", ".join(failed)))
        said = {"headline": "", "found": "", "advice": "", **record.get("all_views", {})}
        # The random problems had neither clusters nor factors that were dropped.
        unlike = said["found"] or "factors dropped" in record.get("choices", {})
        words = {"headline": said["headline"], "found": said["found"], "clusters": said["advice"]}
        return evidence.beside(tests, **words, unlike=bool(unlike))
