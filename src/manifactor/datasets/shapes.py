"""The named shapes with exact latents: products, nearly products, irreducible or warped ones.

An irreducible shape has one true factor, whose latents are the samples. A near-product has two good
coordinates, but does not fill the product of their ranges: finding them is right, "product" is not.
A conformal map stretches the metric of a rectangle by the same factor in all directions, which
differs from place to place. On a surface of revolution the circles have different lengths.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import (
    Interval,
    PartSamples,
    Samples,
    Shape,
    Sphere,
    Truth,
    beta,
    bumps,
    circle,
    disk,
    exponential,
    family,
    gap,
    normal,
    product,
    projective_plane,
    ring,
    rotations,
    star,
    thinned,
    uneven,
    von_mises,
    wells,
)

# The long side of the paper's rectangle, torus and cube. Its ratio to the other sides is
# irrational, so that no two factors share an eigenvalue.
PAPER_SIDE = 1 + np.sqrt(np.pi)

# Two sides of length 1 with 60 degrees between them.
SIDES_AT_60_DEGREES = np.array([[1.0, 0.0], [0.5, np.sqrt(3) / 2]])


def triangle(n_samples: int, rng) -> Samples:
    """Draw an equilateral triangle of side 1."""
    # The gaps between sorted uniform numbers are uniform barycentric coordinates.
    u = rng.uniform(size=(n_samples, 2))
    low, high = np.sort(u, axis=1).T
    X = np.c_[low, high - low] @ SIDES_AT_60_DEGREES
    return X, (X,)


def parallelogram(n_samples: int, rng) -> Samples:
    """Draw a rhombus of side 1 with an angle of 60 degrees."""
    X = rng.uniform(size=(n_samples, 2)) @ SIDES_AT_60_DEGREES
    return X, (X,)


def moebius(n_samples: int, rng) -> Samples:
    """Draw a nearly flat Moebius band in R^4: a product locally but not globally."""
    turn, height = rng.uniform(size=(2, n_samples))
    angle = turn * (2 * np.pi)
    # Half a turn of the strip for each full turn of the circle glues it with a twist.
    X = np.c_[ring(angle), (height - 0.5)[:, None] * ring(angle / 2)]
    return X, (X,)


def klein_bottle(n_samples: int, rng) -> Samples:
    """Draw a nearly flat Klein bottle in R^5: a product locally but not globally."""
    u, v = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    # One full turn of u reflects sin v.
    X = np.c_[2 * ring(u), np.cos(v), np.sin(v)[:, None] * ring(u / 2)]
    return X, (X,)


@family
def cloud(n_samples: int, rng, *, n_columns: int, correlation: float) -> Samples:
    """Draw a Gaussian with columns of variance 1, of which the first two are correlated."""
    X = rng.normal(size=(n_samples, n_columns))
    X[:, 1] = correlation * X[:, 0] + np.sqrt(1 - correlation**2) * X[:, 1]
    return X, (X,)


@dataclass(frozen=True)
class Ellipsoid:
    """The surface of an ellipsoid with the given half axes, uniform in area."""

    axes: Sequence[float]

    def __call__(self, n_samples: int, rng) -> Samples:
        axes = np.array(self.axes)

        def density(x: np.ndarray, _) -> np.ndarray:
            # The map from the sphere stretches areas by |x / axes| times a constant.
            return axes.min() * np.linalg.norm(x / axes, axis=1)

        X = axes * thinned(product(Sphere()), density, n_samples, rng)[0]
        return X, (X,)

    def coordinates(self, X: np.ndarray) -> tuple[Truth, Truth]:
        """Return confocal coordinates along and around the longest axis, and the shortest one."""
        squares = np.square(self.axes)
        c, b, a = np.sort(squares)
        z_side, y_side, x_side = np.sign(X.T[np.argsort(squares)])
        # A quadric sum x^2 / (squares - k) = 1 passes through a sample for three k: 0, that of the
        # ellipsoid itself, one of c to b and one of b to a, of which sum and product are known.
        mean = (squares.sum() - (X**2).sum(axis=1)) / 2
        square = squares.prod() * (X**2 / squares**2).sum(axis=1)
        apart = np.sqrt(np.maximum(mean**2 - square, 0))
        low, high = np.clip(mean - apart, c, b), np.clip(mean + apart, b, a)
        along, across = np.sqrt((a - high) / (a - b)), np.sqrt((high - b) / (a - b))
        up, aside = np.sqrt((low - c) / (b - c)), np.sqrt((b - low) / (b - c))
        x, z = (x_side * along)[:, None], (z_side * up)[:, None]
        return (x, np.c_[y_side * aside, z]), (z, np.c_[x, y_side * across])


@family
def solid_ellipsoid(n_samples: int, rng, *, axes: Sequence[float]) -> Samples:
    """Draw the inside of an ellipsoid with the given half axes, uniform in volume."""
    direction, _ = Sphere()(n_samples, rng)
    # The cubic root makes the samples uniform in volume.
    X = np.array(axes) * np.cbrt(rng.uniform(size=(n_samples, 1))) * direction
    return X, (X,)


@family
def frustum(n_samples: int, rng, *, end: float, length: float) -> Samples:
    """Draw a cone whose radius falls from 1 to `end` along its axis, uniform in area."""
    # The density of the radius is proportional to the radius.
    radius = np.sqrt(rng.uniform(end**2, 1, size=n_samples))
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    X = np.c_[radius[:, None] * ring(angle), length * (1 - radius) / (1 - end)]
    return X, (X,)


# Parts of a rectangle, uniform in area; the truth is both coordinates, from 0 to 1.


def _carved(n_samples: int, rng, sides: Sequence[float], contains: Callable) -> Samples:
    """Draw the places of a rectangle for which `contains` is true."""

    def square(n: int, rng) -> Samples:
        place = rng.uniform(size=(n, 2))
        return place, tuple(np.hsplit(place, 2))

    place, truth = thinned(square, lambda place, _: contains(place * sides), n_samples, rng)
    return place * sides, truth


@family
def cut_corner(n_samples: int, rng, *, sides: Sequence[float], leg: float) -> Samples:
    """Draw a rectangle without one corner, a right triangle with equal legs."""
    return _carved(n_samples, rng, sides, lambda x: (sides - x).sum(axis=1) > leg)


@family
def hole(n_samples: int, rng, *, sides: Sequence[float], radius: float) -> Samples:
    """Draw a rectangle with a round hole in the middle."""
    middle = np.array(sides) / 2
    return _carved(n_samples, rng, sides, lambda x: np.linalg.norm(x - middle, axis=1) > radius)


@family
def stadium(n_samples: int, rng, *, sides: Sequence[float]) -> Samples:
    """Draw a rectangle with round ends: half disks in place of its short sides."""
    length, width = sides

    def contains(x: np.ndarray) -> np.ndarray:
        along, across = np.abs(x - np.array(sides) / 2).T
        beyond = np.maximum(along - (length / 2 - width / 2), 0)
        return np.hypot(beyond, across) < width / 2

    return _carved(n_samples, rng, sides, contains)


@dataclass(frozen=True)
class LatticeTorus:
    """A flat torus of circles of lengths 1 and `length` that meet at an angle, isometric in R^6."""

    degrees: float
    length: float

    @property
    def lattice(self) -> np.ndarray:
        """The two vectors, (2, 2), that the plane is divided by."""
        angle = np.radians(self.degrees)
        second = self.length * np.array([np.cos(angle), np.sin(angle)])
        return np.array([[1.0, 0.0], second])

    def __call__(self, n_samples: int, rng) -> Samples:
        place = rng.uniform(size=(n_samples, 2))
        waves, amplitudes = self._isometry()
        phases = 2 * np.pi * place @ self.lattice @ waves.T
        pairs = zip(amplitudes, phases.T, strict=True)
        X = np.hstack([amplitude * ring(phase) for amplitude, phase in pairs])
        return X, tuple(ring(2 * np.pi * t) for t in place.T)

    def _isometry(self) -> tuple[np.ndarray, np.ndarray]:
        """Return three vectors of the dual lattice, (3, 2), and radii of circles."""
        # Waves along vectors k with amplitudes a have the metric sum (2 pi a)^2 k k^T, which is the
        # identity for one choice of the three amplitudes.
        first, second = np.linalg.inv(self.lattice).T
        # For this choice of the sign the squares of the amplitudes are positive.
        sign = -np.sign(first @ second) or 1.0
        waves = np.array([first, second, first + sign * second])
        x, y = waves.T
        metric = np.array([x * x, y * y, x * y])
        squares = np.linalg.solve(metric, [1.0, 1.0, 0.0])
        return waves, np.sqrt(squares.clip(0)) / (2 * np.pi)


def _plane(z: np.ndarray) -> np.ndarray:
    return np.c_[z.real, z.imag]


def stereographic(z: np.ndarray) -> np.ndarray:
    """Return points of the unit sphere, (n, 3)."""
    squared = np.abs(z) ** 2
    return np.c_[2 * z.real, 2 * z.imag, 1 - squared] / (1 + squared)[:, None]


# Conformal maps from complex numbers to points of the plane, (n, 2), or of space, (n, 3).
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    # Strips become sectors of annuli.
    "exponential": lambda z: _plane(np.exp(z)),
    "square": lambda z: _plane(z**2),
    # Lines become curves.
    "bend": lambda z: _plane(z + 0.2 * z**2),
    "stereographic": stereographic,
    # The imaginary part is an angle: on the unit sphere, and on a catenoid.
    "mercator": lambda z: np.c_[ring(z.imag) / np.cosh(z.real)[:, None], np.tanh(z.real)],
    "catenoid": lambda z: np.c_[ring(z.imag) * np.cosh(z.real)[:, None], z.real],
}


Ends = tuple[float, float]  # lowest and highest value


@family
def conformal(n_samples: int, rng, *, mapping: str, real: Ends, imaginary: Ends | None) -> Samples:
    """Draw a rectangle of the complex plane, uniform before a map of `MAPS`.

    Without ends, the imaginary part is an angle. The truth is both parts before the map.
    """
    u, v = rng.uniform(size=(2, n_samples))
    (left, right), (low, high) = real, imaginary or (0.0, 2 * np.pi)
    z = left + (right - left) * u + 1j * (low + (high - low) * v)
    return MAPS[mapping](z), (u[:, None], v[:, None] if imaginary else ring(2 * np.pi * v))


# Radii along an axis, from 0 to 1, between 1 and a ratio.
PROFILES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "bulge": lambda t, ratio: 1 + (ratio - 1) * np.sin(np.pi * t) ** 2,
    "waist": lambda t, ratio: 1 + (ratio - 1) * np.cos(np.pi * t) ** 2,
    "horn": lambda t, ratio: ratio**t,
}


@family
def revolution(n_samples: int, rng, *, profile: str, ratio: float, length: float) -> Samples:
    """Draw a surface of revolution with a profile of `PROFILES`, even along and around its axis."""
    t, turn = rng.uniform(size=(2, n_samples))
    around = ring(2 * np.pi * turn)
    X = np.c_[PROFILES[profile](t, ratio)[:, None] * around, length * t]
    return X, (t[:, None], around)


def rectangle_3d(n_samples: int, rng) -> Samples:
    """Draw the paper's rectangle in R^3, flat before noise is added."""
    X, truth = SHAPES["rectangle"](n_samples, rng)
    return np.c_[X, np.zeros(n_samples)], truth


