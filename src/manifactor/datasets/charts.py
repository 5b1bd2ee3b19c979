"""Shapes in curved coordinates: the image of a box under a smooth map, even by area or volume.

In these coordinates the Laplacian of an annulus, an ellipse or a vase separates, although lengths
along one coordinate depend on another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples, Truth, ring, thinned

AROUND = (0.0, 2 * np.pi)


def sphere(polar: np.ndarray, azimuth: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere, (n_samples, 3)."""
    return np.c_[np.sin(polar)[:, None] * ring(azimuth), np.cos(polar)]


def _everywhere(*q: np.ndarray) -> np.ndarray:
    return np.ones_like(q[0])


@dataclass(frozen=True)
class MappedBox:
    """The image of a box of coordinates under a map."""

    box: Sequence[tuple[float, float]]  # lowest and highest value of each coordinate
    place: Callable[..., np.ndarray]  # from coordinates, (n,) each, to samples, (n, n_columns)
    # True factors in the order of the coordinates: "interval" or "circle", or "sphere" for a polar
    # angle and an azimuth. Without any, the samples are the only factor.
    factors: Sequence[str] = ()
    inside: Callable[..., np.ndarray] = _everywhere  # which points of the box belong to the shape
    # Minus the logarithm of soft densities, from 0 to 1: a sum of functions of one coordinate each,
    # so that the diffusion of samples of such a density separates, too. None: the densities fall
    # from the middle of the first factor to both its ends.
    slope: Callable[..., np.ndarray] | None = None

    def __call__(self, n_samples: int, rng, *, fall: float = 0.0) -> Samples:
        """Draw samples and truth; the density falls by exp(fall) from its highest value."""

        def box(n: int, rng) -> Samples:
            return rng.uniform(*np.transpose(self.box), size=(n, len(self.box))), ()

        def density(q: np.ndarray, _) -> np.ndarray:
            inside = self.inside(*q.T)
            # Outside, the map may not be defined.
            q = np.where(inside[:, None], q, q[np.argmax(inside)])
            area = np.sqrt(np.linalg.det(self.metric(q)).clip(0))
            return inside * area * np.exp(-fall * self._slope(q))

        highest = density(*box(20_000, rng)).max()
        q, _ = thinned(box, lambda q, _: density(q, _) / highest, n_samples, rng)
        X = self.place(*q.T)
        return X, self.truth(q) or (X,)

    def metric(self, q: np.ndarray) -> np.ndarray:
        """Return the metric tensor at coordinates (n, d), of shape (n, d, d)."""
        # Central differences are then right to 1e-9.
        steps = 1e-5 * np.ptp(self.box, axis=1)
        ends = [(self.place(*(q + s).T), self.place(*(q - s).T)) for s in np.diag(steps)]
        jacobian = np.stack([high - low for high, low in ends], axis=-1) / (2 * steps)
        return jacobian.transpose(0, 2, 1) @ jacobian

    def truth(self, q: np.ndarray) -> Truth:
        """Return the true factors: intervals from 0 to 1, circles and spheres as unit vectors."""
        low, high = np.transpose(self.box)
        found, i = [], 0
        for factor in self.factors:
            if factor == "interval":
                found.append(((q - low) / (high - low))[:, [i]])
            elif factor == "circle":
                found.append(ring(q[:, i]))
            else:
                found.append(sphere(q[:, i], q[:, i + 1]))
                i += 1
            i += 1
        return tuple(found)

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
    """Return the annulus between radii `ratio` and 1: radius and angle."""
    return revolution((ratio, 1.0), lambda r: r, **changes)


def vase(depth: float, waves: float, phase: float, length: float, **changes) -> MappedBox:
    """Return a surface of revolution with a wavy radius: height and angle."""

    def radius(t: np.ndarray) -> np.ndarray:
        return 1 + depth * np.cos(2 * np.pi * waves * t + phase)

    return revolution((0.0, 1.0), radius, lambda t: length * t, **changes)


def ellipse(axis: float) -> MappedBox:
    """Return the inside of an ellipse with half axes 1 and `axis`, in elliptic coordinates.

    The confocal ellipses, from the segment between the foci to the border, are an interval; the
    hyperbolas, each side of which is one value of an angle, are a circle.
    """
    focus = np.sqrt(1 - axis**2)

    def place(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return focus * np.c_[np.cosh(u) * np.cos(v), np.sinh(u) * np.sin(v)]

    def slope(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        # A quartic of the form f(u) + f(v). The square of the radius is one, too, but a Gaussian
        # separates in x and y as well.
        x, y = place(u, v).T
        quartic = (x**2 + y**2) ** 2 + 2 * focus**2 * y**2
        return quartic / max(1, axis**4 + 2 * focus**2 * axis**2)

    return MappedBox(((0.0, np.arctanh(axis)), AROUND), place, ("interval", "circle"), slope=slope)
