"""Products of parts: intervals, circles and spheres with exact Laplacian spectra, and others.

A shape is a function ``(n_samples, rng) -> (X, truth)``. `truth` has one array for each true
factor: one column for an interval, cosine and sine for a circle, the coordinates for a sphere.
A part of a product is a function ``(n_samples, rng) -> (points, latents)``. Samples are uniform in
the latents, unless a part has its own density: a function of the place on an interval or a circle,
from 0 at its start to 1 at its end, with relative values of at most 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce, wraps
from inspect import signature
from math import comb
from typing import Any

import numpy as np

Truth = tuple[np.ndarray, ...]
Samples = tuple[np.ndarray, Truth]
Shape = Callable[..., Samples]
# Points of one part, (n_samples, n_columns), and their latents.
PartSamples = tuple[np.ndarray, np.ndarray]
Part = Callable[..., PartSamples]


@dataclass(frozen=True, repr=False)
class Parametrised:
    """A function of a family, whose keywords are fixed; its text tells them."""

    family: Any
    keywords: Mapping[str, Any]

    def __call__(self, *arguments):
        return self.family.__wrapped__(*arguments, **self.keywords)

    def __repr__(self) -> str:
        name = self.family.__name__.title().replace("_", "")
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in self.keywords.items())})"


def family(function: Callable) -> Callable[..., Parametrised]:
    """Let a function take its keywords first: what it then returns is a shape, part or density."""
    call = signature(function)
    fixed = [p for p in call.parameters.values() if p.kind is p.KEYWORD_ONLY]
    first = call.replace(parameters=[p.replace(kind=p.POSITIONAL_OR_KEYWORD) for p in fixed])

    @wraps(function)
    def fix(*values, **named) -> Parametrised:
        keywords = first.bind(*values, **named)
        keywords.apply_defaults()
        return Parametrised(fix, keywords.arguments)

    return fix


def ring(angle: np.ndarray) -> np.ndarray:
    """Return points of the unit circle, (n_samples, 2)."""
    return np.c_[np.cos(angle), np.sin(angle)]


@dataclass(frozen=True)
class Interval:
    """An interval of the given length, with Neumann spectrum (k pi / length)^2."""

    length: float = 1.0

    def __call__(self, n_samples: int, rng) -> PartSamples:
        t = rng.uniform(size=(n_samples, 1))
        return self.length * t, t

    def eigenvalues(self, n: int) -> np.ndarray:
        """Return the n lowest eigenvalues of the Laplacian."""
        return (np.pi * np.arange(n) / self.length) ** 2


@dataclass(frozen=True)
class Sphere:
    """A sphere in R^ambient, a circle in R^2, with spectrum l (l + ambient - 2) / radius^2."""

    radius: float = 1.0
    ambient: int = 3

    def __call__(self, n_samples: int, rng) -> PartSamples:
        # The normal distribution has no preferred direction.
        x = rng.normal(size=(n_samples, self.ambient))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return self.radius * x, x

    def eigenvalues(self, n: int) -> np.ndarray:
        """Return the n lowest eigenvalues of the Laplacian with multiplicity."""
        values: list[float] = []
        degree, dimension = 0, self.ambient - 1
        while len(values) < n:
            # On the sphere |x|^2 = 1, so |x|^2 times a polynomial of two degrees lower is no new
            # function.
            polynomials = comb(degree + dimension, dimension)
            harmonics = polynomials - comb(max(degree + dimension - 2, 0), dimension)
            values += [degree * (degree + dimension - 1) / self.radius**2] * harmonics
            degree += 1
        return np.array(values[:n])


def circle(radius: float = 1.0) -> Sphere:
    """Return the circle of the given radius."""
    return Sphere(radius, ambient=2)


@family
def disk(n_samples: int, rng, *, radius: float = 1.0) -> PartSamples:
    """Draw points of a disk, uniform in area; their latents are those of the unit disk."""
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    # The square root makes the samples uniform in area.
    x = np.sqrt(rng.uniform(size=n_samples))[:, None] * ring(angle)
    return radius * x, x


@family
def normal(n_samples: int, rng, *, deviation: float) -> PartSamples:
    """Draw from a normal distribution; its latents have a deviation of 1."""
    z = rng.normal(size=(n_samples, 1))
    return deviation * z, z


@family
def exponential(n_samples: int, rng, *, mean: float) -> PartSamples:
    """Draw from an exponential distribution; its latents have a mean of 1."""
    t = rng.exponential(size=(n_samples, 1))
    return mean * t, t


def star(n_samples: int, rng) -> PartSamples:
    """Draw points, also as latents, of three segments of length 1 that meet at 120 degrees."""
    arm = rng.randint(3, size=n_samples)
    x = rng.uniform(size=(n_samples, 1)) * ring(arm * (2 * np.pi / 3))
    return x, x


def projective_plane(n_samples: int, rng) -> PartSamples:
    """Draw uniform points of the projective plane in R^6, which are the latents, too."""
    # Products of two coordinates of a unit vector are those of the opposite one. With mixed ones
    # weighted by sqrt 2, the map is an isometry up to a common factor.
    vectors, _ = Sphere()(n_samples, rng)
    x, y, z = vectors.T
    mixed = np.sqrt(2) * np.c_[x * y, y * z, z * x]
    points = np.hstack([vectors**2, mixed])
    return points, points


def rotations(n_samples: int, rng) -> PartSamples:
    """Draw uniform rotations of space in R^9: the entries of their matrices, also as latents."""
    # Unit quaternions, uniform on their sphere, are uniform rotations.
    quaternion, _ = Sphere(ambient=4)(n_samples, rng)
    w, x, y, z = quaternion.T
    points = np.c_[
        np.c_[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        np.c_[2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        np.c_[2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return points, points


@dataclass(frozen=True)
class Product:
    """Parts drawn independently, side by side in the columns of X."""

    parts: tuple[Any, ...]

    def __call__(self, n_samples: int, rng) -> Samples:
        points, latents = zip(*(part(n_samples, rng) for part in self.parts), strict=True)
        return np.hstack(points), latents

    @property
    def exact(self) -> bool:
        """Whether the spectrum is known: all parts are intervals and spheres."""
        return all(isinstance(part, Interval | Sphere) for part in self.parts)

    def eigenvalues(self, n: int) -> np.ndarray:
        """Return the n lowest eigenvalues: sums of one eigenvalue of each part."""
        spectra = (part.eigenvalues(n) for part in self.parts)
        # The n lowest sums contain only the n lowest of each part.
        return reduce(lambda a, b: np.sort((a[:, None] + b).ravel())[:n], spectra)


def product(*parts: Part | float) -> Product:
    """Return the product of parts; a number stands for an interval of this length."""
    return Product(tuple(part if callable(part) else Interval(part) for part in parts))


def thinned(
    shape: Shape, density: Callable[[np.ndarray, Truth], np.ndarray], n_samples: int, rng
) -> Samples:
    """Draw by rejection: `density` of samples and truth is the probability of keeping a sample."""
    kept: list[list[np.ndarray]] = []
    # Most densities keep a quarter of the candidates or more, so that one draw is enough.
    while sum(len(X) for X, *_ in kept) < n_samples:
        X, truth = shape(4 * n_samples, rng)
        keep = rng.uniform(size=len(X)) < density(X, truth)
        kept.append([columns[keep] for columns in (X, *truth)])
    X, *latents = (np.vstack(blocks)[:n_samples] for blocks in zip(*kept, strict=True))
    return X, tuple(latents)


@family
def beta(place: np.ndarray, *, a: float, b: float) -> np.ndarray:
    """Return the beta distribution with exponents a - 1 and b - 1, both above 0."""
    mode = np.array((a - 1) / (a + b - 2))
    at_place, highest = (t ** (a - 1) * (1 - t) ** (b - 1) for t in (place, mode))
    return at_place / highest


@family
def bumps(place: np.ndarray, *, width: float) -> np.ndarray:
    """Return two equal Gaussian bumps, at the quarters, relative to twice their height."""
    # With a width of .12 or more, the density is nowhere below a tenth of its maximum.
    offset = (place[:, None] - np.array([0.25, 0.75])) / width
    return np.exp(-(offset**2) / 2).mean(axis=1)


@family
def von_mises(place: np.ndarray, *, concentration: float) -> np.ndarray:
    """Return the von Mises distribution on a circle, the counterpart of the normal one."""
    return np.exp(concentration * (np.cos(2 * np.pi * place) - 1))


@family
def wells(place: np.ndarray, *, barrier: float, tilt: float, count: int = 3) -> np.ndarray:
    """Return the Boltzmann distribution of a torsion, relative to a well of energy 0.

    The energy is V/2 (1 + cos 3a), in units of kT, where V is the barrier between two wells. A tilt
    adds up to its size on one side of the circle.
    """
    angle = 2 * np.pi * place
    even = barrier * (1 + np.cos(count * angle)) / 2
    # Shifted by a radian, so that no two wells have the same energy.
    tilted = tilt * (1 + np.cos(angle - 1)) / 2
    return np.exp(-even - tilted)


@family
def gap(place: np.ndarray, *, width: float, start: float) -> np.ndarray:
    """Return 0 in a gap, which holds no samples, and 1 elsewhere."""
    return np.where((place > start) & (place < start + width), 0.0, 1.0)


@family
def uneven(n_samples: int, rng, *, part: Part, density: Callable) -> PartSamples:
    """Draw an interval or a circle with a density along it."""

    def kept(_, truth: Truth) -> np.ndarray:
        return density(_place(*truth))

    points, (latents,) = thinned(product(part), kept, n_samples, rng)
    return points, latents


def _place(latents: np.ndarray) -> np.ndarray:
    """Return the place of latents on an interval or circle, from 0 to 1."""
    if latents.shape[1] == 1:
        return latents[:, 0]
    cosine, sine = latents.T
    return np.arctan2(sine, cosine) / (2 * np.pi) % 1
