"""Viewing directions: an even grid, and how well each of them shows the motions."""

from dataclasses import dataclass

import numpy as np


def hemisphere(count: int) -> np.ndarray:
    """Return unit vectors spread evenly over half of the sphere, (count, 3).

    They lie on a Fibonacci spiral. A view and the one from behind show the same.
    """
    index = np.arange(count)
    z = (index + 0.5) / count
    azimuth = np.pi * (3 - np.sqrt(5)) * index
    across = np.sqrt(1 - z**2)
    return np.column_stack([across * np.cos(azimuth), across * np.sin(azimuth), z])


@dataclass(frozen=True)
class ViewMap:
    """How well views show the motions.

    Attributes
    ----------
    directions : ndarray of shape (n_cells, 3)
        Centres of cells of equal area on half of the sphere.
    counts : ndarray of int of shape (n_cells,)
        Particles in each cell.
    deviations : ndarray of shape (n_cells, n_motions)
        Root mean square of their deviations; nan in an empty cell.
    """

    directions: np.ndarray
    counts: np.ndarray
    deviations: np.ndarray


def view_map(
    rotations: np.ndarray, deviations: np.ndarray, *, n_cells: int = 256
) -> ViewMap:
    """Count particles by viewing direction, and average their deviations.

    Parameters
    ----------
    rotations : ndarray of shape (n, 3, 3)
    deviations : ndarray of shape (n, n_motions)
    n_cells : int
        256 cells are 9 degrees wide.
    """
    directions = hemisphere(n_cells)
    # The view from behind shows the mirror image.
    cell = np.abs(rotations[:, 2] @ directions.T).argmax(axis=1)
    counts = np.bincount(cell, minlength=n_cells)
    squares = [np.bincount(cell, values**2, n_cells) for values in deviations.T]
    with np.errstate(invalid="ignore"):
        mean = np.column_stack(squares) / counts[:, None]
    return ViewMap(directions, counts, np.sqrt(mean))
