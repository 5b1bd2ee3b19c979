"""Random factoring problems: products or irreducible shapes, with noise."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Interval, Shape, Sphere, Truth, circle, product
from manifactor.datasets.sampling import rotated_into
from manifactor.datasets.shapes import SHAPES

IRREDUCIBLE = ("sphere", "sphere3", "disk", "triangle", "parallelogram")


@dataclass(frozen=True)
class ProblemSettings:
    """Settings of `random_problem`: the distribution of the problems."""

    # Log-uniform, so that small and large problems are equally frequent.
    n_samples: tuple[int, int] = (800, 6000)
    irreducible_share: float = 0.25
    # Probabilities of one, two and three factors.
    factor_counts: tuple[float, ...] = (0.1, 0.55, 0.35)
    # Most dimensions of the whole product with one, two and three factors.
    most_dimensions: tuple[int, ...] = (3, 4, 4)
    # Probabilities of an interval, a circle and a sphere.
    factor_kinds: tuple[float, float, float] = (0.45, 0.35, 0.2)
    # The largest ratio of two factors' lengths.
    length_ratio: float = 4
    # The smallest factor's extent over the largest standard deviation of the noise.
    extent_over_noise: float = 40
    largest_ambient_dimension: int = 20
    # The unit is 10^-6 to 10^6 times that of the shape: no absolute length may matter.
    largest_exponent: float = 6


@dataclass(frozen=True)
class Problem:
    """Samples, the truth behind them, and a description in words."""

    X: np.ndarray
    truth: Truth
    description: str


@dataclass(frozen=True)
class _NamedShape:
    """A shape, its description and the extent of its smallest factor."""

    shape: Shape
    name: str
    smallest_extent: float


def random_problem(
    seed: int, *, settings: ProblemSettings = ProblemSettings()
) -> Problem:
    """Return problem number `seed`, with 1 to 3 factors and 800 to 6000 samples.

    A quarter of the problems are irreducible. Factors are intervals, circles and
    spheres whose lengths differ by up to 4 times; the product has at most 4 dimensions.
    Half of the problems have noise, of up to a fortieth of the smallest factor. The
    shape is rotated into up to 20 dimensions and scaled by a power of ten.
    """
    rng = np.random.RandomState(seed)
    fewest, most = np.log(settings.n_samples)
    n = int(np.exp(rng.uniform(fewest, most)))
    drawn = _random_shape(rng, settings)
    X, truth = drawn.shape(n, rng)
    n_features = X.shape[1]
    dimension = n_features + rng.randint(
        0, settings.largest_ambient_dimension + 1 - n_features
    )
    X = rotated_into(X, dimension, rng)
    largest_noise = drawn.smallest_extent / settings.extent_over_noise
    noise = largest_noise * rng.choice([0.0, rng.uniform()])
    scale = 10 ** rng.uniform(-settings.largest_exponent, settings.largest_exponent)
    if noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    description = (
        f"{drawn.name}, n = {n}, noise {noise:.3f}, in R^{dimension}, times {scale:.1e}"
    )
    return Problem(scale * X, truth, description)


def _random_shape(rng, settings: ProblemSettings) -> _NamedShape:
    if rng.uniform() < settings.irreducible_share:
        name = str(rng.choice(IRREDUCIBLE))
        return _NamedShape(SHAPES[name], name, 1.0)
    parts = _random_parts(rng, settings)
    name = " x ".join(str(part) for part in parts)
    smallest = min(part.extent for part in parts)
    return _NamedShape(product(*parts), name, smallest)


def _random_parts(rng, settings: ProblemSettings) -> list[Interval | Sphere]:
    """Draw one to three factors of comparable size."""
    n_counts = len(settings.factor_counts)
    count = 1 + int(rng.choice(n_counts, p=settings.factor_counts))
    largest = np.log(settings.length_ratio)
    while True:  # until the product has few enough dimensions
        log_sizes = rng.uniform(0, largest, size=count)
        names = ["interval", "circle", "sphere"]
        kinds = rng.choice(names, size=count, p=settings.factor_kinds)
        dimensions = sum(2 if kind == "sphere" else 1 for kind in kinds)
        if dimensions <= settings.most_dimensions[count - 1]:
            return list(map(_part, kinds, np.exp(log_sizes)))


def _part(kind: str, size: float) -> Interval | Sphere:
    """Return a factor whose lowest eigenvalue is (pi / size)^2 or about that."""
    if kind == "interval":
        return Interval(round(size, 3))  # as exact as the description
    radius = round(size / np.pi, 3)
    return circle(radius) if kind == "circle" else Sphere(radius)
