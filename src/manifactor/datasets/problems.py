"""Random factoring problems: products, near-products or irreducible shapes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from manifactor._support.parameters import require_choice
from manifactor.datasets.products import (
    Interval,
    Parametrised,
    Part,
    Shape,
    Sphere,
    Truth,
    beta,
    bumps,
    circle,
    exponential,
    gap,
    normal,
    product,
    uneven,
    von_mises,
    wells,
)
from manifactor.datasets.sampling import rotated_into
from manifactor.datasets.shapes import (
    FIELD,
    PROFILES,
    SHAPES,
    Ellipsoid,
    LatticeTorus,
    cut_corner,
    hole,
    revolution,
    scene,
    shifting,
    stadium,
    turning,
)

# Fewest and most samples. Log-uniform, so that small and large problems are equally frequent.
N_SAMPLES = (800, 6000)

# Irreducible shapes; of correlated clouds, whose principal axes are independent, either answer is
# right.
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
    """A shape, its name, and the extent of its smallest factor."""

    shape: Shape
    name: str
    smallest_extent: float
    product: bool = True  # whether samples fill the product of several true factors


def _even(rng) -> Drawn:
    """Draw a product of intervals, circles and spheres, uniform on each."""
    return _drawn(_random_parts(rng))


def _gaussian(rng) -> Drawn:
    """Draw independent Gaussians of different deviations."""
    steps = [_log_uniform(rng, *GAUSSIAN_RATIO) for _ in range(_several(rng) - 1)]
    return _drawn([normal(_shown(sd)) for sd in np.cumprod([1.0, *steps])])


def _soft(rng) -> Drawn:
    """Draw a product whose intervals and circles have soft densities."""
    while True:  # until a factor is uneven and the directions of all can be told
        even = _random_parts(rng)
        parts = [_softened(part, rng) for part in even]
        gaussians = pairwise(deviations(parts))
        distinct = all(wide >= GAUSSIAN_RATIO[0] * narrow for narrow, wide in gaussians)
        if parts != even and distinct:
            return _drawn(parts)


def _softened(part: Interval | Sphere, rng) -> Part:
    """Return the part with a random density along it; a sphere stays as it is."""
    if isinstance(part, Interval):
        law = rng.choice(["uniform", "normal", "beta", "bumps", "exponential"])
        # As long as the interval, but for the tails.
        laws: dict[str, Part] = {
            "uniform": part,
            "normal": normal(_shown(part.length / 4)),
            "beta": uneven(part, beta(2, int(rng.randint(2, 6)))),
            "bumps": uneven(part, bumps(0.12)),
            "exponential": exponential(_shown(part.length / 3)),
        }
        return laws[str(law)]
    if part.ambient == 2:
        return uneven(part, von_mises(_uniform(rng, 0.5, 2.0)))
    return part


def deviations(parts: Sequence[Part]) -> list[float]:
    """Return the deviations of those parts that are Gaussians, ascending."""
    keywords = [part.keywords for part in parts if isinstance(part, Parametrised)]
    return sorted(fixed["deviation"] for fixed in keywords if "deviation" in fixed)


def _wells(rng) -> Drawn:
    """Draw torsions with three wells each, and perhaps a factor without."""
    sizes = np.pi * np.exp(rng.uniform(0, np.log(2), size=_count(rng)))
    # Beyond 4 kT a circle of 3000 samples has almost none between its wells.
    parts: list[Part] = [
        uneven(_part("circle", size), wells(_uniform(rng, 1.0, 4.0), _uniform(rng, 0.0, 0.5)))
        for size in sizes
    ]
    if len(parts) > 1 and rng.uniform() < 0.5:
        parts[-1] = Interval(_uniform(rng, 2.0, 4.0))
    return _drawn(parts)


def _gap(rng) -> Drawn:
    """Draw a product with a gap along one interval or circle."""
    while True:  # until there is an interval or a circle
        first, *others = _random_parts(rng)
        if isinstance(first, Interval) or first.ambient == 2:
            nothing = gap(_uniform(rng, 0.05, 0.15), _uniform(rng, 0.3, 0.6))
            return _drawn([uneven(first, nothing), *others])


def _weak(rng) -> Drawn:
    """Draw a product with a weak factor: lengths that differ much, or images."""
    if rng.uniform() < 0.5:
        return _images(rng)
    count = _several(rng)
    # The largest length over the smallest.
    ratio = _log_uniform(rng, 10.0, 30.0)
    sizes = rng.permutation([1.0, ratio, *ratio ** rng.uniform(size=count - 2)])
    return _drawn(_parts(lambda: sizes, rng))


def _images(rng) -> Drawn:
    motions = [turning if rng.uniform() < 0.5 else shifting for _ in range(_several(rng))]
    # A bright object's variance over a dim one's.
    ratio = _log_uniform(rng, 1.0, 30.0)
    occluding = bool(rng.uniform() < 0.25)
    names = " x ".join(move.__name__.capitalize() for move in motions)
    covered = ", the first covers the others" if occluding else ""
    name = f"images, {names}, variances to 1:{ratio:.1f}{covered}"
    # Twice the standard deviation of the images of the weakest object.
    return Drawn(scene(motions, ratio, occluding=occluding), name, 2 / np.sqrt(ratio))


def _warp(rng) -> Drawn:
    """Draw a surface of revolution, or a conformal map of a rectangle or cylinder."""
    if rng.uniform() < 0.5:
        name = str(rng.choice(list(FIELD["conformal"])))
        conformal: Any = FIELD["conformal"][name]
        second = "interval" if conformal.keywords["imaginary"] else "circle"
        return Drawn(conformal, f"interval x {second}, {name}", 1.0)
    profile = str(rng.choice(list(PROFILES)))
    # Largest over smallest radius, and length over radius.
    ratio = _log_uniform(rng, 1.5, 3.0)
    shape = revolution(profile, ratio, _shown(ratio * _uniform(rng, 3.0, 5.0)))
    return Drawn(shape, f"interval x circle, {shape}", 2.0)


def _near(rng) -> Drawn:
    """Draw a shape that is almost a product: carved, or with slanted circles."""
    length = _uniform(rng, 1.3, 2.5)
    sides = (length, 1.0)
    # Smaller corners and holes hold too few of 800 samples to be missed.
    carved = [cut_corner(sides, _uniform(rng, 0.4, 0.7)), hole(sides, _uniform(rng, 0.2, 0.35))]
    # How far going once around the second circle of a lattice torus moves along the first, of its
    # length: beyond a half another pair of circles is the shorter one.
    offset = _uniform(rng, 0.17, 0.4)
    torus = LatticeTorus(_shown(np.degrees(np.arccos(offset / length))), length)
    shapes: list[Shape] = [*carved, stadium(sides), torus]
    shape = shapes[rng.randint(len(shapes))]
    # A circle of length 1 has a diameter of 1 / pi.
    slanted = shape is torus
    factors, smallest = ("circle x circle", 1 / np.pi) if slanted else ("interval x interval", 1.0)
    return Drawn(shape, f"{factors}, {shape}", smallest, product=False)


KINDS: dict[str, Callable[..., Drawn]] = {
    draw.__name__.strip("_"): draw
    for draw in (_even, _gaussian, _soft, _wells, _gap, _weak, _warp, _near)
}


def _drawn(parts: Sequence[Part]) -> Drawn:
    name = " x ".join(map(str, parts))
    return Drawn(product(*parts), name, min(map(extent, parts)), len(parts) > 1)


def extent(part: Any) -> float:
    """Return the largest distance between two points of a part, or between 95 % of them."""
    match part:
        case Interval(length):
            return length
        case Sphere(radius):
            return 2 * radius
        case Parametrised(keywords={"deviation": deviation}):
            return 4 * deviation
        case Parametrised(keywords={"mean": mean}):
            return 3 * mean
    return extent(part.keywords["part"])


def _count(rng) -> int:
    """Draw a number of factors."""
    return 1 + int(rng.choice(3, p=(0.1, 0.55, 0.35)))


def _several(rng) -> int:
    return max(2, _count(rng))


def _random_parts(rng) -> list[Interval | Sphere]:
    """Draw one to three factors of comparable size."""
    count = _count(rng)
    return _parts(lambda: np.exp(rng.uniform(0, np.log(4), size=count)), rng)


def _parts(sizes: Callable[[], np.ndarray], rng) -> list[Interval | Sphere]:
    """Draw sizes and a factor of each, until their product has few enough dimensions."""
    while True:
        drawn = sizes()
        names = ["interval", "circle", "sphere"]
        kinds = rng.choice(names, size=len(drawn), p=(0.45, 0.35, 0.2))
        if len(drawn) + (kinds == "sphere").sum() <= (3, 4, 4)[len(drawn) - 1]:
            return list(map(_part, kinds, drawn))


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
    coordinates : tuple of tuple of ndarray of shape (n_samples, c_i)
        Coordinates in which the Laplacian of an irreducible shape separates, as on a disk,
        a cone frustum or an ellipsoid: one array for each, as in `truth`. Where there are
        several such tuples, each of them is right; () if nothing is known to separate.
    """

    X: np.ndarray
    truth: Truth
    description: str
    kind: str
    product: bool
    coordinates: tuple[Truth, ...] = ()


