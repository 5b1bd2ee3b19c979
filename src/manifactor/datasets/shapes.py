"""Products of intervals, circles and spheres, curved and irreducible shapes, each with its exact latents.

A shape is a function ``(n_samples, rng) -> X, truth`` where ``truth`` holds one array for each true factor: an interval
has one column, a circle its cosine and sine, a sphere its coordinates. Samples are uniform in the latents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import comb

import numpy as np
from sklearn.utils import check_random_state

Truth = tuple[np.ndarray, ...]
LONG = 1 + np.sqrt(np.pi)  # the paper's side, whose ratio to the others is irrational


@dataclass(frozen=True)
class Interval:
    """A line of given length; Neumann spectrum (k pi / length)^2."""

    length: float = 1.0

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Points and truth."""
        t = rng.uniform(size=(n_samples, 1))
        return self.length * t, t

    def eigenvalues(self, n: int) -> np.ndarray:
        """The n lowest eigenvalues of the Laplacian."""
        return (np.pi * np.arange(n) / self.length) ** 2


@dataclass(frozen=True)
class Sphere:
    """A sphere of given radius in R^ambient: a circle for ambient = 2; spectrum l (l + ambient - 2) / radius^2."""

    radius: float = 1.0
    ambient: int = 3

    def draw(self, n_samples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Points and truth."""
        x = rng.normal(size=(n_samples, self.ambient))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return self.radius * x, x

    def eigenvalues(self, n: int) -> np.ndarray:
        """The n lowest eigenvalues of the Laplacian, as often as they occur."""
        values: list[float] = []
        d, degree = self.ambient - 1, 0
        while len(values) < n:
            # polynomials of this degree on the sphere less those of two degrees lower
            count = comb(degree + d, d) - (comb(degree + d - 2, d) if degree > 1 else 0)
            values += [degree * (degree + d - 1) / self.radius**2] * count
            degree += 1
        return np.array(values[:n])


def circle(radius: float = 1.0) -> Sphere:
    """A circle of given radius."""
    return Sphere(radius, ambient=2)


@dataclass(frozen=True)
class Product:
    """The product of parts, side by side in the columns of X."""

    parts: tuple[Interval | Sphere, ...]

    def __call__(self, n_samples: int, rng) -> tuple[np.ndarray, Truth]:
        """Draw samples and the truth of every part."""
        drawn = [part.draw(n_samples, rng) for part in self.parts]
        return np.hstack([x for x, _ in drawn]), tuple(t for _, t in drawn)

    def eigenvalues(self, n: int) -> np.ndarray:
        """The n lowest sums of the parts' eigenvalues."""
        return reduce(
            lambda a, b: np.sort((a[:, None] + b).ravel())[:n],
            (part.eigenvalues(n) for part in self.parts),
        )


def product(*parts: Interval | Sphere) -> Product:
    """The product of intervals, circles and spheres."""
    return Product(parts)


def rectangle_3d(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """The paper's rectangle in R^3, flat before noise is added."""
    X, truth = SHAPES["rectangle"](n_samples, rng)
    return np.c_[X, np.zeros(n_samples)], truth


def swiss_roll(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """A rolled rectangle, uniform in area: arc length along the spiral times width."""
    grid = np.linspace(1.5 * np.pi, 4.5 * np.pi, 4001)
    arc = np.concatenate(
        [
            [0.0],
            np.cumsum(
                np.hypot(np.diff(grid * np.cos(grid)), np.diff(grid * np.sin(grid)))
            ),
        ]
    )
    t, width = rng.uniform(size=(2, n_samples))
    angle = np.interp(t * arc[-1], arc, grid)
    return np.c_[angle * np.cos(angle), 30 * width, angle * np.sin(angle)], (
        t[:, None],
        width[:, None],
    )


def warped_cylinder(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """A cylinder whose radius changes a little along its length: close to a product, but none."""
    t, angle = rng.uniform(size=(2, n_samples)) * np.array([[1.0], [2 * np.pi]])
    radius = 1 + 0.15 * np.sin(2 * np.pi * t)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    return np.c_[3 * t, radius[:, None] * ring], (t[:, None], ring)


def robot_arm(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """Two markers on a planar arm with two full-turn joints; the truth is which way each link points."""
    first, second = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    elbow = np.c_[np.cos(first), np.sin(first)]
    link = np.c_[np.cos(second), np.sin(second)]
    return np.c_[elbow, elbow + 0.6 * link], (elbow, link)


def turning_objects(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """Images of two objects that turn on their own, one with a fifth of the other's variance: additive, no product."""
    angles = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    pixel = np.stack(
        np.meshgrid(np.linspace(-1.5, 1.5, 24), np.linspace(-1, 1, 16)), axis=-1
    )
    first, second = (
        _turned(pixel - [[centre, 0]], angle)
        for centre, angle in zip((-0.6, 0.6), angles, strict=True)
    )
    X = first / np.sqrt(first.var(axis=0).sum()) + second / np.sqrt(
        5 * second.var(axis=0).sum()
    )
    return X, tuple(np.c_[np.cos(angle), np.sin(angle)] for angle in angles)


def _turned(pixel: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Images of three unequal blobs turned about the origin, (n_samples, n_pixels)."""
    images = 0.0
    for radius, start, weight in ((0.55, 0.0, 1.0), (0.4, 2.0, 0.7), (0.3, 4.0, 0.5)):
        centre = radius * np.c_[np.cos(angle + start), np.sin(angle + start)]
        images = images + weight * np.exp(
            -((pixel.reshape(-1, 2) - centre[:, None]) ** 2).sum(axis=2) / 0.08
        )
    return np.asarray(images)


def disk(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """The unit disk, irreducible."""
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    X = (
        np.sqrt(rng.uniform(size=n_samples))[:, None]
        * np.c_[np.cos(angle), np.sin(angle)]
    )
    return X, (X,)


def triangle(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """An equilateral triangle of side 1, irreducible."""
    u = np.sort(rng.uniform(size=(n_samples, 2)), axis=1)
    X = np.c_[u[:, 0], u[:, 1] - u[:, 0]] @ np.array(
        [[1.0, 0.0], [0.5, np.sqrt(3) / 2]]
    )
    return X, (X,)


def parallelogram(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """A parallelogram with sides 1 and an angle of 60 degrees, irreducible."""
    X = rng.uniform(size=(n_samples, 2)) @ np.array([[1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    return X, (X,)


def moebius(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """A nearly flat Moebius band in R^4: locally a product, globally none."""
    angle, height = rng.uniform(size=(2, n_samples)) * np.array(
        [[2 * np.pi], [1.0]]
    ) - np.array([[0.0], [0.5]])
    ring, twist = (
        np.c_[np.cos(angle), np.sin(angle)],
        np.c_[np.cos(angle / 2), np.sin(angle / 2)],
    )
    X = np.c_[ring, height[:, None] * twist]
    return X, (X,)


def klein_bottle(n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """A nearly flat Klein bottle in R^5: locally a product, globally none."""
    u, v = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    half = np.c_[np.cos(u / 2), np.sin(u / 2)]
    X = np.c_[2 * np.cos(u), 2 * np.sin(u), np.cos(v), np.sin(v)[:, None] * half]
    return X, (X,)


SHAPES: dict[str, Callable] = {
    "rectangle": product(Interval(LONG), Interval(1.5)),
    "rectangle_z": rectangle_3d,
    "rectangle_xyz": rectangle_3d,
    "torus": product(circle(LONG), circle(2.0)),
    "cylinder": product(Interval(3.0), circle()),
    "cube": product(Interval(LONG), Interval(1.5), Interval(7.0)),
    "square": product(Interval(), Interval()),
    "equal_cube": product(Interval(), Interval(), Interval()),
    "equal_torus": product(circle(), circle()),
    "equal_torus3": product(circle(), circle(), circle()),
    "equal_cylinder": product(Interval(np.pi), circle()),
    "sphere_circle": product(Sphere(), circle()),
    "sphere_interval": product(Sphere(), Interval(3.0)),
    "sphere_sphere": product(Sphere(), Sphere()),
    "strip3": product(Interval(3.0), Interval()),
    "strip5": product(Interval(5.0), Interval()),
    "strip7": product(Interval(7.0), Interval()),
    "strip10": product(Interval(10.0), Interval()),
    "swiss_roll": swiss_roll,
    "warped_cylinder": warped_cylinder,
    "robot_arm": robot_arm,
    "turning_objects": turning_objects,
    "sphere": product(Sphere()),
    "sphere3": product(Sphere(ambient=4)),
    "disk": disk,
    "triangle": triangle,
    "parallelogram": parallelogram,
    "moebius": moebius,
    "klein_bottle": klein_bottle,
}

# the paper's noisy rectangles: which columns carry noise, of standard deviation .05 unless told otherwise
NOISY_COLUMNS: dict[str, Sequence[int]] = {
    "rectangle_z": [2],
    "rectangle_xyz": [0, 1, 2],
}
PAPER_NOISE = 0.05


def _uniform(shape: Callable, n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    return shape(n_samples, rng)


def _weighted(shape: Callable, n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """Density .2 + .8 cos^2 along the first latent of each factor."""
    return _thinned(
        shape,
        n_samples,
        rng,
        lambda u: np.prod(0.2 + 0.8 * np.cos(np.pi / 2 * u) ** 2, axis=0),
    )


def _dependent(shape: Callable, n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """Density 1 + .6 u v between neighbouring factors."""
    return _thinned(
        shape,
        n_samples,
        rng,
        lambda u: np.prod(1 + 0.6 * u[1:] * u[:-1], axis=0) / 1.6 ** (len(u) - 1),
    )


def _thinned(
    shape: Callable, n_samples: int, rng, density: Callable
) -> tuple[np.ndarray, Truth]:
    """Samples kept with a probability that depends on the first latent of each factor, scaled to [-1, 1]."""
    kept: list[tuple[np.ndarray, Truth]] = []
    while sum(len(X) for X, _ in kept) < n_samples:
        X, truth = shape(4 * n_samples, rng)
        latents = [t[:, 0] if t.shape[1] > 1 else 2 * t[:, 0] - 1 for t in truth]
        keep = rng.uniform(size=len(X)) < density(np.array(latents))
        kept.append((X[keep], tuple(t[keep] for t in truth)))
    columns = zip(*(truth for _, truth in kept), strict=True)
    return np.vstack([X for X, _ in kept])[:n_samples], tuple(
        np.vstack(c)[:n_samples] for c in columns
    )


def _duplicates(shape: Callable, n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    X, truth = shape(n_samples, rng)
    source = np.arange(n_samples)
    copies = n_samples // 10
    source[n_samples - copies :] = rng.randint(n_samples - copies, size=copies)
    return X[source], tuple(t[source] for t in truth)


def _outliers(shape: Callable, n_samples: int, rng) -> tuple[np.ndarray, Truth]:
    """One sample in a hundred moves into a box twice as wide as the shape; its latents stay."""
    X, truth = shape(n_samples, rng)
    far = rng.permutation(n_samples)[: n_samples // 100]
    centre, half = (
        (X.max(axis=0) + X.min(axis=0)) / 2,
        (X.max(axis=0) - X.min(axis=0)) / 2,
    )
    X = X.copy()
    X[far] = centre + 2 * half * rng.uniform(-1, 1, size=(len(far), X.shape[1]))
    return X, truth


SAMPLINGS: dict[str, Callable] = {
    "uniform": _uniform,
    "weighted": _weighted,
    "dependent": _dependent,
    "duplicates": _duplicates,
    "outliers": _outliers,
}


def sample(
    name: str,
    n_samples: int,
    *,
    noise: float | None = None,
    ambient_dimension: int | None = None,
    sampling: str = "uniform",
    random_state=None,
) -> tuple[np.ndarray, Truth]:
    """Draw samples of a shape and the exact latents behind them.

    Parameters
    ----------
    name : str
        A key of `SHAPES`.
    n_samples : int
    noise : float or None
        Standard deviation of Gaussian noise, in units of the shape, added to every coordinate after the rotation;
        "rectangle_z" and "rectangle_xyz" add it to z alone and to x, y, z, and have .05 where None is given.
    ambient_dimension : int or None
        Rotate the shape into a random subspace of R^ambient_dimension.
    sampling : str
        A key of `SAMPLINGS`: "uniform" in the latents; "weighted", the density along each factor varies fivefold;
        "dependent", the density makes neighbouring factors dependent; "duplicates", a tenth of the samples are copies
        of others; "outliers", one in a hundred is drawn from a box around the shape.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    truth : tuple of ndarray of shape (n_samples, c_i)
        One for each true factor: an interval has 1 column, a circle 2 (cosine and sine), a sphere 3.

    Examples
    --------
    >>> X, truth = sample("torus", 100, random_state=0)
    >>> X.shape, [t.shape for t in truth]
    ((100, 4), [(100, 2), (100, 2)])
    """
    shape = _shape(name)
    if n_samples < 1:
        raise ValueError(f"`n_samples` must be at least 1; got {n_samples}.")
    if noise is not None and noise < 0:
        raise ValueError(
            f"`noise` is a standard deviation and must not be negative; got {noise}."
        )
    if sampling not in SAMPLINGS:
        raise ValueError(
            f"`sampling` must be one of {sorted(SAMPLINGS)}; got {sampling!r}."
        )
    rng = check_random_state(random_state)
    X, truth = SAMPLINGS[sampling](shape, n_samples, rng)
    columns = NOISY_COLUMNS.get(name)
    if columns is not None:
        X[:, columns] += rng.normal(
            scale=PAPER_NOISE if noise is None else noise,
            size=(n_samples, len(columns)),
        )
    if ambient_dimension is not None:
        X = _rotated_into(X, ambient_dimension, rng)
    if columns is None and noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    return X, truth


def exact_eigenvalues(name: str, n_functions: int) -> np.ndarray:
    """The lowest eigenvalues of the Laplacian on a product shape, the zero of the constant function first.

    Examples
    --------
    >>> exact_eigenvalues("equal_torus", 5)
    array([0., 1., 1., 1., 1.])
    """
    shape = _shape(name)
    if not isinstance(shape, Product):
        known = sorted(k for k, v in SHAPES.items() if isinstance(v, Product))
        raise ValueError(f"exact eigenvalues are known for {known}; got {name!r}.")
    return shape.eigenvalues(n_functions)


def _shape(name: str) -> Callable:
    if name not in SHAPES:
        raise ValueError(f"the shape must be one of {sorted(SHAPES)}; got {name!r}.")
    return SHAPES[name]


def _rotated_into(X: np.ndarray, dimension: int, rng) -> np.ndarray:
    if dimension < X.shape[1]:
        raise ValueError(
            f"`ambient_dimension` must be at least {X.shape[1]} for this shape; got {dimension}."
        )
    frame = np.linalg.qr(rng.normal(size=(dimension, X.shape[1])))[0]
    return X @ frame.T
