"""Whatever the user has, as samples: arrays, another program's coordinates, particle images of one view, volumes."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from manifactor._support.parameters import require_number
from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.formats import read_particles
from manifactor.cryoem.images import Components, image_components
from manifactor.cryoem.particles import Particles, view_directions
from manifactor.cryoem.stacks import particle_images, stack_images, volume_series
from manifactor.cryoem.views import View
from manifactor.cryoem.volumes import VolumeComponents, volume_components
from manifactor.inputs.files import MODE, READERS, read_samples
from manifactor.inputs.pickles import read_pickled_array

ONE_VIEW = (
    30.0  # degrees that the views of particles may lie off their middle to count as one
)


@dataclass(frozen=True)
class ImageSettings:
    """How images become samples; None for what is chosen from the data."""

    phase_flip: bool = False
    mask_radius: float | None = None
    low_pass: float | None = None
    components: int | None = None
    standardise: bool = False


@dataclass(frozen=True)
class Input:
    """Samples and where they come from.

    Attributes
    ----------
    samples : ndarray of shape (n, n_features)
    rows : ndarray of int of shape (n,)
        The samples' numbers in the input, or in the particles' file.
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
        """What run.json keeps of it."""
        record: dict = {}
        if self.particles is not None:
            record["particles"] = str(self.particles.path.resolve())
            record["fingerprint"] = self.particles.fingerprint
        if self.components is not None:
            numbers = {
                k: v for k, v in asdict(self.components).items() if k != "samples"
            }
            numbers = {
                k: list(v) if isinstance(v, tuple) else v for k, v in numbers.items()
            }
            record["components"] = {
                "text": str(self.components),
                **{
                    k: v.tolist() if isinstance(v, np.ndarray) else v
                    for k, v in numbers.items()
                },
            }
        return record


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
    """The samples of an input, after checking all that can be checked before work starts.

    Parameters
    ----------
    path : path
        A file that `read_samples` reads; a STAR or .cs file of particles, or an .mrcs stack; a folder of .mrc volumes.
    particles : path or None
        The STAR or .cs file of the particles that the coordinates in `path` belong to, in the same order.
    indices : path or None
        cryoDRGN's ind.pkl: which of the particles the coordinates belong to.
    view : (rot, tilt) or None
        Take the particles seen from this direction only.
    width : float
        Degrees around the view.
    settings : ImageSettings or None
    rng : Generator
    """
    path, settings = Path(path), settings or ImageSettings()
    require_number("width", width, low=0, high=180)
    if path.is_dir():
        changed = settings if settings != ImageSettings() else None
        _only_for_particles(
            {
                "--particles": particles,
                "--ind": indices,
                "--view": view,
                "settings of images": changed,
            }
        )
        components = volume_components(volume_series(path))
        return Input(
            components.samples,
            np.arange(len(components.samples)),
            components=components,
        )
    if _holds_images(path):
        if particles is not None or indices is not None:
            raise ValueError(
                f"--particles and --ind go with coordinates; {path} already is a file of particles."
            )
        return _from_images(path, view, width, settings, rng)
    if view is not None or settings != ImageSettings():
        raise ValueError(
            f"a view and settings of images go with particle images; {path} holds coordinates."
        )
    return _from_coordinates(path, particles, indices)


def _only_for_particles(given: dict) -> None:
    named = next((name for name, value in given.items() if value is not None), None)
    if named is not None:
        raise ValueError(
            f"{named} cannot be given for a folder of volumes. Leave it out."
        )


