"""Lines of a shell: commands with quoted words, and comments."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from textwrap import wrap

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import one_line, printable, shell_line
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.volumes import is_of_all_views
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource, image_folder, particle_images
from manifactor.runs.places import Place
from manifactor.runs.run import Run
from manifactor.tables.files import read_samples
from manifactor.tables.images import is_one_view


def command(*words: str | Path) -> str:
    """Return a command as one line; words with blanks or signs of the shell are quoted.

    >>> command("cd", Path("/data/my run;2"))
    "cd '/data/my run;2'\\n"
    """
    return shell_line(*words) + "\n"


def comment(text: str, *, width: int | None = 88) -> str:
    """Return a text as lines of a comment.

    >>> comment("one bin after the other")
    '# one bin after the other\\n'
    """
    # Line ends in the name of a file would end the comment: all blanks are made one.
    line = printable(one_line(text))
    if width is None:
        return f"# {line}\n"
    lines = wrap(line, width - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def warning_comments(messages: Iterable[str]) -> str:
    """Return warnings as comments, for the reader of a file of commands."""
    return "".join(comment(f"WARNING: {message}") for message in messages)


# Points along a factor: one sample of each bin, at one place on the other factors.


@dataclass(frozen=True)
class PointSettings:
    """Settings of `steady_samples`."""

    # Places on the other factors that are tried as the common one.
    n_candidates: int = 300

    # Samples near the common place, of which the one in the middle of its bin is taken.
    n_near: int = 5


def steady_samples(
    place: Place,
    others: Sequence[Place],
    labels: np.ndarray,
    centres: np.ndarray,
    *,
    settings: PointSettings = PointSettings(),
) -> np.ndarray:
    """Return one sample of each bin, all at about one place on the other factors.

    Empty bins have none. Points are samples themselves, so none is off the data. The common place
    is the one, of some drawn at random, that is nearest to all bins.
    """
    # Every sample is in a bin here, so the labels are the bins that are not empty.
    filled = np.unique(labels)
    bins = [np.flatnonzero(labels == k) for k in filled]
    if others:
        bins = _near_common_place(others, bins, settings)
    chosen = []
    for k, rows in zip(filled, bins, strict=True):
        distance = _distance_from(centres[k], place[rows])
        chosen.append(rows[distance.argmin()])
    return np.array(chosen)


def _near_common_place(
    others: Sequence[Place], bins: Sequence[np.ndarray], settings: PointSettings
) -> list[np.ndarray]:
    """Return the rows of each bin nearest to one place on the other factors."""
    # In units of the standard deviation, so that no factor dominates the distance.
    features = np.column_stack([other.features / other.features.std() for other in others])
    trees = [KDTree(features[rows]) for rows in bins]
    # A fixed seed: the same command gives the same points.
    order = np.random.default_rng(0).permutation(len(features))
    candidates = features[order[: settings.n_candidates]]
    farthest = np.zeros(len(candidates))
    for rows, tree in zip(bins, trees, strict=True):
        # All the samples that are taken from a bin must lie near the place.
        last = min(settings.n_near, len(rows))
        distance = tree.query(candidates, [last])[0][:, 0]
        # The farthest bin decides.
        farthest = np.maximum(farthest, distance)
    common = candidates[farthest.argmin()]
    near = []
    for rows, tree in zip(bins, trees, strict=True):
        _, nearest = tree.query(common, min(settings.n_near, len(rows)))
        # For a single neighbour `query` returns a number instead of an array.
        near.append(rows[np.atleast_1d(nearest)])
    return near


def _distance_from(centre: float, place: Place) -> np.ndarray:
    """Return how far samples lie from the middle of their bin."""
    distance = np.abs(place.displayed - centre)
    if place.topology == "circle":
        # The shorter way round.
        return np.minimum(distance, 360 - distance)
    return distance


# What is exported: a run in bins along one factor, and where the files will lie.


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
