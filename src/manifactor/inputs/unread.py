"""Images of one view, and volumes, whose files were checked and not read yet."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from manifactor._support.parameters import require_count
from manifactor.cryoem.boxes import require_filters
from manifactor.cryoem.images import Components, image_components
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.stacks import ImageSource, stack_images, volume_series
from manifactor.cryoem.views import View
from manifactor.cryoem.volumes import VolumeComponents, volume_components
from manifactor.estimators.drawing import DrawSettings
from manifactor.inputs.given import ImageSettings
from manifactor.inputs.one_view import picked, require_one_class, require_one_view
from manifactor.inputs.particle_choice import ParticleChoice


@dataclass(frozen=True)
class UnreadImages:
    """Images of one view, or volumes, that were found and not read yet."""

    path: Path
    source: ImageSource
    view: View | None = None  # the images in one frame; None for volumes
    settings: ImageSettings = field(default_factory=ImageSettings)
    notes: tuple[str, ...] = ()  # what a user should know of how they will be read

    @property
    def n_samples(self) -> int:
        """How many images or volumes there are."""
        return len(self.source)

    @property
    def particles(self) -> Particles | None:
        """Particles in the order of the images."""
        return None if self.view is None else self.view.particles

    @property
    def rows(self) -> np.ndarray:
        """Row numbers in the file of the particles, or in the stack."""
        if self.particles is None:
            return np.arange(self.n_samples)
        return self.particles.rows

    def components(self, rng: np.random.Generator) -> Components | VolumeComponents:
        """Read all of them and return their principal components."""
        if self.view is None:
            return volume_components(self.source)
        return image_components(
            self.view,
            rng=rng,
            mask_radius=self.settings.mask_radius,
            low_pass=self.settings.low_pass,
            n_components=self.settings.components,
            standardise=self.settings.standardise,
        )


def unread_volumes(folder: Path) -> UnreadImages:
    """Return the volumes of a folder."""
    return UnreadImages(folder, volume_series(folder))


def unread_stack(path: Path, settings: ImageSettings, choice: ParticleChoice) -> UnreadImages:
    """Return the images of a bare stack."""
    source = stack_images(path, pixel_size=choice.pixel_size)
    view = View(source, None, settings.phase_flip)
    return _checked(path, view, settings, "cell dimensions in its header")


def unread_particles(
    particles: Particles, settings: ImageSettings, choice: ParticleChoice
) -> UnreadImages:
    """Return the images of particles."""
    view = View(choice.images(particles), particles, settings.phase_flip)
    return _checked(particles.path, view, settings, particles.pixel_size_label)


def particles_of_one_view(
    path: Path, choice: ParticleChoice, *, passthrough, view, width: float
) -> Particles:
    """Return the chosen particles of a file, seen from one direction."""
    if passthrough is None:
        particles = choice.read(path)
    else:
        particles = choice.read(Path(passthrough), results=path)
    particles = choice.chosen(particles)
    if view is not None:
        particles = picked(particles, view, width)
    require_one_view(particles)
    if not choice.classes:
        require_one_class(particles)
    return particles


def _checked(path: Path, view: View, settings: ImageSettings, label: str) -> UnreadImages:
    """Return images that are enough, and that the settings suit."""
    source = view.source
    assert isinstance(source, ImageSource)
    _require_enough(len(source), path)
    require_filters(
        source.shape,
        source.pixel_size,
        mask_radius=settings.mask_radius,
        low_pass=settings.low_pass,
    )
    if settings.components is not None:
        require_count("--components", settings.components, low=1, high=len(source))
    notes = _pixel_size_notes(source, path, label)
    return UnreadImages(path, source, view, settings, notes)


def _require_enough(count: int, path: Path) -> None:
    """Refuse fewer images than any fit takes."""
    fewest = DrawSettings.fewest
    if count < fewest:
        raise ValueError(
            f"a fit needs at least {fewest} images, and hundreds to show a motion; "
            f"{path} gives {count}. Widen the choice, or add images."
        )


def _pixel_size_notes(source: ImageSource, path: Path, label: str) -> tuple[str, ...]:
    if source.pixel_size_stated:
        return ()
    return (
        f"{path} states no pixel size ({label}); 1 A is taken, so that all lengths are "
        "in pixels. Give it in Angstrom with --pixel-size.",
    )