def swiss_roll(n_samples: int, rng) -> Samples:
    """Draw a rolled rectangle, uniform in area: arc length along a spiral x width."""
    # The chords of the fine grid are as long as its arcs to 2e-7, so that their sums are a table of
    # arc lengths, inverted by interpolation.
    grid = np.linspace(1.5 * np.pi, 4.5 * np.pi, 4001)
    steps = np.hypot(np.diff(grid * np.cos(grid)), np.diff(grid * np.sin(grid)))
    arc = np.concatenate([[0.0], np.cumsum(steps)])
    t, width = rng.uniform(size=(2, n_samples))
    angle = np.interp(t * arc[-1], arc, grid)
    X = np.c_[angle * np.cos(angle), 30.0 * width, angle * np.sin(angle)]
    return X, (t[:, None], width[:, None])


def warped_cylinder(n_samples: int, rng) -> Samples:
    """Draw a cylinder with a radius that varies along it: nearly a product."""
    t, turn = rng.uniform(size=(2, n_samples))
    radius = 1 + 0.15 * np.sin(2 * np.pi * t)
    around = ring(turn * (2 * np.pi))
    return np.c_[3.0 * t, radius[:, None] * around], (t[:, None], around)


def robot_arm(n_samples: int, rng) -> Samples:
    """Draw two markers on a planar arm with links of 1 and .6, whose directions are the truth."""
    first, second = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    elbow, link = ring(first), ring(second)
    return np.c_[elbow, elbow + 0.6 * link], (elbow, link)


