"""Any input as samples: arrays, coordinates of other programs, images, volumes."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.parameters import first_bad_value
from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.formats import read_particles
from manifactor.cryoem.images import Components, image_components
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.stacks import particle_images, stack_images, volume_series
from manifactor.cryoem.views import View
from manifactor.cryoem.volumes import VolumeComponents, volume_components
from manifactor.inputs.columns import ColumnChoice, Columns, unit_scale
from manifactor.inputs.files import MODE, read_table
from manifactor.inputs.one_view import checked_width, picked, require_one_view
from manifactor.inputs.pairing import paired_particles
from manifactor.inputs.tables import line_of


@dataclass(frozen=True)
class ImageSettings:
    """Settings that turn images into samples; None is chosen from the data.

    `standardise` is also for tables: it scales the components of images, or the columns
    of a table, to unit variance.
    """

    # The defaults go with every input; any other value is refused without images.
    phase_flip: bool = False
    mask_radius: float | None = None
    low_pass: float | None = None
    components: int | None = None
    standardise: bool = False


@dataclass(frozen=True)
class Input:
    """Samples and their origin.

    Attributes
    ----------
    samples : ndarray of shape (n, n_features)
    rows : ndarray of int of shape (n,)
        The samples' row numbers in the input, or in the file of the particles.
    particles : Particles or None
        Particles in the order of the samples.
    components : Components, VolumeComponents or None
        How images or volumes became samples.
    columns : Columns or None
        Which columns of a table these are, and their scale.
    path : Path or None
        The file of a table.
    """

    samples: np.ndarray
    rows: np.ndarray
    particles: Particles | None = None
    components: Components | VolumeComponents | None = None
    columns: Columns | None = None
    path: Path | None = None

    @property
    def record(self) -> dict:
        """The entries of run.json."""
        record: dict = {}
        if self.particles is not None:
            record["particles"] = str(self.particles.path.resolve())
            record["fingerprint"] = self.particles.fingerprint
        if self.components is not None:
            record["components"] = _components_record(self.components)
        if self.columns is not None:
            record["columns"] = self.columns.record
        return record

    @property
    def labels(self) -> list[str | int] | None:
        """Names or numbers of the columns in their file.

        None if all columns are used and they have no names.
        """
        if self.columns is None:
            return None
        every = len(self.columns.numbers) == self.columns.total
        return None if every and self.columns.names is None else self.columns.labels

    def require_finite(self) -> None:
        """Refuse NaN and infinite values, and say where in the file they are."""
        found = first_bad_value(self.samples)
        if found is None:
            return
        count, row, column = found
        label = column if self.labels is None else self.labels[column]
        line = None if self.path is None else line_of(self.path, row)
        where = "" if line is None else f" (line {line} of {self.path})"
        raise ValueError(
            f"samples must be finite; got {count} NaN or inf values, the first in row "
            f"{row}, column {label!r}{where}. Remove those samples, fill the values "
            "in, or leave columns out with --drop."
        )


def _components_record(components: Components | VolumeComponents) -> dict:
    record = {"text": str(components)}
    for name, value in asdict(components).items():
        if name != "samples":  # the run keeps its samples in a file of their own
            record[name] = _as_json(value)
    return record


def _as_json(value) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def read_input(
    path,
    *,
    particles=None,
    indices=None,
    view: tuple[float, float] | None = None,
    width: float | None = None,
    settings: ImageSettings | None = None,
    columns: ColumnChoice | None = None,
    rng: np.random.Generator,
) -> Input:
    """Read the samples of an input; check first whatever can be checked at once.

    Parameters
    ----------
    path : path
        A file that `read_samples` reads; a STAR or .cs file of particles, or an .mrcs
        stack; a folder of .mrc volumes.
    particles : path or None
        The STAR or .cs file of the particles that the coordinates in `path` belong to,
        in the same order.
    indices : path or None
        cryoDRGN's ind.pkl: which of the particles the coordinates belong to.
    view : (rot, tilt) or None
        Take only the particles seen from this direction.
    width : float or None
        Degrees around the view; None for 10.
    settings : ImageSettings or None
    columns : ColumnChoice or None
        Columns of a table to use; None for all.
    rng : Generator

    Returns
    -------
    Input
    """
    path = Path(path)
    settings = settings or ImageSettings()
    columns = columns or ColumnChoice()
    angle = checked_width(width, view)
    given = _Given(particles, indices, view, settings, columns)
    if path.is_dir():
        given.require_volumes()
        return _from_volumes(path)
    if _holds_images(path):
        given.require_images(path)
        return _from_images(path, view, angle, settings, rng)
    given.require_table(path)
    found = _from_coordinates(path, columns, particles, indices)
    return _standardised(found) if settings.standardise else found


@dataclass(frozen=True)
class _Given:
    """What was given with an input.

    What does not go with it is refused, not ignored: the caller would believe that it
    took effect.
    """

    particles: Any
    indices: Any
    view: tuple[float, float] | None
    settings: ImageSettings
    columns: ColumnChoice

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
        }
        for name, is_given in given.items():
            if is_given:
                raise ValueError(
                    f"{name} cannot be given for a folder of volumes. Leave it out."
                )

    def require_images(self, path: Path) -> None:
        """Refuse particles and columns, which images have already."""
        if self.particles is not None or self.indices is not None:
            raise ValueError(
                f"--particles and --ind go with coordinates; {path} already is a file "
                "of particles. Leave them out."
            )
        if self.columns != ColumnChoice():
            raise ValueError(
                f"--columns and --drop go with tables; {path} holds images. Leave them "
                "out."
            )

    def require_table(self, path: Path) -> None:
        """Refuse a view and settings of images, which a table does not have."""
        of_images = replace(self.settings, standardise=False) != ImageSettings()
        if self.view is not None or of_images:
            raise ValueError(
                f"a view and settings of images go with particle images; {path} holds "
                "coordinates. Leave them out."
            )


def _holds_images(path: Path) -> bool:
    """Return whether a file holds particle images rather than coordinates."""
    suffix = path.suffix.lower()
    if suffix == ".cs" and path.is_file():
        # cryoSPARC writes the components of a variability analysis into a .cs, too.
        fields = read_cs(path).dtype.names or ()
        return not any(MODE.fullmatch(name) for name in fields)
    return suffix in (".star", ".mrcs")


def _from_volumes(folder: Path) -> Input:
    components = volume_components(volume_series(folder))
    rows = np.arange(len(components.samples))
    return Input(components.samples, rows, components=components)


def _from_coordinates(path: Path, choice: ColumnChoice, particles, indices) -> Input:
    table = read_table(path, choice)
    n_samples = len(table.samples)
    found = paired_particles(path, n_samples, particles=particles, indices=indices)
    # Row numbers count in the file of the particles, so that `select` finds them there.
    rows = np.arange(n_samples) if found is None else found.rows
    columns = Columns(table.numbers, table.total, table.names)
    return Input(table.samples, rows, found, columns=columns, path=path)


def _standardised(given: Input) -> Input:
    """Return a table with columns of unit variance; constant ones stay constant."""
    given.require_finite()
    assert given.columns is not None
    mean, scale = unit_scale(given.samples)
    columns = replace(given.columns, mean=mean, scale=scale)
    return replace(given, samples=columns.scaled(given.samples), columns=columns)


def _from_images(
    path: Path, view, width: float, settings: ImageSettings, rng: np.random.Generator
) -> Input:
    particles = None
    if path.suffix.lower() != ".mrcs":
        particles = read_particles(path)
        particles = particles if view is None else picked(particles, view, width)
        # Before any image is read.
        require_one_view(particles)
    elif view is not None:
        raise ValueError(
            f"a view can be picked where angles are known; {path} is a stack without "
            "any. Give its STAR or .cs file instead."
        )
    components = image_components(
        run_images(path, particles, phase_flip=settings.phase_flip),
        rng=rng,
        mask_radius=settings.mask_radius,
        low_pass=settings.low_pass,
        n_components=settings.components,
        standardise=settings.standardise,
    )
    samples = components.samples
    rows = np.arange(len(samples)) if particles is None else particles.rows
    return Input(samples, rows, particles, components)


def run_images(
    path: Path, particles: Particles | None, *, phase_flip: bool = False
) -> View:
    """Return the images of particles, or of a bare stack, aligned in one frame."""
    # Only particles have poses and a CTF; images of a bare stack are taken as they are.
    if particles is not None:
        return View(particle_images(particles), particles, phase_flip)
    if not path.is_file():
        raise ValueError(f"the input must be a file; {path} does not exist.")
    return View(stack_images(path), None, phase_flip)
