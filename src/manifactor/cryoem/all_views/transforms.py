"""Low Fourier coefficients of images of all views, in units of the noise."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import fft

from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages, fingerprint
from manifactor._support.threads import cores
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.components import SURVEYED, circular_mask, square_side, survey
from manifactor.cryoem.directions import known_directions
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.files.stacks import ImageArray, ImageSource
from manifactor.cryoem.one_view import View, particle_ctf_at

# Highest frequency in cycles per box: motions of a molecule show at a tenth of its size. Each image
# has some 250 coefficients below, and the cost grows with their number.
CYCLES = 12.5

Images = ImageSource | ImageArray


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
        """Return every image once for each of the mates, (order, 3, 3), of a molecule."""
        if len(mates) == 1:
            return self
        order = np.repeat(np.arange(len(self)), len(mates))
        rotations = self.rotations[:, None] @ mates
        return replace(self[order], rotations=rotations.reshape(-1, 3, 3))


def read_transforms(
    source: Images,
    particles: Particles,
    grid: VolumeGrid,
    *,
    rng: np.random.Generator,
    stages: Stages,
    workers: Workers = Here(),
) -> Transforms:
    """Read all images once and keep their low Fourier coefficients, those of a grid."""
    assert particles.angles is not None
    shift = particles.shift_at(source.pixel_size)
    # Images that noise is measured in are drawn: the seed belongs to the key.
    key = stages.random_key(
        particles.fingerprint,
        shift,
        grid,
        [str(path.absolute()) for path in source.files],
        (source.shape, source.block_bytes),
    )

    def read() -> np.ndarray:
        noise = stages.recall("noise", key, lambda: _noise(source, grid, rng))
        blocks = source.block_rows()
        jobs = [
            (source[rows], None if shift is None else shift[rows], grid, noise) for rows in blocks
        ]
        report = partial(stages.report, "images")
        found = stages.pieces("images", key, _coefficients, jobs, workers=workers, report=report)
        values = np.empty((len(source), len(grid.plane)), np.complex64)
        for rows, part in zip(blocks, found, strict=True):
            values[rows] = part
        return values

    with stages.timed("images"):
        values = stages.recall("images", key, read)
    return Transforms(
        grid,
        values,
        rotations=euler_matrices(particles.angles),
        box=source.shape[0] * source.pixel_size,
        optics=particles.without_images() if _has_ctf(particles) else None,
    )


def _coefficients(
    source: Images, shift: np.ndarray | None, grid: VolumeGrid, noise: np.ndarray
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


def transform_grid(
    source: Images,
    particles: Particles,
    *,
    low_pass: float | None = None,
    mask_radius: float | None = None,
) -> VolumeGrid:
    """Return the frequencies that are kept of images, none of which is read.

    Images that all views cannot use are refused.
    """
    known_directions(particles)
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
    if _has_ctf(particles) and not source.pixel_size_stated:
        raise ValueError(
            f"images with a CTF need a pixel size; neither {particles.path} nor its "
            "stacks state it. Fit with --pixel-size, in Angstrom."
        )
    size, pixel_size = square_side(source.shape), source.pixel_size
    box = size * pixel_size
    if low_pass is not None:
        require_number("--low-pass", low_pass, low=2 * pixel_size, high=box / 3)
    cut = CYCLES if low_pass is None else box / low_pass
    # The ball holds the molecule; noise is measured outside.
    radius = 0.48 * box if mask_radius is None else mask_radius
    require_number("--mask-radius", radius, above=0, high=0.5 * box)
    return VolumeGrid(cut=min(cut, size // 2 - 1), radius=radius / box)


def _has_ctf(particles: Particles) -> bool:
    return "defocus_u" in particles.microscope


def _noise(source: Images, grid: VolumeGrid, rng: np.random.Generator) -> np.ndarray:
    """Return the variance of the noise at each frequency of an image."""
    rows = np.sort(rng.permutation(len(source))[:SURVEYED])
    mask = circular_mask(source.shape[0], grid.radius * source.shape[0])
    noise = survey(View(source), mask, rows).noise
    if not np.all(noise > 0):
        raise ValueError(
            f"images must differ from each other; the {len(rows)} in which noise was "
            "measured are all alike. Check that their stacks hold images."
        )
    return noise[np.minimum(grid.plane_shells, len(noise) - 1)]