# Images of boxes under smooth maps: the Laplacian of an annulus, an ellipse or a vase separates in
# coordinates, although lengths along one coordinate depend on another.

AROUND = (0.0, 2 * np.pi)


@dataclass(frozen=True)
class MappedBox:
    """The image of a box of coordinates under a map."""

    box: Sequence[tuple[float, float]]  # lowest and highest value of each coordinate
    place: Callable[..., np.ndarray]  # from coordinates, (n,) each, to samples, (n, n_columns)
    # True factors in the order of the coordinates: "interval" or "circle". Without any, the samples
    # are the only factor.
    factors: Sequence[str] = ()

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw samples and truth."""

        def box(n: int, rng) -> Samples:
            return rng.uniform(*np.transpose(self.box), size=(n, len(self.box))), ()

        highest = self.density(box(20_000, rng)[0]).max()
        q, _ = thinned(box, lambda q, _: self.density(q) / highest, n_samples, rng)
        X = self.place(*q.T)
        return X, self.truth(q) or (X,)

    def density(self, q: np.ndarray) -> np.ndarray:
        """Return the density at coordinates, (n, d): the area or volume that the map makes."""
        return np.sqrt(np.linalg.det(self.metric(q)).clip(0))

    def metric(self, q: np.ndarray) -> np.ndarray:
        """Return the metric tensor at coordinates (n, d), of shape (n, d, d)."""
        # Central differences are then right to 1e-9.
        steps = 1e-5 * np.ptp(self.box, axis=1)
        ends = [(self.place(*(q + s).T), self.place(*(q - s).T)) for s in np.diag(steps)]
        jacobian = np.stack([high - low for high, low in ends], axis=-1) / (2 * steps)
        return jacobian.transpose(0, 2, 1) @ jacobian

    def truth(self, q: np.ndarray) -> Truth:
        """Return the true factors: intervals from 0 to 1, circles as unit vectors."""
        return tuple(
            ring(x) if factor == "circle" else ((x - low) / (high - low))[:, None]
            for factor, x, (low, high) in zip(self.factors, q.T, self.box, strict=False)
        )


def annulus(ratio: float) -> MappedBox:
    """Return the annulus between radii `ratio` and 1: radius and angle."""
    return MappedBox(
        ((ratio, 1.0), AROUND), lambda r, a: r[:, None] * ring(a), ("interval", "circle")
    )


def vase(depth: float, waves: float, phase: float, length: float) -> MappedBox:
    """Return a surface of revolution with a wavy radius: height and angle."""

    def place(t: np.ndarray, angle: np.ndarray) -> np.ndarray:
        radius = 1 + depth * np.cos(2 * np.pi * waves * t + phase)
        return np.c_[radius[:, None] * ring(angle), length * t]

    return MappedBox(((0.0, 1.0), AROUND), place, ("interval", "circle"))


def ellipse(axis: float) -> MappedBox:
    """Return the inside of an ellipse with half axes 1 and `axis`, in elliptic coordinates.

    The confocal ellipses are an interval; the hyperbolas are a circle, with a value for each side.
    """
    focus = np.sqrt(1 - axis**2)

    def place(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return focus * np.c_[np.cosh(u) * np.cos(v), np.sinh(u) * np.sin(v)]

    return MappedBox(((0.0, np.arctanh(axis)), AROUND), place, ("interval", "circle"))


# Images of objects that move independently: sums in the pixels, and no isometric product. Pixels
# have coordinates from -1 to 1. An object is a few blurred spots that turn about a centre, a
# circle, or move along a line, an interval.

# Radius, angle and weight, all unequal: an object with a symmetry would look the same after less
# than a full turn.
TURNED_SPOTS = [(0.55, 0.0, 1.0), (0.4, 2.0, 0.7), (0.3, 4.0, 0.5)]
# Offset and weight; the second spot gives the object a front and a back.
SHIFTED_SPOTS = [((0.0, 0.0), 1.0), ((0.18, 0.23), 0.5)]

# Two objects beside each other, and nearer, so that their images overlap.
APART = ((-0.5, 0.0), (0.5, 0.0))
OVERLAPPING = ((-0.25, 0.0), (0.25, 0.0))
# Three smaller objects.
THREE_CENTRES = ((-0.55, -0.5), (0.55, -0.5), (0.0, 0.5))

# From the number of samples, the places of pixels about an object's centre in units of its size,
# and a generator to images, (n_samples, n_pixels), and latents.
Motion = Callable[..., PartSamples]


def turning(n_samples: int, pixels: np.ndarray, rng) -> PartSamples:
    """Draw an object that turns about its centre, and cosine and sine of the angle."""
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    paths = [(radius * ring(angle + start), weight) for radius, start, weight in TURNED_SPOTS]
    return _spots(pixels, paths), ring(angle)


def shifting(n_samples: int, pixels: np.ndarray, rng) -> PartSamples:
    """Draw an object that moves up and down by its size, and the place from 0 to 1."""
    place = rng.uniform(size=(n_samples, 1))
    path = np.c_[np.zeros(n_samples), place - 0.5]
    return _spots(pixels, [(path + offset, weight) for offset, weight in SHIFTED_SPOTS]), place


def _spots(pixels: np.ndarray, paths: Sequence[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return images of blurred spots with centres, (n_samples, 2), and weights."""
    images = np.zeros((len(paths[0][0]), len(pixels)))
    for centres, weight in paths:
        squared = ((pixels - centres[:, None]) ** 2).sum(axis=2)
        images = images + weight * np.exp(-squared / 0.08)
    # Of variance 1 in all pixels together.
    return images / np.sqrt(images.var(axis=0).sum())


