"""Families of shapes beyond products: a seed draws a member, its samples and the truth.

>>> X, truth = draw("separable 2-D", "annulus", 500, random_state=0)
>>> X.shape, [t.shape for t in truth]
((500, 2), [(500, 1), (500, 2)])

Separable shapes have one true factor for each separating coordinate, or for each block of them
that no coordinates divide uniquely, such as a sphere. The truth of irreducible and twisted shapes
is the samples, that of symmetric ones a `Symmetry`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from manifactor.datasets.products import Sphere, Truth, ring, rotations
from manifactor.datasets.shapes import AROUND, LatticeTorus
from studies.curved import MappedBox, annulus, ellipse, revolution, sphere, vase

# How far the logarithm of the density falls from its highest value.
DENSITIES: dict[str, Callable[..., float]] = {
    "uniform": lambda rng: 0.0,
    # By a factor of 3 to 10.
    "soft": lambda rng: np.log(rng.uniform(3, 10)),
    # The border is 3 standard deviations away from the middle.
    "tails": lambda rng: 4.5,
}


@dataclass(frozen=True)
class Symmetry:
    """The name of a symmetric shape; a flat torus's angle, in degrees, and its two circles."""

    name: str
    lattice_angle: float | None = None
    circles: Truth = ()


def draw(
    group: str, name: str, n_samples: int, *, density: str = "uniform", random_state=None
) -> tuple[np.ndarray, Truth | Symmetry]:
    """Draw a member of a family of `FAMILIES` or `SYMMETRIC`, its samples and their truth."""
    rng = check_random_state(random_state)
    if group == "symmetric":
        return SYMMETRIC[name](n_samples, rng)
    chart = FAMILIES[group][name](rng)
    return chart(n_samples, rng, fall=DENSITIES[density](rng))


# Separable, of two dimensions.


def random_vase(rng, **changes) -> MappedBox:
    """Draw a vase with one to one and a half waves, of circles or spheres."""
    depth, waves = rng.uniform(0.2, 0.45), rng.uniform(1, 1.5)
    return vase(depth, waves, rng.uniform(*AROUND), rng.uniform(3, 5), **changes)


def sector(rng) -> MappedBox:
    """Draw a sector of an annulus."""
    ends = (rng.uniform(0.2, 0.6), 1.0), (0.0, rng.uniform(1.0, 4.5))
    return MappedBox(ends, lambda r, a: r[:, None] * ring(a), ("interval", "interval"))


def disc(rng, **changes) -> MappedBox:
    """Draw a disc or a ball; its soft density is not Gaussian, as Gaussians separate in x and y."""
    radius = rng.uniform(0.5, 2)
    return revolution((0.0, 1.0), lambda r: radius * r, slope=lambda r, *_: r**4, **changes)


def cone(rng, *, end: float = 0.0) -> MappedBox:
    """Draw a cone whose radius falls from 1 to `end`."""
    length = rng.uniform(0.7, 2.5)
    slope = None if end else lambda r, _: r**2
    return revolution((end, 1.0), lambda r: r, lambda r: length * r, slope=slope)


def long_ellipsoid(rng) -> MappedBox:
    """Draw the surface of an ellipsoid with a long axis."""
    return ellipsoid(rng.uniform(2, 3), rng.uniform(1.15, 1.4), 1.0)


def ellipsoid(a: float, b: float, c: float) -> MappedBox:
    """Return the surface of an ellipsoid with half axes a > b > c: along the first, and around it.

    Both are coordinates of confocal quadrics.
    """

    def place(along: np.ndarray, around: np.ndarray) -> np.ndarray:
        (p, q), (y, z) = ring(along).T, ring(around).T
        first = np.sqrt(a**2 - b**2 * z**2 - c**2 * y**2)
        last = np.sqrt(a**2 * q**2 + b**2 * p**2 - c**2)
        scale = np.sqrt(a**2 - c**2)
        return np.c_[a * p * first / scale, b * y * q, c * z * last / scale]

    def slope(*q: np.ndarray) -> np.ndarray:
        return ((place(*q) ** 2).sum(axis=1) - c**2) / (a**2 - c**2)

    return MappedBox(((0.0, np.pi), AROUND), place, ("interval", "circle"), slope=slope)


