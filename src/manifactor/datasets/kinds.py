"""The kinds of random problems: each of them draws a shape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from manifactor.datasets.problem_settings import ProblemSettings, Range
from manifactor.datasets.products import Interval, Part, Shape, Sphere, circle, independent, product
from manifactor.datasets.shapes import SHAPES
from manifactor.datasets.warps import PROFILES, Revolution


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