@family
def scene(
    n_samples: int,
    rng,
    *,
    motions: Sequence[Motion],
    ratio: float,
    centres: Sequence[tuple[float, float]] | None = None,
    size: float | None = None,
    occluding: bool = False,
    noise: float = 0.0,
) -> Samples:
    """Draw images of several objects, the brightest first, flattened, and the place of each.

    The ratio is the variance of the first object's images over that of the last one's; those
    between have equal ratios. An occluding first object covers the others; else it adds to them.
    Noise in each pixel is relative to the root mean square of all pixels' standard deviations.
    """
    centres = centres or (APART if len(motions) == 2 else THREE_CENTRES)
    size = size or (0.7 if len(motions) == 2 else 0.5)
    pixels = _pixels(np.linspace(-1, 1, 24), np.linspace(-1, 1, 24))
    places = [(pixels - centre) / size for centre in centres]
    drawn = [move(n_samples, at, rng) for move, at in zip(motions, places, strict=True)]
    variances = np.geomspace(1, 1 / ratio, len(drawn))
    front, *others = (
        np.sqrt(variance) * images for variance, (images, _) in zip(variances, drawn, strict=True)
    )
    # Opaque where the first object has half of its brightness or more.
    visible = 1 - np.clip(2 * front / front.max(), 0, 1) if occluding else 1.0
    X = front + visible * sum(others)
    if noise:
        X = X + rng.normal(scale=noise * np.sqrt(X.var(axis=0).mean()), size=X.shape)
    return X, tuple(latents for _, latents in drawn)