def _separating(drawn: Drawn, X: np.ndarray) -> tuple[Truth, ...]:
    """Return two coordinates in which the Laplacian of an irreducible shape separates, if known."""
    if isinstance(drawn.shape, Ellipsoid):
        return drawn.shape.coordinates(X)
    if drawn.name in ("disk", "frustum", "long_frustum"):
        radius = np.linalg.norm(X[:, :2], axis=1, keepdims=True)
        return ((radius, X[:, :2] / radius),)
    return ()


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
    if rng.uniform() < 0.25:
        kind, name = "irreducible", str(rng.choice(SIMPLE if kinds == "even" else IRREDUCIBLE))
        drawn = Drawn(SHAPES[name], name, 1.0, product=False)
    else:
        frequencies = [0.25, 0.1, 0.1, 0.1, 0.1, 0.15, 0.1, 0.1]
        kind = "even" if kinds == "even" else str(rng.choice(list(KINDS), p=frequencies))
        drawn = KINDS[kind](rng)
    X, truth = drawn.shape(n, rng)
    coordinates = _separating(drawn, X)
    room = 20 - X.shape[1]
    if room >= 0:
        X = rotated_into(X, X.shape[1] + rng.randint(0, room + 1), rng)
    noise = drawn.smallest_extent / 40 * rng.choice([0.0, rng.uniform()])
    # No absolute length may matter.
    scale = 10 ** rng.uniform(-6, 6)
    if noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    description = f"{drawn.name}, n = {n}, noise {noise:.3f}, in R^{X.shape[1]}, times {scale:.1e}"
    return Problem(scale * X, truth, description, kind, drawn.product, coordinates)
