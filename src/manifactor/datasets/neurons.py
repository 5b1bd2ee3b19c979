"""Spike counts of simulated neurons: grid cells, head direction cells, speed cells.

Each cell has a rate that depends on what the animal does, and a Poisson number of spikes in a time
window. All rates are in spikes a window.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from manifactor.datasets.products import Samples, ring

# Plane waves whose sum is the rate map of a grid cell, as multiples of two phases. The three of a
# hexagonal grid lie 60 degrees apart, the two of a square grid 90.
HEXAGONAL = ((1, 0), (0, 1), (1, -1))
SQUARE = ((1, 0), (0, 1))


class Cells(Protocol):
    """Cells that respond to one or more variables."""

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return rates, (n_samples, n_cells), and the latents of each true factor."""


@dataclass(frozen=True)
class GridCells:
    """A module of grid cells: equal spacing and orientation, phases at random."""

    # `HEXAGONAL`, as in the brain: the population's states lie on a flat torus with angles of 60
    # degrees, which is no product. `SQUARE`: a product of two circles.
    waves: tuple[tuple[int, int], ...] = HEXAGONAL
    n_cells: int = 120
    peak: float = 15.0  # rate at the centre of a field
    # The rate is peak exp(sharpness (w - 1)), where w is the mean of the waves
    sharpness: float = 2.0

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return rates and the place in the unit cell, as circles of its phases."""
        phases = rng.uniform(0, 2 * np.pi, size=(n_samples, 2))
        centres = rng.uniform(0, 2 * np.pi, size=(self.n_cells, 2))
        circles = [ring(phase) for phase in phases.T]
        latents = circles if self.waves == SQUARE else [np.hstack(circles)]
        return self.rates(phases, centres), latents

    def rates(self, phases: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Return the rates at phases, (n, 2), of cells with these field centres."""
        waves = np.array(self.waves).T
        offset = (phases @ waves)[:, None] - centres @ waves
        mean = np.cos(offset).mean(axis=2)
        return self.peak * np.exp(self.sharpness * (mean - 1))


@dataclass(frozen=True)
class DirectionCells:
    """Head direction cells with evenly spaced preferred directions.

    `concentration` is that of their von Mises tuning curves; 2 makes them 100 degrees wide at half
    of their height.
    """

    n_cells: int = 40
    peak: float = 15.0
    concentration: float = 2.0

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return rates and the direction."""
        direction = rng.uniform(0, 2 * np.pi, size=n_samples)
        preferred = 2 * np.pi * np.arange(self.n_cells) / self.n_cells
        wave = np.cos(direction[:, None] - preferred)
        return self.peak * np.exp(self.concentration * (wave - 1)), [ring(direction)]


@dataclass(frozen=True)
class SpeedCells:
    """Speed cells: their rates grow in proportion to the speed, from a base rate.

    The speed is beta distributed between 0 and 1. Slow runs are more frequent.
    """

    n_cells: int = 30
    base: float = 1.0
    steepest: float = 25.0

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return rates and the speed."""
        speed = rng.beta(1.5, 2.5, size=(n_samples, 1))
        slope = rng.uniform(0.5, 1, size=self.n_cells) * self.steepest
        return self.base + speed * slope, [speed]


@dataclass(frozen=True)
class Recording:
    """Spike counts of several kinds of cells, side by side.

    Poisson noise grows with the rate; square roots of the counts have even noise.
    """

    cells: tuple[Cells, ...]

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw counts, (n_samples, n_cells), and the latents of all factors."""
        drawn = [kind.draw(n_samples, rng) for kind in self.cells]
        rates = np.hstack([rates for rates, _ in drawn])
        counts = rng.poisson(rates).astype(float)
        return counts, tuple(latent for _, latents in drawn for latent in latents)


NEURONS = {
    "grid_cells": Recording((GridCells(),)),
    "square_grid_cells": Recording((GridCells(SQUARE),)),
    "grid_and_direction": Recording((GridCells(), DirectionCells())),
    "direction_and_speed": Recording((DirectionCells(), SpeedCells())),
}
