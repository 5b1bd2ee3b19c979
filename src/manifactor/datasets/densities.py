"""Parts of products whose samples are uneven: soft densities, wells and gaps.

A density is a function of the place on an interval or a circle, from 0 at its start to 1 at its
end. Its values are relative, and at most 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Interval, Sphere

Density = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Beta:
    """The beta distribution with exponents a - 1 and b - 1, both above 0."""

    a: float
    b: float

    def __call__(self, place: np.ndarray) -> np.ndarray:
        """Return the density at places, relative to its maximum."""
        mode = (self.a - 1) / (self.a + self.b - 2)
        return self._power(place) / self._power(np.array(mode))

    def _power(self, place: np.ndarray) -> np.ndarray:
        return place ** (self.a - 1) * (1 - place) ** (self.b - 1)


@dataclass(frozen=True)
class Bumps:
    """Two equal Gaussian bumps, at the quarters of the interval.

    With a width of .12 or more, the density is nowhere below a tenth of its maximum.
    """

    width: float

    def __call__(self, place: np.ndarray) -> np.ndarray:
        """Return the density at places, relative to twice the height of a bump."""
        quarters = np.array([0.25, 0.75])
        offset = (place[:, None] - quarters) / self.width
        return np.exp(-(offset**2) / 2).mean(axis=1)


@dataclass(frozen=True)
class VonMises:
    """The von Mises distribution on a circle, the counterpart of the normal one."""

    concentration: float

    def __call__(self, place: np.ndarray) -> np.ndarray:
        """Return the density at places, relative to its maximum."""
        return np.exp(self.concentration * (np.cos(2 * np.pi * place) - 1))


@dataclass(frozen=True)
class Wells:
    """The Boltzmann distribution of a torsion: wells of energy along a circle.

    The energy is V/2 (1 + cos 3a), in units of kT, where V is the barrier between two wells. A tilt
    makes the wells unequal: it adds up to `tilt` to the energy, on one side of the circle.
    """

    barrier: float
    tilt: float
    count: int = 3

    def __call__(self, place: np.ndarray) -> np.ndarray:
        """Return the density at places, relative to a well of energy 0."""
        angle = 2 * np.pi * place
        wells = self.barrier * (1 + np.cos(self.count * angle)) / 2
        # Shifted by a radian, so that no two wells have the same energy.
        tilted = self.tilt * (1 + np.cos(angle - 1)) / 2
        return np.exp(-wells - tilted)


@dataclass(frozen=True)
class Gap:
    """A uniform density with a gap, which holds no samples."""

    width: float
    start: float

    def __call__(self, place: np.ndarray) -> np.ndarray:
        """Return 0 in the gap and 1 elsewhere."""
        in_gap = (place > self.start) & (place < self.start + self.width)
        return np.where(in_gap, 0.0, 1.0)


@dataclass(frozen=True)
class Uneven:
    """An interval or a circle with a density along it."""

    part: Interval | Sphere
    density: Density

    @property
    def extent(self) -> float:
        """The largest distance between two points."""
        return self.part.extent

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points and the latents of the interval or circle."""

        def candidates(count: int) -> np.ndarray:
            return np.hstack(self.part.draw(count, rng))

        def density(rows: np.ndarray) -> np.ndarray:
            return self.density(_place(rows[:, rows.shape[1] // 2 :]))

        rows = draw_by_rejection(candidates, density, n_samples, rng)
        # Points and latents have as many columns.
        points, latents = np.hsplit(rows, 2)
        return points, latents


def _place(latents: np.ndarray) -> np.ndarray:
    """Return the place of latents on an interval or circle, from 0 to 1."""
    if latents.shape[1] == 1:
        return latents[:, 0]
    cosine, sine = latents.T
    return np.arctan2(sine, cosine) / (2 * np.pi) % 1


@dataclass(frozen=True)
class Normal:
    """A normal distribution on the line. Its latents have a deviation of 1."""

    deviation: float

    @property
    def extent(self) -> float:
        """The length that holds 95 % of the samples."""
        return 4 * self.deviation

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points and their latents."""
        z = rng.normal(size=(n_samples, 1))
        return self.deviation * z, z


@dataclass(frozen=True)
class Exponential:
    """An exponential distribution on the half-line. Its latents have a mean of 1."""

    mean: float

    @property
    def extent(self) -> float:
        """The length that holds 95 % of the samples."""
        return 3 * self.mean

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return points and their latents."""
        t = rng.exponential(size=(n_samples, 1))
        return self.mean * t, t


def draw_by_rejection(
    candidates: Callable[[int], np.ndarray], density: Density, n_samples: int, rng
) -> np.ndarray:
    """Draw rows with a density, (n_samples, n_columns)."""
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < n_samples:
        rows = candidates(4 * n_samples)
        keep = rng.uniform(size=len(rows)) < density(rows)
        kept.append(rows[keep])
    return np.vstack(kept)[:n_samples]