def torus(rng, **changes) -> MappedBox:
    """Draw a torus of revolution: around its tube, and the circles or spheres around its axis."""
    tube = rng.uniform(0.25, 0.6)
    return revolution(
        AROUND,
        lambda t: 1 + tube * np.cos(t),
        lambda t: tube * np.sin(t),
        along="circle",
        **changes,
    )


def spheroid(rng, *, axis: tuple[float, float]) -> MappedBox:
    """Draw the surface of a spheroid, with the least and largest half axis of revolution."""
    length = rng.uniform(*axis)
    return revolution(
        (0.0, np.pi), np.sin, lambda t: length * np.cos(t), slope=lambda t, _: np.cos(t) ** 2
    )


# Separable, of three dimensions.


def band(rng) -> MappedBox:
    """Draw the part of a shell between two latitudes: radius, latitude and longitude."""
    latitudes = rng.uniform(0.4, 0.8), rng.uniform(1.6, 2.4)
    return MappedBox(
        ((rng.uniform(0.4, 0.6), 1.0), latitudes, AROUND),
        lambda r, *angles: r[:, None] * sphere(*angles),
        ("interval", "interval", "circle"),
    )


def cone_over_torus(rng, *, opening: tuple[float, float] = AROUND) -> MappedBox:
    """Draw a cone over a flat torus, or over a cylinder: distance from the tip and two others."""
    ratio, end = rng.uniform(0.6, 1.6), rng.uniform(0.3, 0.6)
    second = "circle" if opening == AROUND else "interval"

    def place(s: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return s[:, None] * np.c_[ring(a), ratio * ring(b)]

    return MappedBox(((end, 1.0), AROUND, opening), place, ("interval", "circle", second))


def two_radii(rng) -> MappedBox:
    """Draw two circles whose radii vary along an interval, each in its own way."""
    depth, length, phase = rng.uniform(0.2, 0.4, 2), rng.uniform(3, 5), rng.uniform(*AROUND, 2)

    def place(t: np.ndarray, *angles: np.ndarray) -> np.ndarray:
        radii = 1 + depth * np.cos(2 * np.pi * t[:, None] + phase)
        rings = [radius[:, None] * ring(a) for radius, a in zip(radii.T, angles, strict=True)]
        return np.c_[*rings, length * t]

    return MappedBox(((0.0, 1.0), AROUND, AROUND), place, ("interval", "circle", "circle"))


def solid_spheroid(rng) -> MappedBox:
    """Draw the inside of a long spheroid, in spheroidal coordinates: two intervals and an angle."""
    width = rng.uniform(0.4, 0.7)
    focus = np.sqrt(1 - width**2)

    def place(u: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        flat = (np.sinh(u) * np.sin(v))[:, None] * ring(a)
        return focus * np.c_[flat, np.cosh(u) * np.cos(v)]

    high = np.arctanh(width)
    return MappedBox(
        ((0.0, high), (0.0, np.pi), AROUND),
        place,
        ("interval", "interval", "circle"),
        slope=lambda u, *_: (u / high) ** 2,
    )


# Irreducible: in the plane, in space, and surfaces with bumps.


def solid(extents: Sequence[float], inside: Callable[..., np.ndarray]) -> MappedBox:
    """Return the points of a box, from minus to plus each extent, of which `inside` is true."""
    return MappedBox([(-e, e) for e in extents], lambda *x: np.column_stack(x), inside=inside)


def polygon(vertices: np.ndarray) -> MappedBox:
    """Return the inside of a polygon with the vertices, (n, 2), in their order."""

    def inside(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        crossings = np.zeros(len(x), int)
        for (x1, y1), (x2, y2) in zip(vertices, np.roll(vertices, -1, axis=0), strict=True):
            beside = (y1 > y) != (y2 > y)
            with np.errstate(divide="ignore", invalid="ignore"):
                crossings += beside & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
        return crossings % 2 == 1

    return solid(np.abs(vertices).max(axis=0), inside)


def uneven_polygon(rng, *, corners: int) -> MappedBox:
    """Draw a polygon with unequal sides and angles."""
    angle = 2 * np.pi * (np.arange(corners) + rng.uniform(-0.25, 0.25, corners)) / corners
    return polygon(rng.permutation(np.linspace(0.6, 1.1, corners))[:, None] * ring(angle))


def ell(rng) -> MappedBox:
    """Draw an L-shape."""
    (x, y), width = rng.uniform(-0.2, 0.2, 2), rng.uniform(0.7, 1)
    return solid((1, width), lambda u, v: (u < x) | (v < y * width))


def in_ball(*x: np.ndarray) -> np.ndarray:
    """Return which points are in the disc or the ball of radius 1."""
    return np.linalg.norm(x, axis=0) < 1


def holed(rng, whole: MappedBox) -> MappedBox:
    """Draw a round hole, away from the middle, in a solid."""
    radius, at = rng.uniform(0.25, 0.35), rng.choice([-1, 1]) * rng.uniform(0.2, 0.35)

    def inside(*x: np.ndarray) -> np.ndarray:
        return whole.inside(*x) & (np.linalg.norm(np.array(x) - at, axis=0) > radius)

    return replace(whole, inside=inside)


def stadium(rng) -> MappedBox:
    """Draw a rectangle with round ends."""
    half = rng.uniform(0.5, 1.5)
    return solid((half + 1, 1), lambda x, y: np.hypot(np.maximum(np.abs(x) - half, 0), y) < 1)


def lens(rng) -> MappedBox:
    """Draw what two discs of different radii have in common."""
    apart, radius = rng.uniform(0.6, 1.2), rng.uniform(0.8, 1.2)
    return solid((1, 1), lambda x, y: in_ball(x, y) & (np.hypot(x - apart, y) < radius))


def blob(rng, *, waves: Sequence[int]) -> MappedBox:
    """Draw a region of the plane whose radius is a sum of waves."""
    phases = rng.uniform(*AROUND, len(waves))
    heights = rng.uniform(0.35, 0.6) * rng.dirichlet(np.ones(len(waves)))

    def inside(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        angle = np.arctan2(y, x)[:, None]
        return np.hypot(x, y) < 1 + np.cos(angle * waves + phases) @ heights

    return solid((1.6, 1.6), inside)


def tetrahedron(rng) -> MappedBox:
    """Draw the inside of a tetrahedron with unequal edges."""
    vertices = rng.uniform(0.7, 1.3, (4, 1)) * ([1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1])

    def inside(*x: np.ndarray) -> np.ndarray:
        weights = np.linalg.solve(np.c_[vertices, np.ones(4)].T, [*x, np.ones_like(x[0])])
        return (weights > 0).all(axis=0)

    return solid((1.3, 1.3, 1.3), inside)


def bumps(rng, *, columns: int, size: float) -> Callable[[np.ndarray], np.ndarray]:
    """Draw a smooth function of samples, (n, columns), with values of about `size`."""
    waves, phases = 2.5 * rng.normal(size=(columns, 8)), rng.uniform(*AROUND, 8)
    return lambda X: size / 2 * np.cos(X @ waves + phases).sum(axis=1)


def bumpy_sphere(rng, *, axes: Sequence[float] = (1, 1, 1)) -> MappedBox:
    """Draw a sphere, stretched along three axes, with bumps."""
    bump = bumps(rng, columns=3, size=rng.uniform(0.12, 0.2))

    def place(*angles: np.ndarray) -> np.ndarray:
        x = sphere(*angles)
        return np.array(axes) * x * np.exp(bump(x))[:, None]

    return MappedBox(((0.0, np.pi), AROUND), place)


def bumpy_torus(rng) -> MappedBox:
    """Draw a torus of revolution whose tube has bumps."""
    tube, bump = rng.uniform(0.3, 0.45), bumps(rng, columns=4, size=0.2)

    def place(t: np.ndarray, a: np.ndarray) -> np.ndarray:
        around, across = tube * np.exp(bump(np.c_[ring(t), ring(a)])) * ring(t).T
        return np.c_[(1 + around)[:, None] * ring(a), across]

    return MappedBox((AROUND, AROUND), place)


def bumpy_sheet(rng) -> MappedBox:
    """Draw a rectangle with hills and valleys."""
    bump, width = bumps(rng, columns=2, size=rng.uniform(0.3, 0.5)), rng.uniform(0.6, 1)
    return MappedBox(((-1, 1), (-width, width)), lambda x, y: np.c_[x, y, bump(np.c_[x, y])])


# Twisted: locally a product, but a fibre comes back turned or reflected from around a circle.


def reflected(rng, fibre: MappedBox, *, fixed: int) -> MappedBox:
    """Draw a circle with a fibre that comes back with its last column reflected.

    The first `fixed` columns of the fibre come back as they were.
    """
    radius = rng.uniform(1.5, 3)

    def place(t: np.ndarray, *q: np.ndarray) -> np.ndarray:
        x = fibre.place(*q)
        # Half a turn for each full turn of the circle.
        return np.c_[radius * ring(t), x[:, :fixed], x[:, fixed:] * ring(t / 2)]

    return MappedBox((AROUND, *fibre.box), place, inside=lambda t, *q: fibre.inside(*q))


def mapping_torus(rng, fibre: MappedBox, *, turn: float, level: bool = True) -> MappedBox:
    """Draw a circle with a plane fibre that comes back after a part of a turn.

    With w = x + iy, both w exp(i turn t) and w exp(i (turn - 1) t) have one value where t = 2 pi is
    glued to t = 0. Weighted so that their turns cancel, they give a metric without mixed terms:
    |dw|^2 + (radius^2 + turn (1 - turn) |w|^2) dt^2, nearly flat. The first of them alone, if not
    `level`, is a solid ring with a cross-section that turns.
    """
    radius = rng.uniform(1.5, 3)
    terms = ((1 - turn, turn), (turn, turn - 1)) if level else ((1.0, turn),)

    def place(t: np.ndarray, *q: np.ndarray) -> np.ndarray:
        w = fibre.place(*q) @ [1, 1j]
        z = [np.sqrt(share) * w * np.exp(1j * rate * t) for share, rate in terms]
        return np.c_[radius * ring(t), np.real(z).T, np.imag(z).T]

    return MappedBox((AROUND, *fibre.box), place, inside=lambda t, *q: fibre.inside(*q))


def filled(*extents: float) -> MappedBox:
    """Return an interval or a rectangle."""
    return solid(extents, lambda *x: np.full(len(x[0]), True))


def oblong(rng) -> MappedBox:
    """Draw a rectangle."""
    return filled(1, rng.uniform(0.5, 0.9))


def oval(rng) -> MappedBox:
    """Draw the inside of an ellipse."""
    width = rng.uniform(0.4, 0.7)
    return solid((1, width), lambda x, y: in_ball(x, y / width))


FAMILIES: dict[str, dict[str, Callable[..., MappedBox]]] = {
    "separable 2-D": {
        "annulus": lambda rng: annulus(rng.uniform(0.2, 0.7)),
        "sector": sector,
        "disc": disc,
        "frustum": lambda rng: cone(rng, end=rng.uniform(0.25, 0.7)),
        "cone": cone,
        "vase": random_vase,
        "ellipse": lambda rng: ellipse(rng.uniform(0.5, 0.8)),
        "ellipsoid": long_ellipsoid,
        "torus": torus,
        "prolate": lambda rng: spheroid(rng, axis=(1.4, 2.5)),
        "oblate": lambda rng: spheroid(rng, axis=(0.4, 0.75)),
    },
    "separable 3-D": {
        "shell": lambda rng: annulus(rng.uniform(0.3, 0.6), around="sphere"),
        "ball": lambda rng: disc(rng, around="sphere"),
        "band": band,
        "sphere_vase": lambda rng: random_vase(rng, around="sphere"),
        "sphere_torus": lambda rng: torus(rng, around="sphere"),
        "cone_over_torus": cone_over_torus,
        "cone_over_cylinder": lambda rng: cone_over_torus(rng, opening=(0.0, rng.uniform(1, 2.5))),
        "two_radii": two_radii,
        "solid_spheroid": solid_spheroid,
    },
    "irreducible": {
        "triangle": lambda rng: uneven_polygon(rng, corners=3),
        "quadrilateral": lambda rng: uneven_polygon(rng, corners=4),
        "pentagon": lambda rng: uneven_polygon(rng, corners=5),
        "ell": ell,
        "holed_rectangle": lambda rng: holed(rng, filled(1.2, 0.8)),
        "holed_disc": lambda rng: holed(rng, solid((1, 1), in_ball)),
        "holed_ball": lambda rng: holed(rng, solid((1, 1, 1), in_ball)),
        "stadium": stadium,
        "lens": lens,
        "peanut": lambda rng: blob(rng, waves=[2]),
        "blob": lambda rng: blob(rng, waves=[2, 3, 4, 5]),
        "tetrahedron": tetrahedron,
        "bumpy_sphere": bumpy_sphere,
        "bumpy_ellipsoid": lambda rng: bumpy_sphere(rng, axes=rng.uniform(0.7, 1.4, 3)),
        "bumpy_torus": bumpy_torus,
        "bumpy_sheet": bumpy_sheet,
    },
    "twisted": {
        "moebius": lambda rng: reflected(rng, filled(rng.uniform(0.5, 1.2)), fixed=0),
        "klein_bottle": lambda rng: reflected(rng, MappedBox((AROUND,), ring), fixed=1),
        "reflected_disc": lambda rng: reflected(rng, solid((1, 1), in_ball), fixed=1),
        "reflected_sphere": lambda rng: reflected(
            rng, MappedBox(((0.0, np.pi), AROUND), sphere), fixed=2
        ),
        "quarter_turn": lambda rng: mapping_torus(rng, filled(0.9, 0.9), turn=1 / 4),
        "half_turn": lambda rng: mapping_torus(rng, oblong(rng), turn=1 / 2),
        "turning_square": lambda rng: mapping_torus(rng, filled(0.9, 0.9), turn=1 / 4, level=False),
        "turning_oblong": lambda rng: mapping_torus(rng, oblong(rng), turn=1 / 2, level=False),
        "turning_ellipse": lambda rng: mapping_torus(rng, oval(rng), turn=1 / 2, level=False),
        "turned_ellipse": lambda rng: mapping_torus(rng, oval(rng), turn=1 / 2),
        "turned_triangle": lambda rng: mapping_torus(
            rng, polygon(ring(np.arange(3) * 2 * np.pi / 3)), turn=1 / 3
        ),
    },
}


# Separable shapes without a border, which cannot fade out there.
CLOSED = ("ellipsoid", "torus", "prolate", "oblate", "sphere_torus")


# Symmetric.


def round_sphere(n_samples: int, rng, *, dimension: int) -> tuple[np.ndarray, Symmetry]:
    """Draw a sphere."""
    return Sphere(rng.uniform(0.5, 2), dimension + 1)(n_samples, rng)[0], Symmetry("sphere")


def flat_torus(n_samples: int, rng, *, degrees: tuple[float, float]) -> tuple[np.ndarray, Symmetry]:
    """Draw a flat torus, with the least and largest angle of its lattice."""
    angle = rng.uniform(*degrees)
    # With a longer second vector, another pair of vectors would be shorter and have another angle.
    longest = min(1.6, 0.5 / np.cos(np.radians(angle)))
    X, circles = LatticeTorus(angle, rng.uniform(1, longest))(n_samples, rng)
    return X, Symmetry("flat torus", angle, circles)


def body(n_samples: int, rng, *, family: str) -> tuple[np.ndarray, Symmetry]:
    """Draw a body of revolution of a family of separable shapes."""
    X, _ = FAMILIES["separable 2-D"][family](rng)(n_samples, rng)
    return X, Symmetry("body of revolution")


SYMMETRIC: dict[str, Callable[..., tuple[np.ndarray, Symmetry]]] = {
    **{f"sphere{d}": partial(round_sphere, dimension=d) for d in (2, 3, 4)},
    "rotations": lambda n_samples, rng: (rotations(n_samples, rng)[0], Symmetry("SO(3)")),
    "hexagonal_torus": partial(flat_torus, degrees=(60.0, 60.0)),
    "flat_torus": partial(flat_torus, degrees=(60.0, 90.0)),
    **{name: partial(body, family=name) for name in ("vase", "prolate", "torus", "frustum")},
}
