"""How many particles each view has, and how well it shows the motions."""

from dataclasses import dataclass

import numpy as np

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
