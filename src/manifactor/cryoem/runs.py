"""Runs of particles, of images and of volumes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from manifactor._support.errors import warn_caller
from manifactor._support.files import real_path, require_regular_file
from manifactor.cryoem.directions import in_view, is_one_view, require_one_view
from manifactor.cryoem.files.cryosparc import read_cs
from manifactor.cryoem.files.formats import ParticleChoice, particles_with
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import STACK_SUFFIXES, ImageArray, stack_images, volume_series
from manifactor.cryoem.files.star import read_star
from manifactor.cryoem.one_view import View, can_weigh
from manifactor.runs.folder import InputWarning
from manifactor.runs.places import Place, coordinate_columns
from manifactor.runs.run import Run


@dataclass(frozen=True)
class ParticleRun(Run):
    """A run whose samples are, or belong to, images or volumes."""

    # Where only samples seen from one direction were kept, that direction
    view: tuple[float, float] | None = None

    @cached_property
    def particles(self) -> Particles:
        """Particles of the run's samples, in their order."""
        if "particles" not in self.record:
            return super().particles
        # All particles of the file, or those that a job's results were joined with.
        path = Path(self.record["particles"])
        is_cs = {self.input.suffix.lower(), path.suffix.lower()} == {".cs"}
        joined = is_cs and real_path(path) != real_path(self.input)
        everything = ParticleChoice.of_run(self.record).read(
            path, results=self.input if joined else None
        )
        position = np.full(1 + everything.rows.max(initial=-1), -1)
        position[everything.rows] = np.arange(len(everything))
        inside = self.rows.max(initial=-1) < len(position)
        if not inside or (position[self.rows] < 0).any():
            raise ValueError(
                f"{everything.path} has fewer particles than when it was fitted. Fit again."
            )
        found = everything[position[self.rows]]
        # A fingerprint is of all samples: it says nothing about some of them.
        whole = len(self.rows) == self.record["n_samples"]
        if whole and found.fingerprint != self.record.get("fingerprint"):
            raise ValueError(
                f"{everything.path} holds other particles, or another order, than "
                "when it was fitted. Fit again."
            )
        return found

    def images(self) -> View:
        """Return the images, or volumes, of the run's samples, in their order."""
        shape = self._columns.image if "columns" in self.record else None
        if shape is not None:
            plain = {**self.record["columns"], "mean": None, "scale": None}
            samples = replace(self, record={**self.record, "columns": plain}).samples()
            # Grey images may have an axis of one channel.
            shape = shape[:2] if shape[2:] == (1,) else shape
            return View(ImageArray(samples.reshape(len(samples), *shape), pixel_size=None))
        if self.input.is_dir():
            return View(volume_series(self.input))
        particles = self.particles if "particles" in self.record else None
        if "components" in self.record and not self.input.exists():
            raise ValueError(
                f"{self.input}, which was fitted, no longer exists. Put it back, or fit again."
            )
        if particles is None and self.input.suffix.lower() not in STACK_SUFFIXES:
            return super().images()
        mirrored = None
        if particles is not None and self.view is not None:
            particles, mirrored = particles.facing(self.view)
        if particles is not None:
            _require_view(particles, self)
        phase_flip = bool(self.record.get("images", {}).get("phase_flip", False))
        found = run_images(
            self.input, particles, phase_flip=phase_flip, choice=ParticleChoice.of_run(self.record)
        )
        # Images that were fitted are shown as they were fitted.
        fitted = "components" in self.record
        weigh = not fitted and can_weigh(found.source, particles)
        return replace(found, frame=self.view, weigh=weigh, mirrored=mirrored)

    @property
    def known_columns(self) -> dict[str, np.ndarray]:
        """Columns of numbers in the file of the particles."""
        if "particles" not in self.record:
            return {}
        path, columns = self.particles.path, {}
        if path.suffix.lower() == ".star":
            columns = read_star(path)[0]
        else:
            stored = read_cs(path)
            for name in stored.dtype.names or ():
                if stored[name].ndim == 1:
                    columns[name] = stored[name]
                elif stored[name].ndim == 2:
                    columns |= {f"{name}.{k}": part for k, part in enumerate(stored[name].T)}
        return {
            name: column[self.particles.rows].astype(float)
            for name, column in columns.items()
            if column.dtype.kind in "fiub"
        }

    def selected_file(self, chosen: np.ndarray, suffix: str) -> bytes:
        """Return the file of the particles with the chosen ones, and their places."""
        if self.particles.path.suffix.lower() != suffix:
            name = self.particles.path.name
            raise ValueError(f"the run's particles are {name}; choose --out with the same ending.")
        columns = coordinate_columns(self[chosen].places, suffix)
        return particles_with(self.particles[chosen], columns)


def seen_from(
    run: Run, view: tuple[float, float], *, width: float, or_opposite: bool = False
) -> Run:
    """Return a run with the samples seen from a direction only; from behind, mirrored, if asked."""
    some = run[in_view(run.particles, view, width, or_opposite=or_opposite)]
    assert isinstance(some, ParticleRun)
    return replace(some, view=view)


def run_images(
    path: Path,
    particles: Particles | None,
    *,
    phase_flip: bool = False,
    choice: ParticleChoice = ParticleChoice(),
) -> View:
    """Return the images of particles, or of a bare stack, aligned in one frame."""
    # Only particles have poses and a CTF; images of a bare stack are taken as they are.
    if particles is not None:
        return View(choice.images(particles), particles, phase_flip)
    require_regular_file(path)
    return View(stack_images(path, pixel_size=choice.pixel_size), None, phase_flip)


def _require_view(particles: Particles, run: ParticleRun) -> None:
    """Refuse the particles of all views, where one can be picked."""
    if "components" in run.record:
        require_one_view(particles)
    elif run.view is not None:
        # Twice the usual angle: in a lopsided cone the mean is far from an edge.
        require_one_view(particles, max_angle=60.0)
    elif not is_one_view(particles):
        raise ValueError(
            f"images of one view can be averaged; {run.folder} has particles of all "
            "views. Pick one with --view ROT,TILT; manifactor report and explore show "
            "the molecule along each motion from any direction."
        )


def particle_file(
    particles: Particles, places: Sequence[Place], changed: Sequence[Path]
) -> dict[str, bytes]:
    """Return the file of a run's particles with their places, by its name.

    Nothing, with a warning, if their own file, which is read again, was changed.
    """
    suffix = particles.path.suffix.lower()
    name = f"particles{suffix}"
    if particles.path in changed:
        warn_caller(
            f"{name} of the run was not written, since {particles.path} is no longer "
            "what was fitted.",
            InputWarning,
        )
        return {}
    return {name: particles_with(particles, coordinate_columns(places, suffix))}
