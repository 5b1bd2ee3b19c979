"""Changes of images that are no motion: errors of poses, and contrast."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import fft

from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages, fingerprint
from manifactor._support.threads import cores
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.directions import known_directions
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.files.stacks import ImageArray, ImageSource
from manifactor.cryoem.one_view.images import SURVEYED, circular_mask, square_side, survey
from manifactor.cryoem.one_view.views import View, particle_ctf_at


def rigid_motions(volume: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return how a volume changes if it is shifted along or rotated about each axis.

    Shapes: volume (grid.size,) -> (6, grid.size).
    """
    cube = volume.reshape(3 * (grid.side,))
    frequency = np.stack(np.meshgrid(*3 * (grid.axis,), indexing="ij"))
    # A shift multiplies by a phase; a rotation moves along circles about the axis.
    shifts = 1j * frequency * cube
    slopes = np.stack(np.gradient(cube))
    rotations = np.cross(frequency, slopes, axis=0)
    return np.concatenate([shifts, rotations]).reshape(6, -1) * grid.inside


def contrasts(volume: np.ndarray, grid: VolumeGrid, *, degree: int = 3) -> np.ndarray:
    """Return how a volume changes with contrast, resolution and defocus.

    Shapes: volume (grid.size,) -> (degree + 1, grid.size).
    """
    squared = sum(axis**2 for axis in np.meshgrid(*3 * (grid.axis,), indexing="ij"))
    relative = (squared / grid.cut**2).ravel()
    return np.stack([volume * relative**power for power in range(degree + 1)])


