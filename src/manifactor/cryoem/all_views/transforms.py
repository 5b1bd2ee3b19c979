"""Fourier transforms of a volume on a grid, of which images show slices, and of the images."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
from scipy import fft
from scipy.constants import golden
from scipy.spatial.transform import Rotation
from sklearn.utils import gen_batches

from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages
from manifactor._support.threads import cores
from manifactor._support.values import quotient
from manifactor._support.workers import Here, PickledFields, Workers
from manifactor.cryoem.components import circular_mask, distances, soft_ball, square_side, survey
from manifactor.cryoem.directions import known_directions
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.one_view import View, particle_ctf
from manifactor.operators.engines.gpu import like, namespace, on_device, sparse_rows

# Steps of the grid for each cycle per box. With two, slices are exact to one or two percent after
# the envelope of the interpolation has been divided out.
PADDING = 2


@dataclass(frozen=True)
class VolumeGrid(PickledFields):
    """Frequencies on which the Fourier transform of a volume is known."""

    cut: float  # highest frequency in cycles per box
    radius: float  # radius of the ball that holds the molecule, in units of the box

    @cached_property
    def half(self) -> int:
        """Index of frequency 0 along an axis."""
        # Interpolation needs a neighbour beyond the highest frequency.
        return PADDING * (int(np.ceil(self.cut)) + 1)

    @property
    def side(self) -> int:
        """Number of frequencies along an axis."""
        return 2 * self.half + 1

    @property
    def axis(self) -> np.ndarray:
        """Frequencies along an axis, in cycles per box."""
        return (np.arange(self.side) - self.half) / PADDING

    @property
    def size(self) -> int:
        """Number of frequencies of a volume."""
        return self.side**3

    @cached_property
    def plane(self) -> np.ndarray:
        """Frequencies (x, y) of an image, in cycles per box, (m, 2)."""
        # Of a frequency and its opposite, which are conjugates, one; not 0, the image's offset.
        highest = int(self.cut)
        x, y = np.meshgrid(np.arange(highest + 1), np.arange(-highest, highest + 1), indexing="ij")
        keep = (x**2 + y**2 <= self.cut**2) & ((x > 0) | (y > 0))
        return np.column_stack([x[keep], y[keep]])

    @property
    def plane_shells(self) -> np.ndarray:
        """Distance of the frequencies of an image from 0, in whole cycles, (m,)."""
        return np.rint(np.hypot(*self.plane.T)).astype(int)

    @cached_property
    def inside(self) -> np.ndarray:
        """Whether slices are interpolated from each frequency of a volume, (size,)."""
        # The corners of a cell reach beyond the cut by its diagonal at most.
        return distances(self.axis).ravel() <= self.cut + np.sqrt(3) / PADDING

    @cached_property
    def shells(self) -> np.ndarray:
        """Distance of each frequency from 0, rounded to whole cycles, (size,)."""
        return np.rint(distances(self.axis)).astype(int).ravel()

    def slices(self, rotations: np.ndarray) -> sp.csr_array:
        """Return the matrix, (n * m, size), that interpolates a volume's transform on slices."""
        weights, numbers = self.corners(rotations)
        return sparse_rows(weights, numbers, self.size)

    def corners(self, rotations) -> tuple:
        """Return weights and numbers of frequencies that slices are made of, (n * m, 8) twice.

        Arrays or tensors, as the rotations are.
        """
        xp, plane = namespace(rotations), like(rotations, self.plane.astype(float))
        points = (plane @ rotations[:, :2]).reshape(-1, 3) * PADDING + self.half
        low = xp.floor(points)
        above = xp.asarray(points - low, dtype=xp.float32)
        shares = xp.stack([1 - above, above], axis=1)
        weights = xp.einsum("pi,pj,pk->pijk", *xp.moveaxis(shares, 2, 0)).reshape(-1, 8)
        x, y, z = xp.asarray(low, dtype=xp.int32).T
        first = (x * self.side + y) * self.side + z
        i, j, k = np.indices((2, 2, 2), dtype=np.int32).reshape(3, 8)
        return weights, first[:, None] + like(rotations, (i * self.side + j) * self.side + k)

    def fold(self, weights, numbers) -> tuple:
        """Return numbers of frequencies in the first half of those `inside`, and its length.

        One of the second half becomes its opposite, the conjugate: between numbers and length are
        the weights of imaginary parts, whose sign changes there.
        """
        position = like(weights, self.position)[numbers]
        last = int(self.inside.sum()) - 1
        beyond, where = position > last // 2, namespace(weights).where
        signed = where(beyond, -weights, weights)
        return where(beyond, last - position, position), signed, last // 2 + 1

    def bound(self, volumes: np.ndarray) -> np.ndarray:
        """Return the nearest transforms, (n, size), that are real, in the ball, and not dimmed."""
        return self._filter(volumes, self._ball / self._envelope)

    def sharpen(self, volumes: np.ndarray) -> np.ndarray:
        """Return transforms whose interpolated slices are those of the volumes."""
        return self._filter(volumes, 1 / self._envelope)

    def columns(self, volumes: np.ndarray) -> np.ndarray:
        """Return real and imaginary parts of sharp volumes as columns, (n_inside, 2 * n)."""
        sharp = self.sharpen(volumes)[:, self.inside]
        return np.ascontiguousarray(np.concatenate([sharp.real, sharp.imag]).T)

    @cached_property
    def position(self) -> np.ndarray:
        """Number of each frequency among those inside, (size,)."""
        return np.cumsum(self.inside, dtype=np.int32) - np.int32(1)

    def _filter(self, volumes: np.ndarray, window: np.ndarray) -> np.ndarray:
        """Return transforms of volumes times a window in real space, in single precision."""
        shape, axes = 3 * (self.side,), (1, 2, 3)
        how: dict = {"axes": axes, "workers": cores()}
        found = np.empty((len(volumes), *shape), np.complex64)
        # A few at a time: each step copies them.
        for some in gen_batches(len(volumes), 8):
            # Volumes are real: half of the last axis tells all.
            cubes = (volumes[some] * self.inside).astype(np.complex64).reshape(-1, *shape)
            half = fft.ifftshift(cubes[..., self.half :], axes=axes[:2])
            densities = fft.irfftn(half, s=shape, **how) * window.astype(np.float32)
            spectra = fft.fftshift(fft.rfftn(densities, **how), axes=axes[:2])
            found[some, ..., self.half :] = spectra
            opposite = found[some, ::-1, ::-1, : self.half : -1]
            np.conj(opposite, out=found[some, ..., : self.half])
        return found.reshape(len(volumes), -1)

    @cached_property
    def filled(self) -> float:
        """Share of the volume of the grid that the ball fills."""
        return float(self._ball.mean())

    @cached_property
    def _ball(self) -> np.ndarray:
        return soft_ball(distances(fft.fftfreq(self.side)) * PADDING, self.radius, 1)

    @cached_property
    def _envelope(self) -> np.ndarray:
        """What linear interpolation of the transform multiplies a volume by."""
        along = np.sinc(fft.fftfreq(self.side)) ** 2
        return along[:, None, None] * along[:, None] * along


