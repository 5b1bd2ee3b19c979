"""Particle images of one view, and volumes: what goes with them, and how they are chosen."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.parameters import require_count, require_number
from manifactor.cryoem.components import Components, image_components, require_filters
from manifactor.cryoem.files.formats import ParticleChoice, group_sizes
from manifactor.cryoem.files.particles import Particles, view_directions
from manifactor.cryoem.files.stacks import ImageSource, stack_images, volume_series
from manifactor.cryoem.one_view import View
from manifactor.cryoem.volumes import VolumeComponents, volume_components
from manifactor.estimators.arrays import FEWEST_SAMPLES
from manifactor.tables.columns import ColumnChoice


@dataclass(frozen=True)
class ImageSettings:
    """Settings that turn images into samples; None is chosen from the data.

    `standardise` is also for tables: it scales the components of images, or the columns of a table,
    to unit variance.
    """

    # The defaults go with every input; any other value is refused without images.
    phase_flip: bool = False
    mask_radius: float | None = None
    low_pass: float | None = None
    components: int | None = None
    standardise: bool = False


@dataclass(frozen=True)
class Given:
    """What was given with an input.

    What does not go with it is refused, not ignored: the caller would believe that it took effect.
    """

    particles: Any
    indices: Any
    view: tuple[float, float] | None
    settings: ImageSettings
    columns: ColumnChoice
    choice: ParticleChoice

    def require_volumes(self) -> None:
        """Refuse all that does not go with volumes, which have no particles."""
        of_images = self.settings != ImageSettings()
        given = {
            "--particles": self.particles is not None,
            "--ind": self.indices is not None,
            "--view": self.view is not None,
            "settings of images": of_images,
            "--columns": self.columns.columns is not None,
            "--drop": self.columns.drop is not None,
            **{name: bool(value) for name, value in self.choice.options.items()},
        }
        for name, is_given in given.items():
            if is_given:
                raise ValueError(f"{name} cannot be given for a folder of volumes. Leave it out.")

    def require_stack(self, path: Path) -> None:
        """Refuse what needs a file of particles, which a bare stack does not have."""
        require_regular_file(path)
        if self.view is not None:
            raise ValueError(
                f"a view can be picked where angles are known; {path} is a stack "
                "without any. Give its STAR or .cs file instead."
            )
        options = self.choice.options
        for name in ("--datadir", "--class", "--optics-group"):
            if options[name]:
                raise ValueError(
                    f"{name} goes with a file of particles; {path} is a stack. Give "
                    "its STAR or .cs file instead."
                )
        self.require_images(path)

    def require_images(self, path: Path) -> None:
        """Refuse particles and columns, which images have already."""
        # The results of a job in cryoSPARC, and its passthrough file.
        joined = is_cs(path) and self.particles is not None and is_cs(self.particles)
        if (self.particles is not None and not joined) or self.indices is not None:
            raise ValueError(
                f"--particles and --ind go with coordinates; {path} already is a file "
                "of particles. Leave them out."
            )
        if self.columns != ColumnChoice():
            raise ValueError(
                f"--columns and --drop go with tables; {path} holds images. Leave them out."
            )

    def require_table(self, path: Path) -> None:
        """Refuse a view and settings of images, which a table does not have."""
        of_images = replace(self.settings, standardise=False) != ImageSettings()
        if self.view is not None or of_images:
            raise ValueError(
                f"a view and settings of images go with particle images; {path} holds "
                "coordinates. Leave them out."
            )
        if self.choice.of_some:
            raise ValueError(
                f"--class and --optics-group choose particle images; {path} holds "
                "coordinates. Fit all, and choose afterwards: manifactor select "
                "--column rlnClassNumber 3 3."
            )
        if self.choice != ParticleChoice() and self.particles is None:
            raise ValueError(
                f"--datadir and --pixel-size go with particles; {path} holds "
                "coordinates. Give their particles with --particles."
            )

    def require_large_table(self, path: Path) -> None:
        """Refuse what does not go with a table whose rows are read in parts."""
        self.require_table(path)
        if self.particles is not None or self.indices is not None:
            raise ValueError(
                "--particles and --ind go with coordinates that are read as a whole; "
                f"{path} is read in parts. Add --coordinates csv."
            )


def is_cs(path) -> bool:
    """Return whether a file is one of cryoSPARC, by its name."""
    return Path(path).suffix.lower() == ".cs"


# Particles seen from one direction.


def checked_width(
    width: float | None, view: tuple[float, float] | None, *, usual: float = 10.0
) -> float:
    """Return the degrees around a view; refuse them where there is no view."""
    if width is None:
        return usual
    require_number("width", width, low=0, high=180)
    if view is None:
        raise ValueError(
            "--width is the angle around a view; give one with --view ROT,TILT, or "
            "leave --width out."
        )
    return width


def picked(
    particles: Particles, view: tuple[float, float], width: float, *, or_opposite: bool = False
) -> Particles:
    """Return the particles within `width` degrees of a view, (rot, tilt).

    Or within as many of the opposite view, if asked for.
    """
    # One image alone has no differences to factor.
    near = particles.near_view(*view, width=width, or_opposite=or_opposite)
    if near.sum() < 2:
        rot, tilt = view
        raise ValueError(
            f"the view must show some particles; within {width:g} degrees of rot "
            f"{rot:g}, tilt {tilt:g} there are {near.sum()} of {len(near)}. Choose "
            "another view or a larger --width."
        )
    return particles[near]


def is_one_view(particles: Particles, *, max_angle: float = 30.0) -> bool:
    """Return whether all particles are seen within an angle of their mean direction.

    Particles without angles count as one view.
    """
    # Particles of a 2-D class have no angles; to choose the class was to choose a view.
    return particles.angles is None or _spread(particles.angles) <= max_angle


def require_one_view(particles: Particles, *, max_angle: float = 30.0) -> None:
    """Refuse images of many views, whose differences are mostly those of the views."""
    if particles.angles is None or is_one_view(particles, max_angle=max_angle):
        return
    raise ValueError(
        f"images must show one view; those of {particles.path} are up to "
        f"{_spread(particles.angles):.0f} degrees apart from their middle. Pick one "
        "with --view ROT,TILT --width DEGREES (`manifactor views` lists them), or fit "
        "all of them together with --all-views."
    )


def require_one_class(particles: Particles) -> None:
    """Refuse images of several classes of a 2-D classification.

    Such classes usually are different views, and no other angles tell these apart.
    """
    classes = particles.microscope.get("class")
    flat = particles.angles is None or particles.in_plane_only
    if classes is None or not flat or (classes == classes[0]).all():
        return
    raise ValueError(
        f"images must show one view; those of {particles.path} are of "
        f"{len(np.unique(classes))} classes of a 2-D classification: "
        f"{group_sizes(classes)}. Choose one with --class, or several of one view."
    )


def _spread(angles: np.ndarray) -> float:
    """Return the largest angle in degrees between views and their mean direction."""
    directions = view_directions(angles)
    mean = directions.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-6:  # directions that cancel have no mean direction
        return 180.0
    # Rounding may take a cosine beyond 1, where the angle is not a number.
    cosines = np.clip(directions @ mean / length, -1, 1)
    return float(np.degrees(np.arccos(cosines)).max())


# Inputs whose files were checked and not read yet.


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
    if count < FEWEST_SAMPLES:
        raise ValueError(
            f"a fit needs at least {FEWEST_SAMPLES} images, and hundreds to show a motion; "
            f"{path} gives {count}. Widen the choice, or add images."
        )


def _pixel_size_notes(source: ImageSource, path: Path, label: str) -> tuple[str, ...]:
    if source.pixel_size_stated:
        return ()
    return (
        f"{path} states no pixel size ({label}); 1 A is taken, so that all lengths are "
        "in pixels. Give it in Angstrom with --pixel-size.",
    )
