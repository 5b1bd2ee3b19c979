"""Shapes in curved coordinates, of circles or spheres, with parts cut off and uneven densities."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from manifactor.datasets import shapes
from manifactor.datasets.products import Samples, Truth, ring
from manifactor.datasets.shapes import AROUND


def sphere(polar: np.ndarray, azimuth: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere, (n_samples, 3)."""
    return np.c_[np.sin(polar)[:, None] * ring(azimuth), np.cos(polar)]


def _everywhere(*q: np.ndarray) -> np.ndarray:
    return np.ones_like(q[0])


@dataclass(frozen=True)
class MappedBox(shapes.MappedBox):
    """The image of a part of a box; a factor may be a "sphere": a polar angle and an azimuth."""

    inside: Callable[..., np.ndarray] = _everywhere  # which points of the box belong to the shape
    # Minus the logarithm of soft densities, from 0 to 1: a sum of functions of one coordinate each,
    # so that the diffusion of samples of such a density separates, too. None: the densities fall
    # from the middle of the first factor to both its ends.
    slope: Callable[..., np.ndarray] | None = None
    fall: float = 0.0  # the density falls by exp(fall) from its highest value

    def __call__(self, n_samples: int, rng, *, fall: float = 0.0) -> Samples:
        """Draw samples and truth."""
        if fall:
            return replace(self, fall=fall)(n_samples, rng)
        return super().__call__(n_samples, rng)

    def density(self, q: np.ndarray) -> np.ndarray:
        """Return the density at coordinates, (n, d)."""
        inside = self.inside(*q.T)
        # Outside, the map may not be defined.
        q = np.where(inside[:, None], q, q[np.argmax(inside)])
        return inside * super().density(q) * np.exp(-self.fall * self._slope(q))

    def truth(self, q: np.ndarray) -> Truth:
        """Return the true factors: intervals from 0 to 1, circles and spheres as unit vectors."""
        if "sphere" not in self.factors:
            return super().truth(q)
        at = list(self.factors).index("sphere")
        plain = replace(self, box=self.box[:at], factors=self.factors[:at])
        return *plain.truth(q[:, :at]), sphere(*q[:, at : at + 2].T)

    def _slope(self, q: np.ndarray) -> np.ndarray:
        if self.slope is not None:
            return self.slope(*q.T)
        if not self.factors:
            return np.zeros(len(q))
        first = self.truth(q)[0][:, 0]
        return (2 * first - 1) ** 2 if self.factors[0] == "interval" else (1 - first) / 2


def revolution(
    ends: tuple[float, float],
    radius: Callable,
    height: Callable | None = None,
    *,
    along: str = "interval",
    around: str = "circle",
    slope: Callable | None = None,
) -> MappedBox:
    """Return the circles or spheres of a radius that varies along a curve.

    It is a surface of revolution, or a part of the plane or of space if there is no height.
    """
    angles, fibre = ((AROUND,), ring) if around == "circle" else (((0.0, np.pi), AROUND), sphere)

    def place(t: np.ndarray, *q: np.ndarray) -> np.ndarray:
        flat = radius(t)[:, None] * fibre(*q)
        return flat if height is None else np.c_[flat, height(t)]

    return MappedBox((ends, *angles), place, (along, around), slope=slope)


def annulus(ratio: float, **changes) -> MappedBox:
    """Return the annulus, or the shell, between radii `ratio` and 1."""
    return revolution((ratio, 1.0), lambda r: r, **changes)


def vase(depth: float, waves: float, phase: float, length: float, **changes) -> MappedBox:
    """Return the circles or spheres of a wavy radius."""

    def radius(t: np.ndarray) -> np.ndarray:
        return 1 + depth * np.cos(2 * np.pi * waves * t + phase)

    return revolution((0.0, 1.0), radius, lambda t: length * t, **changes)


def ellipse(axis: float) -> MappedBox:
    """Return the inside of an ellipse with half axes 1 and `axis`, in elliptic coordinates."""
    plain = shapes.ellipse(axis)
    return MappedBox(plain.box, plain.place, plain.factors, slope=partial(_quartic, axis, plain))


def _quartic(axis: float, plain: shapes.MappedBox, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    # A quartic of the form f(u) + f(v). The square of the radius is one, too, but a Gaussian
    # separates in x and y as well.
    focus, (x, y) = np.sqrt(1 - axis**2), plain.place(u, v).T
    quartic = (x**2 + y**2) ** 2 + 2 * focus**2 * y**2
    return quartic / max(1, axis**4 + 2 * focus**2 * axis**2)