def without_nuisances(volumes: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return the mean volume, and the others less what changes the mean as a whole.

    Shapes: volumes (rank + 1, grid.size).
    """
    mean, others = volumes[0], volumes[1:]
    changes = np.concatenate([rigid_motions(mean, grid), contrasts(mean, grid)])
    changes /= np.linalg.norm(changes, axis=1, keepdims=True)
    # Volumes are real, so the products of their transforms are, too.
    products = (changes @ changes.conj().T).real
    along = (changes @ others.conj().T).real
    shares = np.linalg.lstsq(products, along, rcond=None)[0]
    return np.concatenate([volumes[:1], others - shares.T @ changes])


# Low Fourier coefficients of images of all views, in units of the noise.


@dataclass(frozen=True)
class TransformSettings:
    """Settings of `read_transforms`."""

    # Cycles per box: motions of a molecule show at a tenth of its size. Each image has some 250
    # coefficients below, and the cost grows with their number.
    cycles: float = 12.5
    # Radius of the ball that holds the molecule, in units of the box. Noise is measured outside.
    radius: float = 0.48


@dataclass(frozen=True)
class Transforms:
    """Fourier coefficients of images, centred, with their poses and CTF."""

    grid: VolumeGrid
    # (n, m): coefficients at the frequencies ``grid.plane``. Noise has variance 1.
    values: np.ndarray
    rotations: np.ndarray  # (n, 3, 3): they take the molecule to the image
    box: float  # angstrom
    optics: Particles | None = None  # particles whose CTF the images have; None if they have none
    # (m,): variance of all that volumes cannot explain, at least that of the noise, 1; None for 1
    noise: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows) -> "Transforms":
        return replace(
            self,
            values=self.values[rows],
            rotations=self.rotations[rows],
            optics=None if self.optics is None else self.optics[rows],
        )

    @cached_property
    def fingerprint(self) -> str:
        """A text that differs where images, poses or optics do."""
        optics = {} if self.optics is None else self.optics.microscope
        known = [part for name in sorted(optics) for part in (name, optics[name])]
        return fingerprint(self.grid, self.box, self.values, self.rotations, *known)

    @cached_property
    def transfer(self) -> np.ndarray:
        """The contrast transfer function at the same frequencies, (n, m)."""
        if self.optics is None:
            return np.ones(self.values.shape, np.float32)
        ctf = particle_ctf_at(self.optics, *(self.grid.plane.T / self.box))
        flipped = np.asarray(self.optics.microscope.get("flipped", 0), bool)
        return np.where(flipped.reshape(-1, 1), np.abs(ctf), ctf)

    @property
    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and transfer in units of `noise`."""
        if self.noise is None:
            return self.values, self.transfer
        unit = np.sqrt(self.noise).astype(np.float32)
        return self.values / unit, self.transfer / unit

    def shown(self, columns: np.ndarray) -> np.ndarray:
        """Return what images show of volumes in units of `noise`, (n, m, 2, n_volumes).

        Real parts, then imaginary parts.

        Shapes: columns (number of frequencies inside, 2 * n_volumes).
        """
        _, transfer = self.weighted
        shown = self.grid.inner_slices(self.rotations) @ columns
        shown = shown.reshape(*transfer.shape, 2, columns.shape[1] // 2)
        return shown * transfer[..., None, None]

    def with_mates(self, mates: np.ndarray) -> "Transforms":
        """Return every image once for each way in which a symmetric molecule shows it.

        Shapes: mates (order, 3, 3).
        """
        if len(mates) == 1:
            return self
        order = np.repeat(np.arange(len(self)), len(mates))
        rotations = self.rotations[:, None] @ mates
        return replace(self[order], rotations=rotations.reshape(-1, 3, 3))


def read_transforms(
    source: ImageSource | ImageArray,
    particles: Particles,
    *,
    rng: np.random.Generator,
    low_pass: float | None = None,
    mask_radius: float | None = None,
    stages: Stages | None = None,
    workers: Workers = Here(),
    settings: TransformSettings = TransformSettings(),
) -> Transforms:
    """Read all images once and keep their low Fourier coefficients."""
    stages = stages or Stages()
    angles = known_angles(particles)
    require_pixel_size(source, particles)
    shift = particles.shift_at(source.pixel_size)
    grid = transform_grid(source, low_pass=low_pass, mask_radius=mask_radius, settings=settings)
    # Images that noise is measured in are drawn: the seed belongs to the key.
    key = stages.random_key(
        particles.fingerprint,
        shift,
        grid,
        [str(path.absolute()) for path in source.files],
        (source.shape, source.block_bytes),
        settings,
    )

    def read() -> np.ndarray:
        noise = stages.recall("noise", key, lambda: _noise(source, grid, rng, settings))
        return _read_values(source, shift, grid, noise, key, stages, workers)

    with stages.timed("images"):
        values = stages.recall("images", key, read)
    return Transforms(
        grid,
        values,
        rotations=euler_matrices(angles),
        box=source.shape[0] * source.pixel_size,
        optics=particles.without_images() if _has_ctf(particles) else None,
    )


def _read_values(
    source: ImageSource | ImageArray,
    shift: np.ndarray | None,
    grid: VolumeGrid,
    noise: np.ndarray,
    key: str,
    stages: Stages,
    workers: Workers,
) -> np.ndarray:
    """Return the coefficients of all images, centred, in units of the noise."""
    blocks = source.block_rows()
    jobs = [(source[rows], None if shift is None else shift[rows], grid, noise) for rows in blocks]
    found = stages.pieces(
        "images", key, _coefficients, jobs, workers=workers, report=partial(stages.report, "images")
    )
    values = np.empty((len(source), len(grid.plane)), np.complex64)
    for rows, part in zip(blocks, found, strict=True):
        values[rows] = part
    return values


def _coefficients(
    source: ImageSource | ImageArray, shift: np.ndarray | None, grid: VolumeGrid, noise: np.ndarray
) -> np.ndarray:
    """Read one block of images, and return their coefficients."""
    ((_, images),) = source.blocks()
    spectra = fft.rfft2(images, norm="ortho", workers=cores())
    size = source.shape[0]
    column, row = grid.plane.T
    # The first pixel of an image lies half a box before its centre.
    centred = np.exp(2j * np.pi * (size // 2) / size * (column + row))
    values = spectra[:, row, column] * (centred / np.sqrt(noise)).astype(np.complex64)
    if shift is not None:
        cycles = shift @ grid.plane.T / size
        values = values * np.exp(-2j * np.pi * cycles)
    return values.astype(np.complex64)


def known_angles(particles: Particles) -> np.ndarray:
    """Return the angles of particles; refuse those that all views cannot use."""
    known_directions(particles)
    assert particles.angles is not None
    if particles.in_plane_only:
        raise ValueError(
            "images of all views need viewing directions; the angles of "
            f"{particles.path} are in-plane only. Give the file of a 3D refinement."
        )
    if np.any(particles.microscope.get("premultiplied", 0)):
        raise ValueError(
            "images of all views must not be multiplied by their CTF; those of "
            f"{particles.path} are. Extract them again without."
        )
    return particles.angles


def require_pixel_size(source: ImageSource | ImageArray, particles: Particles) -> None:
    """Refuse images with a CTF whose pixel size, which it depends on, is unknown."""
    if _has_ctf(particles) and not source.pixel_size_stated:
        raise ValueError(
            f"images with a CTF need a pixel size; neither {particles.path} nor its "
            "stacks state it. Fit with --pixel-size, in Angstrom."
        )


def _has_ctf(particles: Particles) -> bool:
    return "defocus_u" in particles.microscope


def transform_grid(
    source: ImageSource | ImageArray,
    *,
    low_pass: float | None = None,
    mask_radius: float | None = None,
    settings: TransformSettings = TransformSettings(),
) -> VolumeGrid:
    """Return the frequencies that are kept of images, none of which is read.

    Parameters are those of `read_transforms`.
    """
    size, pixel_size = square_side(source.shape), source.pixel_size
    box = size * pixel_size
    highest = size // 2 - 1
    if low_pass is not None:
        require_number("--low-pass", low_pass, low=2 * pixel_size, high=box / 3)
    cut = min(settings.cycles, highest) if low_pass is None else box / low_pass
    radius = settings.radius * box if mask_radius is None else mask_radius
    require_number("--mask-radius", radius, above=0, high=0.5 * box)
    return VolumeGrid(cut=min(cut, highest), radius=radius / box)


def _noise(
    source: ImageSource | ImageArray,
    grid: VolumeGrid,
    rng: np.random.Generator,
    settings: TransformSettings,
) -> np.ndarray:
    """Return the variance of the noise at each frequency of an image."""
    n_images = len(source)
    rows = np.sort(rng.permutation(n_images)[:SURVEYED])
    mask = circular_mask(source.shape[0], grid.radius * source.shape[0])
    spectra = survey(View(source), mask, rows)
    if not np.all(spectra.noise > 0):
        raise ValueError(
            f"images must differ from each other; the {len(rows)} in which noise was "
            "measured are all alike. Check that their stacks hold images."
        )
    shell = grid.plane_shells
    return spectra.noise[np.minimum(shell, len(spectra.noise) - 1)]
