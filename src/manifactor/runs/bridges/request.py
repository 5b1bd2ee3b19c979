"""What is exported: a run in bins along one factor, and where the files will lie."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from manifactor._support.workers import Here, Workers
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.stack_paths import image_folder
from manifactor.cryoem.stacks import ImageSource, particle_images
from manifactor.inputs.files import read_samples
from manifactor.inputs.one_view import is_one_view
from manifactor.runs.bridges.points import steady_samples
from manifactor.runs.motions import is_of_all_views
from manifactor.runs.places import Place
from manifactor.runs.run import Run


@dataclass(frozen=True)
class Request:
    """A run in bins along one factor, to be exported."""

    run: Run
    place: Place  # on the factor
    others: list[Place]  # on the other factors
    labels: np.ndarray  # (n,)
    centres: np.ndarray  # (n_bins,)
    folder: Path  # where the files will lie, absolute
    # Folder of the model that gave the coordinates; None for that of the input
    training: Path | None = None
    workers: Workers = field(default_factory=Here)  # who writes the files of bins

    @property
    def particles(self) -> Particles | None:
        """Particles of the run, in its order; None if it knows none."""
        return self.run.particles if "particles" in self.run.record else None

    @property
    def symmetry(self) -> str:
        """Point group of the molecule; C1 where the fit was told none."""
        return self.run.record.get("all_views", {}).get("symmetry", "C1")

    @cached_property
    def image_folder(self) -> Path:
        """Folder from which the images are named, absolute.

        Where images were not found, it is that of the file of particles.
        """
        path = self.run.particles.path.absolute()
        return self._found_folder or path.parent

    @cached_property
    def _found_folder(self) -> Path | None:
        """The folder from which all names of stacks lead to them."""
        datadir = self.run.choice.datadir
        folder = None if datadir is None else Path(datadir)
        return image_folder(self.run.particles, folder=folder)

    @cached_property
    def first_image(self) -> ImageSource | None:
        """The first image, which tells box and pixel size; None if it is not found."""
        particles = self.particles
        if particles is None or particles.stack is None:
            return None
        found = self._found_folder
        return None if found is None else particle_images(particles[:1], folder=found)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with volumes of these particles, in sentences."""
        particles = self.particles
        if particles is None:
            return []
        found = []
        if particles.angles is None:
            found.append(
                f"{particles.path} has no angles, without which no volume can be "
                "reconstructed. Fit with --particles that were refined in 3-D."
            )
        elif is_one_view(particles):
            found.append(
                "all particles of this run show the molecule from one direction, and "
                "volumes reconstructed from one view are meaningless. Export a run of "
                "coordinates of particles in all views (cryoDRGN, 3D variability)."
            )
        if particles.stack is not None and self._found_folder is None:
            found.append(
                f"the images that {particles.path} names were not found in its folder, "
                "in one above it or in the current folder; the commands run where they "
                "are."
            )
        return found

    def latents(self) -> np.ndarray:
        """Return the coordinates that were fitted."""
        path = self.run.input
        if is_of_all_views(self.run.record):
            raise ValueError(
                "this needs the coordinates that the program itself found; "
                f"{self.run.folder} was fitted to images of all views. For volumes "
                "along its motions, use manifactor average, or export to relion or "
                "aspire (STAR files) or cryosparc (.cs files)."
            )
        if path.suffix.lower() == ".cs":
            raise ValueError(
                "cryoSPARC makes its own volumes of these components: select particles "
                "to .cs and use it there."
            )
        if "components" in self.run.record or not path.is_file():
            raise ValueError(
                "this needs the coordinates that the program itself found; "
                f"{self.run.folder} was fitted to images or volumes. Fit its z file "
                "with --particles."
            )
        latents = read_samples(path)
        if len(latents) != len(self.run.rows):
            raise ValueError(
                f"{path} has {len(latents)} rows now and had {len(self.run.rows)} when "
                "fitted. Fit again."
            )
        return latents

    def points(self, latents: np.ndarray) -> bytes:
        """Return the fitted coordinates of one sample in each bin, as text."""
        # A program decodes its own coordinates, not ours: a point is a sample's.
        rows = steady_samples(self.place, self.others, self.labels, self.centres)
        lines = []
        for point in latents[rows]:
            # Eight digits are what single precision has.
            lines.append(" ".join(f"{value:.8g}" for value in point) + "\n")
        return "".join(lines).encode()
