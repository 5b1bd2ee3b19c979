"""Any input as samples: arrays, coordinates of other programs, images, volumes."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.parameters import first_bad_value, require_number
from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.formats import read_particles
from manifactor.cryoem.images import Components, image_components
from manifactor.cryoem.particles import Particles, view_directions
from manifactor.cryoem.stacks import particle_images, stack_images, volume_series
from manifactor.cryoem.views import View
from manifactor.cryoem.volumes import VolumeComponents, volume_components
from manifactor.inputs.columns import ColumnChoice, Columns, unit_scale
from manifactor.inputs.files import MODE, read_table
from manifactor.inputs.pairing import paired_particles
from manifactor.inputs.tables import line_of


@dataclass(frozen=True)
class ImageSettings:
    """Settings that turn images into samples; None is chosen from the data.

    `standardise` is for tables, too: it scales columns, as it scales the components of
    images.
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
        In the order of the samples.
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
        """Names or numbers of the columns in their file; None for all, unnamed."""
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
        Of a table; None for all.
    rng : Generator

    Returns
    -------
    Input
    """
    # What does not go with the input is refused, not ignored: the caller would believe
    # that it took effect.
    path = Path(path)
    settings = settings or ImageSettings()
    columns = columns or ColumnChoice()
    angle = checked_width(width, view)
    of_images = replace(settings, standardise=False) != ImageSettings()
    # Volumes are aligned already and have no particles behind them.
    if path.is_dir():
        _refuse_for_volumes(
            {
                "--particles": particles,
                "--ind": indices,
                "--view": view,
                "settings of images": None if settings == ImageSettings() else settings,
                "--columns": columns.columns,
                "--drop": columns.drop,
            }
        )
        return _from_volumes(path)
    if _holds_images(path):
        if particles is not None or indices is not None:
            raise ValueError(
                f"--particles and --ind go with coordinates; {path} already is a file "
                "of particles. Leave them out."
            )
        if columns != ColumnChoice():
            raise ValueError(
                f"--columns and --drop go with tables; {path} holds images. Leave them "
                "out."
            )
        return _from_images(path, view, angle, settings, rng)
    if view is not None or of_images:
        raise ValueError(
            f"a view and settings of images go with particle images; {path} holds "
            "coordinates. Leave them out."
        )
    found = _from_coordinates(path, columns, particles, indices)
    return _standardised(found) if settings.standardise else found


def checked_width(
    width: float | None,
    view: tuple[float, float] | None,
    *,
    usual: float = 10.0,
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


def _refuse_for_volumes(given: dict) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be given for a folder of volumes. Leave it out."
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
    """Return a table whose columns all have unit variance; constant ones have none."""
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


def picked(particles: Particles, view: tuple[float, float], width: float) -> Particles:
    """Return the particles within `width` degrees of a view, (rot, tilt)."""
    # One image alone has no differences to factor.
    near = particles.near_view(*view, width=width)
    if near.sum() < 2:
        rot, tilt = view
        raise ValueError(
            f"the view must show some particles; within {width:g} degrees of rot "
            f"{rot:g}, tilt {tilt:g} there are {near.sum()} of {len(near)}. Choose "
            "another view or a larger --width."
        )
    return particles[near]


def require_one_view(particles: Particles, *, max_angle: float = 30.0) -> None:
    """Refuse images of many views, whose differences are mostly those of the views.

    Parameters
    ----------
    particles : Particles
        Without angles, they count as one view.
    max_angle : float
        Largest angle in degrees between a view and the mean direction.
    """
    # Particles of a 2-D class have no angles; to choose the class was to choose a view.
    if particles.angles is None:
        return
    apart = _largest_angle_to_mean(view_directions(particles.angles))
    if apart > max_angle:
        raise ValueError(
            f"images must show one view; those of {particles.path} are up to "
            f"{apart:.0f} degrees apart from their middle. Pick one with --view "
            "ROT,TILT --width DEGREES. For all views at once, factor coordinates that "
            "another program found (cryoDRGN, 3D variability), and make volumes with "
            "it: manifactor export."
        )


def _largest_angle_to_mean(directions: np.ndarray) -> float:
    """Return the largest angle in degrees between unit vectors and their mean."""
    mean = directions.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-6:  # directions that cancel have no mean direction
        return 180.0
    # Rounding may take a cosine beyond 1, where the angle is not a number.
    cosines = np.clip(directions @ mean / length, -1, 1)
    return np.degrees(np.arccos(cosines)).max()
