"""How many particles each view has, and how well it shows the motions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from manifactor.cryoem.all_views.motions import Motions, PlaceFeatures
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.directions import SphereCells, half_sphere_cells


@dataclass(frozen=True)
class ViewMap:
    """How well views show the motions."""

    cells: SphereCells  # cells of equal area on half of the sphere
    counts: np.ndarray  # (n_cells,): particles in each cell
    # (n_cells, n_motions): root mean square of their deviations; nan in an empty cell
    deviations: np.ndarray

    @property
    def directions(self) -> np.ndarray:
        """The directions of the cells' centres, (n_cells, 3)."""
        return self.cells.centres

    @property
    def populated(self) -> np.ndarray:
        """Cells with at least half of the usual number of particles, (n_cells,).

        The deviation of a few particles is accidental.
        """
        seen = self.counts > 0
        return seen & (self.counts >= np.median(self.counts[seen]) / 2)


def view_map(rotations: np.ndarray, deviations: np.ndarray, *, n_bands: int = 10) -> ViewMap:
    """Count particles by viewing direction, and average their deviations.

    Shapes: rotations (n, 3, 3), deviations (n, n_motions).
    """
    cells = half_sphere_cells(n_bands)
    cell = cells.index(rotations[:, 2])
    counts = np.bincount(cell, minlength=len(cells))
    squares = [np.bincount(cell, values**2, len(cells)) for values in deviations.T]
    with np.errstate(invalid="ignore"):
        mean = np.reshape(squares, (-1, len(cells))).T / counts[:, None]
    return ViewMap(cells, counts, np.sqrt(mean))


# A molecule in any state, from any direction: what a run of all views keeps.


@dataclass(frozen=True)
class MotionModel:
    """Volumes of a molecule that moves, and how well views show its motions."""

    grid: VolumeGrid
    box: float  # width of an image in Angstrom
    # Features of places; the latter if another program told the places
    motions: Motions | PlaceFeatures
    volumes: np.ndarray  # (n_features, grid.size)
    views: ViewMap
    # (n_motions,): how much of a motion in some views the other views predict; if another program
    # told the places, the correlation of volumes from two half sets of images
    consistency: np.ndarray
    # (n_motions, n_levels): of the places of all particles, from 0 to 1; None if another program
    # told them
    quantiles: np.ndarray | None = None

    def state(self, places: np.ndarray) -> np.ndarray:
        """Return the transform of the molecule at places on all motions, (size,)."""
        features = self.motions.features(np.atleast_2d(places))
        return features[0] @ self.volumes

    def images(self, places: np.ndarray, rotations: np.ndarray, *, size: int = 64) -> np.ndarray:
        """Return mean images of the molecule, without CTF, (n, size, size).

        Shapes: places (n_motions,), rotations (n, 3, 3).
        """
        features = self.motions.features(np.atleast_2d(places))
        sharp = features[0] @ self._sharpened
        values = self.grid.slices(rotations) @ sharp
        column, row = self.grid.plane.T
        half = size // 2 + 1
        spectra = np.zeros((len(rotations), size, half), complex)
        values = values.reshape(len(rotations), -1)
        # The centre of the molecule becomes the centre of the image.
        shifted = values * np.exp(-2j * np.pi * (size // 2) / size * (column + row))
        inside = (column < half) & (np.abs(row) < half)
        spectra[:, row[inside], column[inside]] = shifted[:, inside]
        # Of the first column an image's transform has both halves.
        first = inside & (column == 0)
        spectra[:, -row[first], 0] = shifted[:, first].conj()
        return fft.irfft2(spectra, s=(size, size))

    @cached_property
    def _sharpened(self) -> np.ndarray:
        """Volumes to interpolate slices of; sharpening is linear in them."""
        # Once for all images: a slider is followed by an image of each place.
        return self.grid.sharpened(self.volumes).astype(np.complex64)

    @property
    def voxel_size(self) -> float:
        """Width of a voxel of `density`, in Angstrom."""
        return self.box * self.grid.padding / self.grid.side

    def density(self, places: np.ndarray) -> np.ndarray:
        """Return the molecule in real space, a cube of the box indexed by z, y, x."""
        # Indexed by x, y, z.
        cube = self.grid.densities(self.state(places)[None])[0]
        middle, reach = self.grid.half, self.grid.half // self.grid.padding
        box = slice(middle - reach, middle + reach + 1)
        return cube[box, box, box].transpose(2, 1, 0)
