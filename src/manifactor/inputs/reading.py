"""Any input as samples: arrays, coordinates of other programs, images, volumes."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.parameters import require_number
from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.formats import read_particles
from manifactor.cryoem.images import Components, image_components
from manifactor.cryoem.particles import Particles, view_directions
from manifactor.cryoem.stacks import particle_images, stack_images, volume_series
from manifactor.cryoem.views import View
from manifactor.cryoem.volumes import VolumeComponents, volume_components
from manifactor.inputs.files import MODE, read_samples
from manifactor.inputs.pairing import paired_particles


@dataclass(frozen=True)
class ImageSettings:
    """Settings that turn images into samples; None is chosen from the data."""

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
    """

    samples: np.ndarray
    rows: np.ndarray
    particles: Particles | None = None
    components: Components | VolumeComponents | None = None

    @property
    def record(self) -> dict:
        """The entries of run.json."""
        record: dict = {}
        if self.particles is not None:
            record["particles"] = str(self.particles.path.resolve())
            record["fingerprint"] = self.particles.fingerprint
        if self.components is not None:
            record["components"] = _components_record(self.components)
        return record


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
    width: float = 10.0,
    settings: ImageSettings | None = None,
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
    width : float
        Degrees around the view.
    settings : ImageSettings or None
    rng : Generator

    Returns
    -------
    Input
    """
    # What does not go with the input is refused, not ignored: the caller would believe
    # that it took effect.
    path = Path(path)
    settings = settings or ImageSettings()
    is_default = settings == ImageSettings()
    require_number("width", width, low=0, high=180)
    # Volumes are aligned already and have no particles behind them.
    if path.is_dir():
        _refuse_for_volumes(
            {
                "--particles": particles,
                "--ind": indices,
                "--view": view,
                "settings of images": None if is_default else settings,
            }
        )
        return _from_volumes(path)
    if _holds_images(path):
        if particles is not None or indices is not None:
            raise ValueError(
                f"--particles and --ind go with coordinates; {path} already is a file "
                "of particles. Leave them out."
            )
        return _from_images(path, view, width, settings, rng)
    if view is not None or not is_default:
        raise ValueError(
            f"a view and settings of images go with particle images; {path} holds "
            "coordinates. Leave them out."
        )
    return _from_coordinates(path, particles, indices)


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


def _from_coordinates(path: Path, particles, indices) -> Input:
    samples = read_samples(path)
    found = paired_particles(path, len(samples), particles=particles, indices=indices)
    # Row numbers count in the file of the particles, so that `select` finds them there.
    rows = np.arange(len(samples)) if found is None else found.rows
    return Input(samples, rows, found)


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