def _holds_images(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix == ".cs" and path.is_file():
        return not any(MODE.fullmatch(name) for name in read_cs(path).dtype.names or ())
    return suffix in (".star", ".mrcs")


def _from_images(
    path: Path, view, width: float, settings: ImageSettings, rng: np.random.Generator
) -> Input:
    particles = None if path.suffix.lower() == ".mrcs" else read_particles(path)
    if particles is None and view is not None:
        raise ValueError(
            f"a view can be picked where angles are known; {path} is a stack without any."
        )
    if particles is not None:
        particles = particles if view is None else picked(particles, view, width)
        require_one_view(particles)
    images = run_images(path, particles, phase_flip=settings.phase_flip)
    components = image_components(
        images,
        rng=rng,
        mask_radius=settings.mask_radius,
        low_pass=settings.low_pass,
        n_components=settings.components,
        standardise=settings.standardise,
    )
    rows = np.arange(len(components.samples)) if particles is None else particles.rows
    return Input(components.samples, rows, particles, components)


def run_images(
    path: Path, particles: Particles | None, *, phase_flip: bool = False
) -> View:
    """The images of particles, or of a bare stack, in one frame."""
    if particles is not None:
        return View(particle_images(particles), particles, phase_flip)
    if not path.is_file():
        raise ValueError(f"the input must be a file; {path} does not exist.")
    return View(stack_images(path), None, phase_flip)


def picked(particles: Particles, view: tuple[float, float], width: float) -> Particles:
    """The particles seen from a direction."""
    near = particles.near_view(*view, width=width)
    if near.sum() < 2:
        raise ValueError(
            f"the view must show some particles; within {width:g} degrees of rot {view[0]:g}, tilt {view[1]:g} there "
            f"are {near.sum()} of {len(near)}. Choose another view or a larger --width."
        )
    return particles[near]


def require_one_view(particles: Particles) -> None:
    """Refuse images of many views: their differences are mostly those of the views."""
    if particles.angles is None:
        return
    directions = view_directions(particles.angles)
    middle = directions.mean(axis=0)
    length = np.linalg.norm(middle)
    apart = (
        180.0
        if length < 1e-6
        else np.degrees(np.arccos(np.clip(directions @ middle / length, -1, 1))).max()
    )
    if apart > ONE_VIEW:
        raise ValueError(
            f"images must show one view; those of {particles.path} are up to {apart:.0f} degrees apart from their "
            "middle. Pick one with --view ROT,TILT --width DEGREES. For all views at once, factor coordinates that "
            "another program found (cryoDRGN, 3D variability), and make volumes with it: manifactor export."
        )


def _from_coordinates(path: Path, particles, indices) -> Input:
    samples = read_samples(path)
    if particles is None and path.suffix.lower() == ".cs":
        own = read_particles(path)
        return Input(samples, own.rows, own)
    if particles is None:
        if indices is not None:
            raise ValueError(
                "--ind says which of the particles were used; give them with --particles."
            )
        return Input(samples, np.arange(len(samples)))
    found = read_particles(particles)
    if indices is not None:
        found = found[_checked_indices(Path(indices), len(found))]
    if len(found) != len(samples):
        raise ValueError(
            f"there must be one particle for each row of coordinates; {particles} has {len(found)}"
            f"{'' if indices is None else f' named by {indices}'} and {path} has {len(samples)}. If some were left "
            "out, give cryoDRGN's ind.pkl of just these with --ind."
        )
    if path.suffix.lower() == ".cs" and found.uid is not None:
        _require_same_uids(read_cs(path)["uid"], found, path)
    return Input(samples, found.rows, found)


def _checked_indices(path: Path, count: int) -> np.ndarray:
    indices = READ_INDICES.get(path.suffix.lower(), read_pickled_array)(path)
    if (
        indices.ndim != 1
        or indices.dtype.kind not in "iu"
        or (len(indices) and not indices.min() >= 0)
    ):
        raise ValueError(
            f"{path} must hold row numbers from 0; got an array of {indices.dtype}, shape {indices.shape}."
        )
    if len(indices) and indices.max() >= count:
        raise ValueError(
            f"{path} names particle {indices.max()}, but there are {count}, counted from 0."
        )
    if (np.diff(indices) <= 0).any():
        raise ValueError(
            f"{path} must name each particle once, in ascending order, as cryoDRGN does."
        )
    return indices


READ_INDICES: dict[str, Callable[[Path], np.ndarray]] = {".npy": READERS[".npy"]}


def _require_same_uids(uids: np.ndarray, particles: Particles, path: Path) -> None:
    differ = np.flatnonzero(uids != particles.uid)
    if not len(differ):
        return
    assert particles.uid is not None
    how = (
        "the same particles in another order"
        if np.array_equal(np.sort(uids), np.sort(particles.uid))
        else "others"
    )
    raise ValueError(
        f"{path} and {particles.path} must hold the same particles in the same order; from row {differ[0]} on the "
        f"uids differ: they are {how}. Export both from the same job."
    )
