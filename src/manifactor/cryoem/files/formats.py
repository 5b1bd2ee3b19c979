"""Particles of any program: readers and writers, and which particles are used."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.parameters import require_number
from manifactor.cryoem.files.cryosparc import read_cryosparc, write_cryosparc
from manifactor.cryoem.files.particles import Particles, group_sizes
from manifactor.cryoem.files.stacks import ImageSource, particle_images
from manifactor.cryoem.files.star import read_relion, write_relion
from manifactor.runs.options import OF_PARTICLES, FitOptions

# By suffix. A new format also needs its names of columns, `COLUMN_NAMES` in runs/places.py.
READERS = {".star": read_relion, ".cs": read_cryosparc}
WRITERS = {".star": write_relion, ".cs": write_cryosparc}


def read_particles(path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a STAR or .cs file."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(f"particles must come as one of {', '.join(READERS)}; got {path.name}.")
    require_regular_file(path, "the particles")
    return READERS[suffix](path, pixel_size=pixel_size)


def particles_with(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the file of these particles, in its order, with columns added."""
    order = np.argsort(particles.rows)
    ordered = {name: np.asarray(column)[order] for name, column in columns.items()}
    return WRITERS[particles.path.suffix.lower()](particles[order], ordered)


# What states the class and the optics group, in RELION's and in cryoSPARC's files.
GROUP_LABELS = {
    "class": "rlnClassNumber, alignments3D/class or alignments2D/class",
    "optics group": "rlnOpticsGroup or ctf/exp_group_id",
}


@dataclass(frozen=True)
class ParticleChoice:
    """Which particles are used, where their images are, and their pixel size."""

    datadir: str | None = None  # folder that holds the stacks; None for the project's folder
    pixel_size: float | None = None  # angstrom; None for what the files state
    # Numbers of the classes and optics groups to use; all if empty
    classes: tuple[int, ...] = ()
    optics_groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.pixel_size is not None:
            require_number("pixel_size", self.pixel_size, above=0)

    @property
    def folder(self) -> Path | None:
        """The folder that holds the stacks, if one is given."""
        return None if self.datadir is None else Path(self.datadir)

    def require_folder(self) -> None:
        """Refuse a folder of stacks that does not exist."""
        if self.folder and not self.folder.is_dir():
            raise ValueError(
                f"--datadir must be the folder that holds the stacks; {self.datadir} is not one."
            )

    @classmethod
    def of(cls, options: FitOptions) -> "ParticleChoice":
        """Return the choice that options of `fit` make."""
        return cls(**options.values(*OF_PARTICLES))

    @classmethod
    def of_run(cls, record: Mapping) -> "ParticleChoice":
        """Return the choice that run.json describes."""
        given = record.get("particle_choice", {})
        numbers = (tuple(given.get(name, ())) for name in ("classes", "optics_groups"))
        return cls(given.get("datadir"), given.get("pixel_size"), *numbers)

    def read(self, path: Path, results: Path | None = None) -> Particles:
        """Read all particles of a file."""
        if results is None:
            return read_particles(path, pixel_size=self.pixel_size)
        return read_cryosparc(path, pixel_size=self.pixel_size, results=results)

    def chosen(self, particles: Particles) -> Particles:
        """Return the particles of the chosen classes and optics groups."""
        inside = np.ones(len(particles), dtype=bool)
        wanted = {"class": self.classes, "optics group": self.optics_groups}
        for name, numbers in wanted.items():
            if not numbers:
                continue
            option, groups = f"--{name.replace(' ', '-')}", particles.microscope.get(name)
            if groups is None:
                raise ValueError(
                    f"{option} needs the {name} of every particle ({GROUP_LABELS[name]}); "
                    f"{particles.path} has none."
                )
            for number in numbers:
                if number not in groups:
                    raise ValueError(
                        f"{option} must be one of {group_sizes(groups)}; got {number}."
                    )
            inside &= np.isin(groups, numbers)
        if not inside.any():
            raise ValueError(
                f"the chosen classes and optics groups must share particles; those of "
                f"{particles.path} share none."
            )
        return particles[inside]

    def images(self, particles: Particles) -> ImageSource:
        """Return the images of particles."""
        self.require_folder()
        return particle_images(particles, folder=self.folder)