def turning_objects(n_samples: int, rng) -> Samples:
    """Draw wide images of two objects that turn independently, with variances of 5 to 1: a sum."""
    pixels = _pixels(np.linspace(-1.5, 1.5, 24), np.linspace(-1, 1, 16))
    first, left = turning(n_samples, pixels - [-0.6, 0], rng)
    second, right = turning(n_samples, pixels - [0.6, 0], rng)
    return first + second / np.sqrt(5), (left, right)


def _pixels(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the coordinates of the pixels of an image, (n_pixels, 2), row by row."""
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)


FIELD: dict[str, Mapping[str, Shape]] = {
    # Standard deviations of the factors.
    "gaussian": {
        f"gaussian_{'_'.join(map(str, deviations))}": product(*map(normal, deviations))
        for deviations in ((1, 1.5), (1, 2), (1, 3), (1, 5), (1, 1.5, 2.25), (1, 2, 4), (1, 3, 5))
    },
    "soft density": {
        "beta": product(uneven(Interval(1.6), beta(2, 5)), uneven(Interval(), beta(2, 2))),
        "equal_beta": product(uneven(Interval(2.0), beta(2, 2)), uneven(Interval(), beta(2, 2))),
        **{
            f"von_mises_torus_{k}": product(*(uneven(circle(r), von_mises(k)) for r in (1.6, 1.0)))
            for k in (1, 2)
        },
        **{f"von_mises_cylinder_{k}": product(3.0, uneven(circle(), von_mises(k))) for k in (1, 2)},
        "bimodal": product(uneven(Interval(1.6), bumps(0.16)), 1.0),
        "deep_bimodal": product(uneven(Interval(1.6), bumps(0.12)), 1.0),
        "exponential": product(exponential(1.0), 3.0),
    },
    # Barriers in units of kT.
    "wells": {
        f"{name}_{barrier}": product(*(uneven(circle(r), wells(barrier, tilt)) for r in (1.0, 0.7)))
        for name, tilt in (("wells", 0.0), ("uneven_wells", 0.5))
        for barrier in (1, 2, 3, 4)
    },
    # Factors of which one is much shorter. A circle is as long, from a point to the opposite one,
    # as an interval.
    "unequal lengths": {
        **{f"strip{k}": product(k, 1.0) for k in (20, 30)},
        **{f"long_cylinder{k}": product(k, circle(1 / np.pi)) for k in (10, 20)},
        **{f"flat_cylinder{k}": product(circle(k / np.pi), 1.0) for k in (10, 20)},
        **{f"thin_torus{k}": product(circle(k / np.pi), circle(1 / np.pi)) for k in (10, 20)},
        "thin_disk": product(disk(7.5), 1.0),
        "large_sphere_circle": product(Sphere(10.0), circle()),
    },
    # Ratios of the variances of the objects' images.
    "images of objects": {
        **{f"two_turning_{r}": scene((turning, turning), r) for r in (1, 5, 10, 30)},
        **{f"turning_and_shifting_{r}": scene((turning, shifting), r) for r in (1, 10, 30)},
        "two_shifting": scene((shifting, shifting), 5),
        "overlapping": scene((turning, turning), 5, OVERLAPPING),
        "overlapping_shift": scene((turning, shifting), 3, OVERLAPPING),
        "occluded": scene((turning, turning), 3, OVERLAPPING, occluding=True),
        "noisy_turning": scene((turning, turning), 5, noise=0.5),
        **{f"three_objects_{r}": scene((turning, shifting, turning), r) for r in (5, 30)},
    },
    # Lengths of the gap in per cent of the factor's length.
    "gaps": {
        f"{name}_gap{percent}": product(uneven(part, gap(percent / 100, 0.45)), other)
        for percent in (5, 10, 15)
        for name, part, other in (
            ("rectangle", Interval(1.6), Interval()),
            ("cylinder", Interval(4.0), circle()),
            ("torus", circle(1.6), circle()),
        )
    },
    "conformal": {
        "exponential_map": conformal("exponential", (0.0, 1.0), (0.0, 1.6)),
        "long_exponential_map": conformal("exponential", (0.0, 1.5), (0.0, 2.5)),
        "square_map": conformal("square", (0.6, 1.6), (0.0, 1.5)),
        "bend_map": conformal("bend", (-1.0, 1.0), (-0.6, 0.6)),
        "stereographic_map": conformal("stereographic", (-1.2, 1.2), (-0.8, 0.8)),
        "mercator_map": conformal("mercator", (-1.3, 1.3), None),
        "catenoid_map": conformal("catenoid", (-1.2, 1.2), None),
    },
    # Ratios of the largest to the smallest radius.
    "revolution": {
        f"{profile}_{ratio:g}": revolution(profile, ratio, 3 * ratio)
        for profile in PROFILES
        for ratio in (1.5, 2.0, 3.0)
    },
    "unusual factors": {
        "star_circle": product(star, circle(0.8)),
        "projective_plane_interval": product(projective_plane, 2.2),
        "rotations_interval": product(rotations, 4.0),
    },
    "one factor": {
        "cloud2": cloud(2, 0.0),
        "cloud3": cloud(3, 0.0),
        "correlated_cloud2": cloud(2, 0.3),
        "correlated_cloud3": cloud(3, 0.3),
        "ellipsoid": Ellipsoid((1.0, 1.5, 2.0)),
        "long_ellipsoid": Ellipsoid((1.0, 2.0, 3.0)),
        "solid_ellipsoid": solid_ellipsoid((1.0, 1.5, 2.0)),
        "frustum": frustum(0.5, 2.0),
        "long_frustum": frustum(0.4, 10.0),
    },
    "near products": {
        "cut_corner": cut_corner((1.6, 1.0), 0.5),
        "small_cut_corner": cut_corner((1.6, 1.0), 0.3),
        "hole": hole((1.6, 1.0), 0.2),
        "large_hole": hole((1.6, 1.0), 0.3),
        "stadium": stadium((2.5, 1.0)),
        "lattice_torus": LatticeTorus(80.0, 1.0),
        "long_lattice_torus": LatticeTorus(80.0, 1.6),
    },
}


SHAPES: dict[str, Shape] = {
    # The paper's shapes; the noisy rectangles get their noise in `sample`.
    "rectangle": product(PAPER_SIDE, 1.5),
    "rectangle_z": rectangle_3d,
    "rectangle_xyz": rectangle_3d,
    "torus": product(circle(PAPER_SIDE), circle(2.0)),
    "cylinder": product(3.0, circle()),
    "cube": product(PAPER_SIDE, 1.5, 7.0),
    # Equal factors have equal eigenvalues: any rotation of their functions is one, too.
    "square": product(1.0, 1.0),
    "equal_cube": product(1.0, 1.0, 1.0),
    "equal_torus": product(circle(), circle()),
    "equal_torus3": product(circle(), circle(), circle()),
    "equal_cylinder": product(np.pi, circle()),
    # Factors of two dimensions.
    "sphere_circle": product(Sphere(), circle()),
    "sphere_interval": product(Sphere(), 3.0),
    "sphere_sphere": product(Sphere(), Sphere()),
    # The longer the strip, the later the short side appears in the spectrum.
    **{f"strip{k}": product(k, 1.0) for k in (3, 5, 7, 10)},
    # Products in a curved embedding or with a distorted metric, and a sum.
    "swiss_roll": swiss_roll,
    "warped_cylinder": warped_cylinder,
    "robot_arm": robot_arm,
    "turning_objects": turning_objects,
    # No products.
    "sphere": product(Sphere()),
    "sphere3": product(Sphere(ambient=4)),
    "disk": product(disk()),
    "triangle": triangle,
    "parallelogram": parallelogram,
    "moebius": moebius,
    "klein_bottle": klein_bottle,
    # Separable, but no products; and two circles at 60 degrees, as in the activity of grid cells.
    "annulus": annulus(0.4),
    "ellipse": ellipse(0.6),
    "vase": vase(depth=0.3, waves=1.25, phase=0.0, length=4.0),
    "hexagonal_torus": LatticeTorus(60.0, 1.0),
    # Data as people have them.
    **{name: shape for group in FIELD.values() for name, shape in group.items()},
}
