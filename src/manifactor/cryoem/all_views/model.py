"""A molecule in any state, from any direction, and how well directions show its motions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft

from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.all_views.motions import Motions, PlaceFeatures
from manifactor.cryoem.all_views.regression import FeatureMoments, volumes_from
from manifactor.cryoem.all_views.transforms import Transforms, VolumeGrid, volume_correlation
from manifactor.cryoem.directions import SphereCells, direction_angles, half_sphere_cells
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.runs.places import Place

# Standard deviation of even places: that of an image which shows nothing of a motion.
UNKNOWN = float(np.sqrt(1 / 12))


@dataclass(frozen=True)
class ViewMap:
    """How well views show the motions."""

    cells: SphereCells  # cells of equal area on half of the sphere
    counts: np.ndarray  # (n_cells,): particles in each cell
    # (n_cells, n_motions): root mean square of their deviations; nan in an empty cell
    deviations: np.ndarray

    @property
    def populated(self) -> np.ndarray:
        """Cells, (n_cells,), with half of the usual particles or more; fewer are not reliable."""
        seen = self.counts > 0
        return seen & (self.counts >= np.median(self.counts[seen]) / 2)


def view_map(rotations: np.ndarray, deviations: np.ndarray) -> ViewMap:
    """Count particles by viewing direction, and average their deviations, (n, n_motions)."""
    cells = half_sphere_cells(10)
    cell = cells.index(rotations[:, 2])
    counts = np.bincount(cell, minlength=len(cells))
    squares = np.zeros((len(cells), deviations.shape[1]))
    np.add.at(squares, cell, deviations**2)
    with np.errstate(invalid="ignore"):
        return ViewMap(cells, counts, np.sqrt(squares / counts[:, None]))


def counted_views(particles: Particles | None) -> ViewMap:
    """Return the number of particles in each direction; 0 without angles."""
    angles = None if particles is None else particles.angles
    rotations = euler_matrices(np.zeros((0, 3)) if angles is None else angles)
    return view_map(rotations, np.zeros((len(rotations), 0)))


def angles_of(directions: np.ndarray) -> list[tuple[float, float]]:
    """Return rot and tilt of directions, in whole degrees."""
    # Zero is added to turn -0 into 0.
    angles = np.round(direction_angles(directions)) + 0.0
    return [(rot, tilt) for rot, tilt in angles.tolist()]


def visibility(views: ViewMap, motion: int) -> dict[str, Any]:
    """Return how many directions show a motion, counted from 0, as run.json has it.

    "shown" and "blind" are shares of the directions with enough particles, "blind_particles" is
    that of all particles, "axis" the rot and tilt of an axis around which blind directions lie.
    """
    enough = views.populated
    relative = views.deviations[:, motion] / UNKNOWN
    # A direction shows a motion if three quarters of the variance are known, and is blind to it if
    # less than half is. Empty cells have no deviation and are neither.
    blind = relative > 0.75
    return {
        "shown": float((relative[enough] <= 0.5).mean()),
        "blind": float(blind[enough].mean()),
        "blind_particles": float(views.counts[blind].sum() / views.counts.sum()),
        "axis": _axis(views.cells.centres[blind & enough]),
    }


def _axis(directions: np.ndarray) -> tuple[float, float] | None:
    """Return rot and tilt of the axis around which directions lie, if there is one."""
    if not len(directions):
        return None
    # Opposite directions are one, and have the same products of components.
    shares, axes = np.linalg.eigh(directions.T @ directions / len(directions))
    # The mean squared cosine of an angle of 30 degrees.
    if shares[-1] < 0.75:
        return None
    axis = axes[:, -1] if axes[2, -1] >= 0 else -axes[:, -1]
    return angles_of(axis[None])[0]


def motion_records(views: ViewMap, places: Sequence[Place]) -> list[dict]:
    """Return how well each motion is known, as run.json has it."""
    return [
        {
            "topology": place.topology,
            **visibility(views, motion),
            "median_deviation": float(np.median(place.displayed_deviation)),
        }
        for motion, place in enumerate(places)
        if place.displayed_deviation is not None
    ]


@dataclass(frozen=True)
class MotionModel:
    """Volumes of a molecule that moves, and how well views show its motions."""

    grid: VolumeGrid
    box: float  # width of an image in Angstrom
    # FeatureMoments of places; the latter if another program told the places
    motions: Motions | PlaceFeatures
    volumes: np.ndarray  # (n_features, grid.size)
    views: ViewMap
    # (n_motions,): how much of a motion in some views the other views predict; if another program
    # told the places, the correlation of volumes from two half sets of images
    consistency: np.ndarray
    size: int = 0  # width of an image in pixels; 0 if it is unknown

    def images(self, places: np.ndarray, rotations: np.ndarray, *, size: int = 64) -> np.ndarray:
        """Return images, (n, size, size), of one place from n sides, without CTF."""
        state = self.motions.features(np.atleast_2d(places))[0] @ self._sharpened
        values = (self.grid.slices(rotations) @ state).reshape(len(rotations), -1)
        column, row = self.grid.plane.T
        half = size // 2 + 1
        spectra = np.zeros((len(rotations), size, half), complex)
        # The centre of the molecule becomes the centre of the image.
        shifted = values * np.exp(-2j * np.pi * (size // 2) / size * (column + row))
        inside = (column < half) & (np.abs(row) < half)
        spectra[:, row[inside], column[inside]] = shifted[:, inside]
        # An image's transform has both halves of its first column.
        first = inside & (column == 0)
        spectra[:, -row[first], 0] = shifted[:, first].conj()
        return fft.irfft2(spectra, s=(size, size))

    @cached_property
    def _sharpened(self) -> np.ndarray:
        """Volumes to interpolate slices of, once for all images that follow a slider."""
        return self.grid.sharpen(self.volumes).astype(np.complex64)

    @property
    def side(self) -> int:
        """Voxels along a side of `density`: pixels along one of the images."""
        return self.size or self.grid.half

    @property
    def voxel_size(self) -> float:
        """Width of a voxel of `density`, in Angstrom."""
        return self.box / self.side

    def density(self, places: np.ndarray) -> np.ndarray:
        """Return the molecule in real space, a cube of the box indexed by z, y, x.

        As in RELION's maps, its centre is the voxel ``side // 2``.
        """
        grid, axis = self.grid, np.arange(self.side) - self.side // 2
        state = self.motions.features(np.atleast_2d(places))[0] @ self.volumes * grid.inside
        # Frequencies of half a cycle: voxels of any width are sums of their waves, along x, y, z.
        waves = np.exp(2j * np.pi / self.side * np.outer(grid.axis, axis)).astype(np.complex64)
        cube = state.reshape(3 * (grid.side,)).astype(np.complex64) / grid.size
        for _ in range(2):
            cube = np.tensordot(cube, waves, (0, 0))
        # Indexed by y, x, z. The molecule is real: the last sum is of its real parts alone.
        cube = cube.transpose(2, 1, 0)
        real, imaginary = waves.real, waves.imag
        return np.tensordot(real, cube.real, (0, 2)) - np.tensordot(imaginary, cube.imag, (0, 2))


# The molecule from images whose places on factors another program told.


def model_of_places(
    transforms: Transforms,
    topologies: Sequence[str],
    places: Sequence[np.ndarray],
    *,
    rng: np.random.Generator,
    report: Callable[[float], None] = ignored,
    workers: Workers = Here(),
) -> MotionModel:
    """Return the molecule along factors on which the places of images are known, (n, d) each."""
    features = PlaceFeatures.of(topologies, places)
    known = FeatureMoments.known(features.features(np.hstack(list(places))))
    half = rng.permutation(len(transforms)) % 2
    volumes = []
    for number in (0, 1):
        rows = np.flatnonzero(half == number)
        volumes.append(volumes_from(transforms[rows], known[rows], workers))
        report((number + 1) / 2)
    first, second = volumes
    columns = map(features.own_columns, range(len(topologies)))
    return MotionModel(
        grid=transforms.grid,
        box=transforms.box,
        size=transforms.size,
        motions=features,
        volumes=((first + second) / 2).astype(np.complex64),
        views=_expected_views(transforms, features, first, second),
        consistency=np.array([volume_correlation(first[own], second[own]) for own in columns]),
    )


def _expected_views(
    transforms: Transforms, features: PlaceFeatures, first: np.ndarray, second: np.ndarray
) -> ViewMap:
    """Return how well a single image of each direction tells places on factors."""
    # Volumes of two half sets tell what they have in common: noise adds nothing on average.
    n_factors, grid = len(features.topologies), transforms.grid
    counted = view_map(transforms.rotations, np.zeros((len(transforms), n_factors)))
    angles = direction_angles(counted.cells.centres)
    slices = grid.slices(euler_matrices(np.c_[angles, np.zeros(len(angles))]))
    sharp = [grid.sharpen(volumes).astype(np.complex64) for volumes in (first, second)]
    shown = [(slices @ each.T).reshape(len(angles), -1, len(each)) for each in sharp]
    # The square of the CTF that a usual image has.
    power = (transforms.transfer**2).mean(axis=0)
    columns = []
    for factor in range(n_factors):
        own, slopes = features.own_columns(factor), features.slopes(factor)
        ours, yours = (part[:, :, own] for part in shown)
        common = np.einsum("vkj,k,vki->vji", ours.conj(), power, yours).real
        # The noise of a coefficient has variance 1, half of it in each part.
        information = 2 * np.einsum("vji,ji->v", common, slopes)
        # Without any image there is the information of even places.
        total = 12.0 + np.maximum(information, 0)
        columns.append(np.where(counted.counts > 0, 1 / np.sqrt(total), np.nan))
    return replace(counted, deviations=np.column_stack(columns))
