"""Random factoring problems: products of one to three factors, or irreducible shapes, with noise, in any units."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.shapes import SHAPES, Interval, Sphere, Truth, circle, product

IRREDUCIBLE = ("sphere", "sphere3", "disk", "triangle", "parallelogram")
MOST_DIMENSIONS = {1: 3, 2: 4, 3: 4}  # of the whole product, by the number of factors


@dataclass(frozen=True)
class Problem:
    """Samples, the truth behind them, and what they are in words."""

    X: np.ndarray
    truth: Truth
    description: str


def random_problem(seed: int) -> Problem:
    """Problem number `seed`: 1 to 3 factors, 800 to 6000 samples, noise up to a fortieth of the smallest factor.

    A quarter are irreducible. Factors are intervals, circles and spheres whose lengths differ by up to 4 times; the
    product has at most 4 dimensions. The shape is turned into up to 20 dimensions and scaled by a power of ten.
    """
    rng = np.random.RandomState(seed)
    n = int(np.exp(rng.uniform(np.log(800), np.log(6000))))
    if rng.uniform() < 0.25:
        name = str(rng.choice(IRREDUCIBLE))
        shape, smallest = SHAPES[name], 1.0
    else:
        parts = _random_parts(rng)
        name, shape = " x ".join(str(part) for part in parts), product(*parts)
        smallest = min(_extent(part) for part in parts)
    X, truth = shape(n, rng)
    dimension = X.shape[1] + rng.randint(0, 21 - X.shape[1])
    X = X @ np.linalg.qr(rng.normal(size=(dimension, X.shape[1])))[0].T
    noise = smallest / 40 * rng.choice([0.0, rng.uniform()])
    scale = 10 ** rng.uniform(-6, 6)
    X = scale * (X + rng.normal(scale=noise, size=X.shape) if noise else X)
    return Problem(
        X,
        truth,
        f"{name}, n = {n}, noise {noise:.3f}, in R^{dimension}, times {scale:.1e}",
    )


def _random_parts(rng) -> list[Interval | Sphere]:
    """One to three factors of comparable size."""
    count = 1 + int(rng.choice(3, p=[0.1, 0.55, 0.35]))
    while True:
        sizes = np.exp(rng.uniform(0, np.log(4), size=count))
        kinds = rng.choice(
            ["interval", "circle", "sphere"], size=count, p=[0.45, 0.35, 0.2]
        )
        if (
            sum(2 if kind == "sphere" else 1 for kind in kinds)
            <= MOST_DIMENSIONS[count]
        ):
            return [_part(kind, size) for kind, size in zip(kinds, sizes, strict=True)]


def _part(kind: str, size: float) -> Interval | Sphere:
    """A factor whose lowest eigenvalue is (pi / size)^2 or about that."""
    if kind == "interval":
        return Interval(round(size, 3))
    radius = round(size / np.pi, 3)
    return circle(radius) if kind == "circle" else Sphere(radius)


def _extent(part: Interval | Sphere) -> float:
    return part.length if isinstance(part, Interval) else 2 * part.radius