def volume_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return the correlation of two sets of volumes, given by their transforms."""
    ours, yours = first.ravel(), second.ravel()
    lengths = float(np.linalg.norm(ours) * np.linalg.norm(yours))
    return quotient(float(np.vdot(ours, yours).real), lengths)


# Point groups: the rotations after which a symmetric molecule looks the same.

# An axis of rotation: in how many turns the circle is divided, and its direction.
Axis = tuple[int, tuple[float, float, float]]
# Two axes that all others follow from, in RELION's orientations: other programs have others.
GENERATORS: dict[str, Sequence[Axis]] = {
    "T": ((3, (0, 0, 1)), (2, (0, np.sqrt(2), 1))),
    "O": ((4, (0, 0, 1)), (3, (1, 1, 1))),
    "I1": ((2, (1, 0, 0)), (5, (golden, 0, -1))),
    "I2": ((2, (0, 0, 1)), (5, (1, 0, golden))),
    "I3": ((5, (0, 0, 1)), (2, (-1, 0, golden))),
    "I4": ((5, (0, 0, 1)), (2, (1, 0, golden))),
}


def point_group(name: str) -> np.ndarray:
    """Return the rotations of a point group, (order, 3, 3), the identity first.

    >>> [len(point_group(name)) for name in ("C4", "D2", "T", "O", "I1")]
    [4, 4, 12, 24, 60]
    """
    symbol = name.upper()
    turns = re.fullmatch(r"([CD])([1-9]\d{0,2})", symbol)
    if turns is not None:
        both: Sequence[Axis] = ((int(turns[2]), (0, 0, 1)), (2, (1, 0, 0)))
        axes = both if turns[1] == "D" else both[:1]
    elif symbol in GENERATORS:
        axes = GENERATORS[symbol]
    else:
        raise ValueError(
            "`symmetry` must be a point group Cn, Dn, T, O, or I1 to I4 as RELION "
            f"orients them, such as C4; got {name!r}."
        )
    steps = [
        Rotation.from_rotvec(2 * np.pi / count * (np.array(axis) / np.linalg.norm(axis)))
        for count, axis in axes
    ]
    group = [np.eye(3)]
    # The list grows while it is gone through, until every product is in it.
    for rotation in group:
        for step in steps:
            product = step.as_matrix() @ rotation
            if np.abs(np.stack(group) - product).max(axis=(1, 2)).min() > 1e-6:
                group.append(product)
    return np.stack(group)


# Low Fourier coefficients of images of all views, in units of the noise.


@dataclass(frozen=True)
class Transforms:
    """Fourier coefficients of images, centred, with their poses and CTF."""

    grid: VolumeGrid
    # (n, m): coefficients at the frequencies ``grid.plane``. Noise has variance 1.
    values: np.ndarray
    rotations: np.ndarray  # (n, 3, 3): they take the molecule to the image
    box: float  # angstrom
    optics: Particles | None = None  # particles whose CTF the images have; None if they have none
    # (m,): variance of all that volumes cannot explain, at least 1; None for 1
    noise: np.ndarray | None = None
    symmetry: str = "C1"  # point group of the molecule
    size: int = 0  # width of an image in pixels
    device: str = "cpu"  # where images are compared with volumes, as torch calls it

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
    def transfer(self) -> np.ndarray:
        """The contrast transfer function at the same frequencies, (n, m)."""
        if self.optics is None:
            return np.ones(self.values.shape, np.float32)
        x, y = self.grid.plane.T / self.box
        return particle_ctf(self.optics, (x, y))

    def turn(self, vectors: np.ndarray) -> "Transforms":
        """Return the images with poses turned by rotation vectors, in radians, (3,) or (n, 3)."""
        return replace(self, rotations=Rotation.from_rotvec(vectors).as_matrix() @ self.rotations)

    @property
    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and transfer in units of `noise`."""
        if self.noise is None:
            return self.values, self.transfer
        unit = np.sqrt(self.noise).astype(np.float32)
        return self.values / unit, self.transfer / unit

    def shown(self, columns: np.ndarray) -> np.ndarray:
        """Return real and imaginary parts in units of `noise`, (n, m, 2, n_volumes).

        `columns` are those of volumes, as `VolumeGrid.columns` has them.
        """
        _, transfer = self.weighted
        weights, numbers = self.corners
        places = like(weights, self.grid.position)[numbers]
        shown = sparse_rows(weights, places, len(columns)) @ columns
        shown = shown.reshape(*transfer.shape, 2, columns.shape[1] // 2)
        return shown * self.there(transfer)[..., None, None]

    @cached_property
    def corners(self) -> tuple:
        """Where slices of volumes lie, see `VolumeGrid.corners`, on the device."""
        return self.grid.corners(self.there(self.rotations))

    def there(self, array: np.ndarray):
        """Return an array as a tensor on the device, on the CPU as it is."""
        if self.device == "cpu":
            return array
        return on_device(self.device.removeprefix("torch:"), array)

    @cached_property
    def mates(self) -> np.ndarray:
        """The rotations after which the molecule looks the same, (order, 3, 3)."""
        return point_group(self.symmetry)

    def with_mates(self) -> "Transforms":
        """Return every image once for each rotation of the molecule's symmetry."""
        if len(self.mates) == 1:
            return self
        order = np.repeat(np.arange(len(self)), len(self.mates))
        rotations = self.rotations[:, None] @ self.mates
        return replace(self[order], rotations=rotations.reshape(-1, 3, 3))


def read_transforms(
    source: ImageSource,
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
    with stages.timed("images"):
        noise = stages.once("noise", partial(_noise, source, grid, rng))
        blocks = source.block_rows()
        jobs = [(source[rows], shift[rows], grid, noise) for rows in blocks]
        report = partial(stages.report, "images")
        found = stages.pieces("images", _coefficients, jobs, workers=workers, report=report)
        values = np.empty((len(source), len(grid.plane)), np.complex64)
        for rows, part in zip(blocks, found, strict=True):
            values[rows] = part
    return Transforms(
        grid,
        values,
        rotations=euler_matrices(particles.angles),
        box=source.shape[0] * source.pixel_size,
        size=source.shape[0],
        optics=particles.without_images() if "defocus_u" in particles.microscope else None,
    )


def _coefficients(
    source: ImageSource, shift: np.ndarray, grid: VolumeGrid, noise: np.ndarray
) -> np.ndarray:
    """Read one block of images, and return their coefficients."""
    ((_, images),) = source.blocks()
    spectra = fft.rfft2(images, norm="ortho", workers=cores())
    size = source.shape[0]
    column, row = grid.plane.T
    # The first pixel of an image lies half a box before its centre.
    centred = np.exp(2j * np.pi * (size // 2) / size * (column + row))
    values = spectra[:, row, column] * (centred / np.sqrt(noise)).astype(np.complex64)
    cycles = shift @ grid.plane.T / size
    return (values * np.exp(-2j * np.pi * cycles)).astype(np.complex64)


def transform_grid(
    source: ImageSource,
    particles: Particles,
    *,
    low_pass: float | None = None,
    mask_radius: float | None = None,
) -> VolumeGrid:
    """Return the frequencies that are kept of images; refuse images that all views cannot use."""
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
    if "defocus_u" in particles.microscope and source.stated_size is None:
        raise ValueError(
            f"images with a CTF need a pixel size; neither {particles.path} nor its "
            "stacks state it. Fit with --pixel-size, in Angstrom."
        )
    size, pixel_size = square_side(source.shape), source.pixel_size
    box = size * pixel_size
    if low_pass is not None:
        require_number("--low-pass", low_pass, low=2 * pixel_size, high=box / 3)
    # Motions of a molecule show at a tenth of its size: an image has some 250 coefficients.
    cut = 12.5 if low_pass is None else box / low_pass
    # The ball holds the molecule; noise is measured outside.
    radius = 0.48 * box if mask_radius is None else mask_radius
    require_number("--mask-radius", radius, above=0, high=0.5 * box)
    return VolumeGrid(cut=min(cut, size // 2 - 1), radius=radius / box)


def _noise(source: ImageSource, grid: VolumeGrid, rng: np.random.Generator) -> np.ndarray:
    """Return the variance of the noise at each frequency of an image."""
    size = source.shape[0]
    surveyed = survey(View(source), circular_mask(size, grid.radius * size), rng)
    noise = surveyed.noise
    if not np.all(noise > 0):
        raise ValueError(
            f"images must differ from each other; the {surveyed.n_images} in which noise was "
            "measured are all alike. Check that their stacks hold images."
        )
    return noise[np.minimum(grid.plane_shells, len(noise) - 1)]
