"""A molecule of blobs with two motions, made by hand."""

import numpy as np
from scipy import fft

from manifactor.cryoem.all_views.model import MotionModel, ViewMap
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.transforms import PADDING, VolumeGrid
from manifactor.cryoem.directions import half_sphere_cells

BOX = 264.0


def moving_model():
    """The interval moves density along x; the circle turns it about x, from y to z.

    Views along x are blind to the interval, and one cell has no particles.
    """
    grid, motions = VolumeGrid(cut=5.0, radius=0.48), Motions(("interval", "circle"))
    axis = fft.fftfreq(grid.side) * PADDING
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")

    def pair(*centre):
        there, back = (
            np.exp(-((x - s * centre[0]) ** 2) / 0.02)
            * np.exp(-((y - s * centre[1]) ** 2) / 0.02)
            * np.exp(-((z - s * centre[2]) ** 2) / 0.02)
            for s in (1, -1)
        )
        return np.array([there + back, there - back])

    densities = np.zeros((1 + 1 + 2, *x.shape))
    densities[0] = sum(pair(*centre)[0] for centre in np.eye(3) / 5)
    densities[1] = pair(0.2, 0, 0)[1] / 2  # the first polynomial of the interval
    densities[2] = pair(0, 0.2, 0)[1] / 2  # the cosine of the circle
    densities[3] = pair(0, 0, 0.2)[1] / 2  # its sine
    spectra = fft.fftshift(fft.fftn(densities, axes=(1, 2, 3)), axes=(1, 2, 3))
    volumes = spectra.reshape(len(densities), -1).astype(np.complex64)
    return MotionModel(grid, BOX, motions, volumes, moving_views(), np.array([0.98, 1]))


def moving_views():
    cells = half_sphere_cells(5)
    counts = np.full(len(cells), 5)
    counts[0] = 0
    along_x = np.abs(cells.centres[:, 0])
    deviations = np.column_stack([0.01 + 0.27 * along_x**8, np.full(len(cells), 0.02)])
    deviations[0] = np.nan
    return ViewMap(cells, counts, deviations)
