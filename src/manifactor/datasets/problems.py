"""Random factoring problems: products, near-products or irreducible shapes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from manifactor._support.parameters import require_choice
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
from manifactor.datasets.field import APART, FIELD, SMALL_SIZE, THREE_CENTRES
from manifactor.datasets.not_products import (
    PROFILES,
    CutCorner,
    Hole,
    LatticeTorus,
    Revolution,
    Stadium,
)
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
from manifactor.datasets.shapes import SHAPES, rotated_into

# Fewest and most samples. Log-uniform, so that small and large problems are equally frequent.
N_SAMPLES = (800, 6000)

# Irreducible shapes. Correlated clouds are not among them: their principal axes are independent, so
# that either answer is right.
SIMPLE = ("sphere", "sphere3", "disk", "triangle", "parallelogram")
IRREDUCIBLE = (
    *SIMPLE,
    *("cloud2", "cloud3", "ellipsoid", "long_ellipsoid", "solid_ellipsoid"),
    *("frustum", "long_frustum", "moebius", "klein_bottle"),
)

# Least and largest ratio of one Gaussian's deviation to the next smaller one's: Gaussians of equal
# deviation are isotropic, and no direction is a factor.
GAUSSIAN_RATIO = (1.5, 3.0)


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


def _drawn_shape(rng, kinds: str) -> Drawn:
    """Draw a kind and a shape of that kind."""
    if rng.uniform() < 0.25:
        name = str(rng.choice(SIMPLE if kinds == "even" else IRREDUCIBLE))
        return Drawn(SHAPES[name], "irreducible", name, 1.0, product=False)
    if kinds == "even":
        return _even(rng)
    kind = rng.choice(list(KINDS), p=[0.25, 0.1, 0.1, 0.1, 0.1, 0.15, 0.1, 0.1])
    return KINDS[str(kind)](rng)


def _even(rng) -> Drawn:
    """Draw a product of intervals, circles and spheres, uniform on each."""
    return _drawn("even", _random_parts(rng), product)


def _gaussian(rng) -> Drawn:
    """Draw independent Gaussians of different deviations."""
    count = max(2, _count(rng))
    steps = [_log_uniform(rng, *GAUSSIAN_RATIO) for _ in range(count - 1)]
    deviations = np.cumprod([1.0, *steps])
    return _drawn("gaussian", [Normal(_shown(sd)) for sd in deviations])


def _soft(rng) -> Drawn:
    """Draw a product whose intervals and circles have soft densities."""
    while True:  # until a factor is uneven and the directions of all can be told
        even = _random_parts(rng)
        parts = [_softened(part, rng) for part in even]
        if parts != even and _distinct_gaussians(parts):
            return _drawn("soft", parts)


def _softened(part: Interval | Sphere, rng) -> Part:
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
        return Uneven(part, VonMises(_uniform(rng, 0.5, 2.0)))
    return part


def _distinct_gaussians(parts: Sequence[Part]) -> bool:
    """Return whether no two of the parts are Gaussians of similar deviations."""
    deviations = sorted(part.deviation for part in parts if isinstance(part, Normal))
    return all(large >= GAUSSIAN_RATIO[0] * small for small, large in pairwise(deviations))


def _wells(rng) -> Drawn:
    """Draw torsions with three wells each, and perhaps a factor without."""
    radii = np.exp(rng.uniform(0, np.log(2), size=_count(rng)))
    parts: list[Part] = [_torsion(radius, rng) for radius in radii]
    if len(parts) > 1 and rng.uniform() < 0.5:
        parts[-1] = Interval(_uniform(rng, 2.0, 4.0))
    return _drawn("wells", parts)


def _torsion(radius: float, rng) -> Uneven:
    # Beyond 4 kT a circle of 3000 samples has almost none between its wells.
    barrier = _uniform(rng, 1.0, 4.0)
    tilt = _uniform(rng, 0.0, 0.5)
    return Uneven(_part("circle", np.pi * radius), Wells(barrier, tilt))


def _gap(rng) -> Drawn:
    """Draw a product with a gap along one interval or circle."""
    while True:  # until there is an interval or a circle
        even = _random_parts(rng)
        first = even[0]
        if isinstance(first, Interval) or first.ambient == 2:
            gap = Gap(_uniform(rng, 0.05, 0.15), _uniform(rng, 0.3, 0.6))
            return _drawn("gap", [Uneven(first, gap), *even[1:]])


def _weak(rng) -> Drawn:
    """Draw a product with a weak factor: lengths that differ much, or images."""
    draw = _images if rng.uniform() < 0.5 else _unequal_lengths
    return draw(rng)


def _unequal_lengths(rng) -> Drawn:
    count = max(2, _count(rng))
    # The largest length over the smallest.
    ratio = _log_uniform(rng, 10.0, 30.0)
    between = ratio ** rng.uniform(size=count - 2)
    sizes = rng.permutation([1.0, ratio, *between])
    return _drawn("weak", _parts_of_sizes(sizes, rng))


def _images(rng) -> Drawn:
    count = max(2, _count(rng))
    places = [(centre, 0.7) for centre in APART]
    if count > 2:
        places = [(centre, SMALL_SIZE) for centre in THREE_CENTRES]
    movers = [Turning if rng.uniform() < 0.5 else Shifting for _ in places]
    objects = [mover(*place) for mover, place in zip(movers, places, strict=True)]
    # A bright object's variance over a dim one's.
    ratio = _log_uniform(rng, 1.0, 30.0)
    occluding = bool(rng.uniform() < 0.25)
    names = " x ".join(mover.__name__ for mover in movers)
    covered = ", the first covers the others" if occluding else ""
    name = f"images, {names}, variances to 1:{ratio:.1f}{covered}"
    # Standard deviation of the images of the weakest object.
    deviation = 1 / np.sqrt(ratio)
    return Drawn(Scene(tuple(objects), ratio, occluding), "weak", name, 2 * deviation)


def _warp(rng) -> Drawn:
    """Draw a surface of revolution, or a conformal map of a rectangle or cylinder."""
    if rng.uniform() < 0.5:
        name = str(rng.choice(list(FIELD["conformal"])))
        conformal: Any = FIELD["conformal"][name]
        second = "circle" if conformal.closed else "interval"
        return Drawn(conformal, "warp", f"interval x {second}, {name}", 1.0)
    profile = str(rng.choice(list(PROFILES)))
    # Largest over smallest radius, and length over radius.
    ratio = _log_uniform(rng, 1.5, 3.0)
    length = _shown(ratio * _uniform(rng, 3.0, 5.0))
    shape = Revolution(profile, ratio, length)
    return Drawn(shape, "warp", f"interval x circle, {shape}", 2.0)


def _near(rng) -> Drawn:
    """Draw a shape that is almost a product: carved, or with slanted circles."""
    length = _uniform(rng, 1.3, 2.5)
    sides = (length, 1.0)
    # Smaller corners and holes hold too few of 800 samples to be missed.
    carved = [CutCorner(sides, _uniform(rng, 0.4, 0.7)), Hole(sides, _uniform(rng, 0.2, 0.35))]
    # How far going once around the second circle of a lattice torus moves along the first, of its
    # length: beyond a half another pair of circles is the shorter one.
    offset = _uniform(rng, 0.17, 0.4)
    torus = LatticeTorus(_shown(np.degrees(np.arccos(offset / length))), length)
    shapes: list[Shape] = [*carved, Stadium(sides), torus]
    shape = shapes[rng.randint(len(shapes))]
    slanted = isinstance(shape, LatticeTorus)
    factors = "circle x circle" if slanted else "interval x interval"
    # A circle of length 1 has this diameter.
    extent = 1 / np.pi if slanted else 1.0
    return Drawn(shape, "near", f"{factors}, {shape}", extent, product=False)


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


def _drawn(kind: str, parts: Sequence[Part], make: Callable[..., Shape] = independent) -> Drawn:
    name = " x ".join(map(str, parts))
    smallest = min(part.extent for part in parts)
    return Drawn(make(*parts), kind, name, smallest, len(parts) > 1)


def _count(rng) -> int:
    """Draw a number of factors."""
    return 1 + int(rng.choice(3, p=(0.1, 0.55, 0.35)))


def _random_parts(rng) -> list[Interval | Sphere]:
    """Draw one to three factors of comparable size."""
    count = _count(rng)
    while True:  # until the product has few enough dimensions
        log_sizes = rng.uniform(0, np.log(4), size=count)
        kinds = _factor_kinds(count, rng)
        if kinds is not None:
            return list(map(_part, kinds, np.exp(log_sizes)))


def _parts_of_sizes(sizes: np.ndarray, rng) -> list[Interval | Sphere]:
    """Draw a factor of each size."""
    while True:  # until the product has few enough dimensions
        kinds = _factor_kinds(len(sizes), rng)
        if kinds is not None:
            return list(map(_part, kinds, sizes))


def _factor_kinds(count: int, rng) -> np.ndarray | None:
    """Draw kinds of factors, or None if their product has too many dimensions."""
    names = ["interval", "circle", "sphere"]
    kinds = rng.choice(names, size=count, p=(0.45, 0.35, 0.2))
    dimensions = sum(2 if kind == "sphere" else 1 for kind in kinds)
    return kinds if dimensions <= (3, 4, 4)[count - 1] else None


def _part(kind: str, size: float) -> Interval | Sphere:
    """Return a factor whose lowest eigenvalue is (pi / size)^2 or about that."""
    if kind == "interval":
        return Interval(_shown(size))
    radius = _shown(size / np.pi)
    return circle(radius) if kind == "circle" else Sphere(radius)


def _uniform(rng, low: float, high: float) -> float:
    return _shown(rng.uniform(low, high))


def _log_uniform(rng, low: float, high: float) -> float:
    return _shown(np.exp(rng.uniform(*np.log((low, high)))))


def _shown(value: float) -> float:
    """Return a number that is as exact as its description."""
    return round(float(value), 3)


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


def random_problem(seed: int, *, kinds: str = "all") -> Problem:
    """Return problem number `seed`, with 1 to 3 factors and 800 to 6000 samples.

    A quarter of the problems are irreducible. The others are products of intervals,
    circles and spheres, with even, Gaussian or other soft densities, with wells, with a
    gap, with a weak factor or with a warped metric; or they are near-products. Half of
    the problems have noise, of up to a fortieth of the smallest factor. The shape is
    rotated into up to 20 dimensions (images are not) and scaled by a power of ten.

    Parameters
    ----------
    seed : int
    kinds : "all" or "even"
        "even" draws even products and the simplest irreducible shapes only.
    """
    require_choice("kinds", kinds, ("all", "even"))
    rng = np.random.RandomState(seed)
    n = int(np.exp(rng.uniform(*np.log(N_SAMPLES))))
    drawn = _drawn_shape(rng, kinds)
    X, truth = drawn.shape(n, rng)
    room = 20 - X.shape[1]
    if room >= 0:
        X = rotated_into(X, X.shape[1] + rng.randint(0, room + 1), rng)
    noise = drawn.smallest_extent / 40 * rng.choice([0.0, rng.uniform()])
    # No absolute length may matter.
    scale = 10 ** rng.uniform(-6, 6)
    if noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    description = f"{drawn.name}, n = {n}, noise {noise:.3f}, in R^{X.shape[1]}, times {scale:.1e}"
    return Problem(scale * X, truth, description, drawn.kind, drawn.product)
