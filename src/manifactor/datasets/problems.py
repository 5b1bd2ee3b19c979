"""The distribution of random problems."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from manifactor.datasets.densities import (
    Beta,
    Bumps,
    Exponential,
    Gap,
    Normal,
    Uneven,
    VonMises,
    Wells,
)
from manifactor.datasets.field import APART, CONFORMAL, SMALL_SIZE, THREE_CENTRES
from manifactor.datasets.near_products import CutCorner, Hole, LatticeTorus, Stadium
from manifactor.datasets.objects import Scene, Shifting, Turning
from manifactor.datasets.products import (
    Interval,
    Part,
    Shape,
    Sphere,
    Truth,
    circle,
    independent,
    product,
)
from manifactor.datasets.sampling import rotated_into
from manifactor.datasets.shapes import SHAPES
from manifactor.datasets.warps import PROFILES, Revolution

Range = tuple[float, float]


@dataclass(frozen=True)
class ProblemSettings:
    """Settings of `random_problem`: the distribution of the problems."""

    # Log-uniform, so that small and large problems are equally frequent.
    n_samples: tuple[int, int] = (800, 6000)
    irreducible_share: float = 0.25
    # Names of `SHAPES`. Correlated clouds are not among them: their principal axes are independent,
    # so that either answer is right.
    irreducible: tuple[str, ...] = (
        *("sphere", "sphere3", "disk", "triangle", "parallelogram"),
        *("cloud2", "cloud3", "ellipsoid", "long_ellipsoid", "solid_ellipsoid"),
        *("frustum", "long_frustum", "moebius", "klein_bottle"),
    )
    # Probabilities of the kinds of the others.
    kinds: Mapping[str, float] = field(
        default_factory=lambda: {
            "even": 0.25,
            "gaussian": 0.1,
            "soft": 0.1,
            "wells": 0.1,
            "gap": 0.1,
            "weak": 0.15,
            "warp": 0.1,
            "near": 0.1,
        }
    )
    # Probabilities of one, two and three factors.
    factor_counts: tuple[float, ...] = (0.1, 0.55, 0.35)
    # Most dimensions of the whole product with one, two and three factors.
    most_dimensions: tuple[int, ...] = (3, 4, 4)
    # Probabilities of an interval, a circle and a sphere.
    factor_kinds: tuple[float, float, float] = (0.45, 0.35, 0.2)
    # The largest ratio of two factors' lengths, unless one of them is weak.
    length_ratio: float = 4
    # Of one Gaussian's deviation to the next smaller one's: Gaussians of equal deviation are
    # isotropic, and no direction is a factor.
    gaussian_ratio: Range = (1.5, 3.0)
    concentration: Range = (0.5, 2.0)
    # Beyond 4 kT a circle of 3000 samples has almost none between its wells.
    barrier: Range = (1.0, 4.0)
    largest_tilt: float = 0.5
    gap: Range = (0.05, 0.15)
    # The largest length over the smallest, or a bright object's variance over a dim one's, where
    # one factor is weak.
    weak_ratio: Range = (10.0, 30.0)
    brightness_ratio: Range = (1.0, 30.0)
    # Largest over smallest radius of a surface of revolution, and length over radius.
    radius_ratio: Range = (1.5, 3.0)
    axis_ratio: Range = (3.0, 5.0)
    # What a near-product lacks, relative to its short side: smaller corners and holes hold too few
    # of 800 samples to be missed.
    cut: Range = (0.4, 0.7)
    hole: Range = (0.2, 0.35)
    # How far going once around the second circle of a lattice torus moves along the first, of its
    # length: beyond a half another pair of circles is the shorter one.
    lattice_offset: Range = (0.17, 0.4)
    side_ratio: Range = (1.3, 2.5)
    # The smallest factor's extent over the largest standard deviation of the noise.
    extent_over_noise: float = 40
    largest_ambient_dimension: int = 20
    # The unit is 10^-6 to 10^6 times that of the shape: no absolute length may matter.
    largest_exponent: float = 6


# Uniform products and irreducible shapes alone: the easy problems.
EVEN_PROBLEMS = ProblemSettings(
    irreducible=("sphere", "sphere3", "disk", "triangle", "parallelogram"), kinds={"even": 1.0}
)


# The kinds of random problems: each of them draws a shape.


@dataclass(frozen=True)
class Drawn:
    """A shape, its kind and name, and the extent of its smallest factor.

    `product` says whether the samples fill the product of several true factors.
    """

    shape: Shape
    kind: str
    name: str
    smallest_extent: float
    product: bool = True


def draw_shape(rng, settings: ProblemSettings) -> Drawn:
    """Draw a kind and a shape of that kind."""
    if rng.uniform() < settings.irreducible_share:
        name = str(rng.choice(settings.irreducible))
        return Drawn(SHAPES[name], "irreducible", name, 1.0, product=False)
    kinds = list(settings.kinds)
    if len(kinds) == 1:
        return KINDS[kinds[0]](rng, settings)
    kind = rng.choice(kinds, p=list(settings.kinds.values()))
    return KINDS[str(kind)](rng, settings)


def _even(rng, settings: ProblemSettings) -> Drawn:
    """Draw a product of intervals, circles and spheres, uniform on each."""
    parts = _random_parts(rng, settings)
    name = _name(parts)
    smallest = min(part.extent for part in parts)
    return Drawn(product(*parts), "even", name, smallest, len(parts) > 1)


def _gaussian(rng, settings: ProblemSettings) -> Drawn:
    """Draw independent Gaussians of different deviations."""
    count = max(2, _count(rng, settings))
    steps = [_log_uniform(rng, settings.gaussian_ratio) for _ in range(count - 1)]
    deviations = np.cumprod([1.0, *steps])
    return _drawn("gaussian", [Normal(_shown(sd)) for sd in deviations])


def _soft(rng, settings: ProblemSettings) -> Drawn:
    """Draw a product whose intervals and circles have soft densities."""
    while True:  # until a factor is uneven and the directions of all can be told
        even = _random_parts(rng, settings)
        parts = [_softened(part, rng, settings) for part in even]
        if parts != even and _distinct_gaussians(parts, settings):
            return _drawn("soft", parts)


def _softened(part: Interval | Sphere, rng, settings: ProblemSettings) -> Part:
    """Return the part with a random density along it; a sphere stays as it is."""
    if isinstance(part, Interval):
        law = rng.choice(["uniform", "normal", "beta", "bumps", "exponential"])
        # As long as the interval, but for the tails.
        laws: dict[str, Part] = {
            "uniform": part,
            "normal": Normal(_shown(part.length / 4)),
            "beta": Uneven(part, Beta(2, int(rng.randint(2, 6)))),
            "bumps": Uneven(part, Bumps(0.12)),
            "exponential": Exponential(_shown(part.length / 3)),
        }
        return laws[str(law)]
    if part.ambient == 2:
        return Uneven(part, VonMises(_uniform(rng, settings.concentration)))
    return part


def _distinct_gaussians(parts: Sequence[Part], settings: ProblemSettings) -> bool:
    """Return whether no two of the parts are Gaussians of similar deviations."""
    deviations = sorted(part.deviation for part in parts if isinstance(part, Normal))
    least, _ = settings.gaussian_ratio
    return all(large >= least * small for small, large in pairwise(deviations))


def _wells(rng, settings: ProblemSettings) -> Drawn:
    """Draw torsions with three wells each, and perhaps a factor without."""
    radii = np.exp(rng.uniform(0, np.log(2), size=_count(rng, settings)))
    parts: list[Part] = [_torsion(radius, rng, settings) for radius in radii]
    if len(parts) > 1 and rng.uniform() < 0.5:
        parts[-1] = Interval(_uniform(rng, (2.0, 4.0)))
    return _drawn("wells", parts)


def _torsion(radius: float, rng, settings: ProblemSettings) -> Uneven:
    barrier = _uniform(rng, settings.barrier)
    tilt = _uniform(rng, (0.0, settings.largest_tilt))
    return Uneven(_part("circle", np.pi * radius), Wells(barrier, tilt))


def _gap(rng, settings: ProblemSettings) -> Drawn:
    """Draw a product with a gap along one interval or circle."""
    while True:  # until there is an interval or a circle
        even = _random_parts(rng, settings)
        first = even[0]
        if isinstance(first, Interval) or first.ambient == 2:
            gap = Gap(_uniform(rng, settings.gap), _uniform(rng, (0.3, 0.6)))
            return _drawn("gap", [Uneven(first, gap), *even[1:]])


def _weak(rng, settings: ProblemSettings) -> Drawn:
    """Draw a product with a weak factor: lengths that differ much, or images."""
    draw = _images if rng.uniform() < 0.5 else _unequal_lengths
    return draw(rng, settings)


def _unequal_lengths(rng, settings: ProblemSettings) -> Drawn:
    count = max(2, _count(rng, settings))
    ratio = _log_uniform(rng, settings.weak_ratio)
    between = ratio ** rng.uniform(size=count - 2)
    sizes = rng.permutation([1.0, ratio, *between])
    return _drawn("weak", _parts_of_sizes(sizes, rng, settings))


def _images(rng, settings: ProblemSettings) -> Drawn:
    count = max(2, _count(rng, settings))
    places = [(centre, 0.7) for centre in APART]
    if count > 2:
        places = [(centre, SMALL_SIZE) for centre in THREE_CENTRES]
    movers = [Turning if rng.uniform() < 0.5 else Shifting for _ in places]
    objects = [mover(*place) for mover, place in zip(movers, places, strict=True)]
    ratio = _log_uniform(rng, settings.brightness_ratio)
    occluding = bool(rng.uniform() < 0.25)
    names = " x ".join(mover.__name__ for mover in movers)
    covered = ", the first covers the others" if occluding else ""
    name = f"images, {names}, variances to 1:{ratio:.1f}{covered}"
    # Standard deviation of the images of the weakest object.
    deviation = 1 / np.sqrt(ratio)
    return Drawn(Scene(tuple(objects), ratio, occluding), "weak", name, 2 * deviation)


def _warp(rng, settings: ProblemSettings) -> Drawn:
    """Draw a surface of revolution, or a conformal map of a rectangle or cylinder."""
    if rng.uniform() < 0.5:
        name = str(rng.choice(list(CONFORMAL)))
        conformal = CONFORMAL[name]
        second = "circle" if conformal.closed else "interval"
        return Drawn(conformal, "warp", f"interval x {second}, {name}", 1.0)
    profile = str(rng.choice(list(PROFILES)))
    ratio = _log_uniform(rng, settings.radius_ratio)
    length = _shown(ratio * _uniform(rng, settings.axis_ratio))
    shape = Revolution(profile, ratio, length)
    return Drawn(shape, "warp", f"interval x circle, {shape}", 2.0)


def _near(rng, settings: ProblemSettings) -> Drawn:
    """Draw a shape that is almost a product: carved, or with slanted circles."""
    length = _uniform(rng, settings.side_ratio)
    sides = (length, 1.0)
    shapes: list[Shape] = [
        CutCorner(sides, _uniform(rng, settings.cut)),
        Hole(sides, _uniform(rng, settings.hole)),
        Stadium(sides),
        _lattice_torus(_uniform(rng, settings.lattice_offset), length),
    ]
    shape = shapes[rng.randint(len(shapes))]
    slanted = isinstance(shape, LatticeTorus)
    factors = "circle x circle" if slanted else "interval x interval"
    # A circle of length 1 has this diameter.
    extent = 1 / np.pi if slanted else 1.0
    return Drawn(shape, "near", f"{factors}, {shape}", extent, product=False)


def _lattice_torus(offset: float, length: float) -> LatticeTorus:
    """Return the torus whose second circle has an offset along the first."""
    return LatticeTorus(_shown(np.degrees(np.arccos(offset / length))), length)


KINDS: dict[str, Callable[..., Drawn]] = {
    "even": _even,
    "gaussian": _gaussian,
    "soft": _soft,
    "wells": _wells,
    "gap": _gap,
    "weak": _weak,
    "warp": _warp,
    "near": _near,
}


def _drawn(kind: str, parts: Sequence[Part]) -> Drawn:
    smallest = min(part.extent for part in parts)
    several = len(parts) > 1
    return Drawn(independent(*parts), kind, _name(parts), smallest, several)


def _name(parts: Sequence[Part]) -> str:
    return " x ".join(str(part) for part in parts)


def _count(rng, settings: ProblemSettings) -> int:
    """Draw a number of factors."""
    n_counts = len(settings.factor_counts)
    return 1 + int(rng.choice(n_counts, p=settings.factor_counts))


def _random_parts(rng, settings: ProblemSettings) -> list[Interval | Sphere]:
    """Draw one to three factors of comparable size."""
    count = _count(rng, settings)
    largest = np.log(settings.length_ratio)
    while True:  # until the product has few enough dimensions
        log_sizes = rng.uniform(0, largest, size=count)
        kinds = _factor_kinds(count, rng, settings)
        if kinds is not None:
            return list(map(_part, kinds, np.exp(log_sizes)))


def _parts_of_sizes(sizes: np.ndarray, rng, settings: ProblemSettings) -> list[Interval | Sphere]:
    """Draw a factor of each size."""
    while True:  # until the product has few enough dimensions
        kinds = _factor_kinds(len(sizes), rng, settings)
        if kinds is not None:
            return list(map(_part, kinds, sizes))


def _factor_kinds(count: int, rng, settings: ProblemSettings) -> np.ndarray | None:
    """Draw kinds of factors, or None if their product has too many dimensions."""
    names = ["interval", "circle", "sphere"]
    kinds = rng.choice(names, size=count, p=settings.factor_kinds)
    dimensions = sum(2 if kind == "sphere" else 1 for kind in kinds)
    return kinds if dimensions <= settings.most_dimensions[count - 1] else None


def _part(kind: str, size: float) -> Interval | Sphere:
    """Return a factor whose lowest eigenvalue is (pi / size)^2 or about that."""
    if kind == "interval":
        return Interval(_shown(size))
    radius = _shown(size / np.pi)
    return circle(radius) if kind == "circle" else Sphere(radius)


def _uniform(rng, ends: Range) -> float:
    return _shown(rng.uniform(*ends))


def _log_uniform(rng, ends: Range) -> float:
    return _shown(np.exp(rng.uniform(*np.log(ends))))


def _shown(value: float) -> float:
    """Return a number that is as exact as its description."""
    return round(float(value), 3)


# Random factoring problems: products, near-products or irreducible shapes.

__all__ = ["EVEN_PROBLEMS", "Problem", "ProblemSettings", "random_problem"]


@dataclass(frozen=True)
class Problem:
    """Samples and the truth behind them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    truth : tuple of ndarray of shape (n_samples, c_i)
        One for each true factor; an irreducible shape has one.
    description : str
    kind : str
        A key of `KINDS`, or "irreducible".
    product : bool
        Whether the verdict "product" is right: there are several true factors, and the
        samples fill their product. It is wrong of an irreducible shape, and of a
        near-product, which has two true factors all the same.
    """

    X: np.ndarray
    truth: Truth
    description: str
    kind: str
    product: bool


def random_problem(seed: int, *, settings: ProblemSettings = ProblemSettings()) -> Problem:
    """Return problem number `seed`, with 1 to 3 factors and 800 to 6000 samples.

    A quarter of the problems are irreducible. The others are products of intervals,
    circles and spheres, with even, Gaussian or other soft densities, with wells, with a
    gap, with a weak factor or with a warped metric; or they are near-products. Half of
    the problems have noise, of up to a fortieth of the smallest factor. The shape is
    rotated into up to 20 dimensions (images are not) and scaled by a power of ten.

    ``settings=EVEN_PROBLEMS`` draws even products and the simplest irreducible shapes
    only.

    Parameters
    ----------
    seed : int
    settings : ProblemSettings
    """
    rng = np.random.RandomState(seed)
    fewest, most = np.log(settings.n_samples)
    n = int(np.exp(rng.uniform(fewest, most)))
    drawn = draw_shape(rng, settings)
    X, truth = drawn.shape(n, rng)
    X = _rotated(X, rng, settings)
    largest_noise = drawn.smallest_extent / settings.extent_over_noise
    noise = largest_noise * rng.choice([0.0, rng.uniform()])
    scale = 10 ** rng.uniform(-settings.largest_exponent, settings.largest_exponent)
    if noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    description = f"{drawn.name}, n = {n}, noise {noise:.3f}, in R^{X.shape[1]}, times {scale:.1e}"
    return Problem(scale * X, truth, description, drawn.kind, drawn.product)


def _rotated(X: np.ndarray, rng, settings: ProblemSettings) -> np.ndarray:
    """Return the samples in a random subspace of a larger space, unless it is small."""
    room = settings.largest_ambient_dimension - X.shape[1]
    if room < 0:
        return X
    dimension = X.shape[1] + rng.randint(0, room + 1)
    return rotated_into(X, dimension, rng)
