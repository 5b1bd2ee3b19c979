"""The named shapes: products, curved and irreducible shapes, with exact latents."""

import numpy as np

from manifactor.datasets.field import FIELD
from manifactor.datasets.irreducible import klein_bottle, moebius, parallelogram, triangle
from manifactor.datasets.objects import turning_objects
from manifactor.datasets.parts import Disk
from manifactor.datasets.products import (
    Interval,
    Product,
    Samples,
    Shape,
    Sphere,
    circle,
    independent,
    product,
    ring,
)

# The long side of the paper's rectangle, torus and cube. Its ratio to the other sides is
# irrational, so that no two factors share an eigenvalue.
PAPER_SIDE = 1 + np.sqrt(np.pi)


def rectangle_3d(n_samples: int, rng) -> Samples:
    """Draw the paper's rectangle in R^3, flat before noise is added."""
    X, truth = SHAPES["rectangle"](n_samples, rng)
    return np.c_[X, np.zeros(n_samples)], truth


def swiss_roll(
    n_samples: int,
    rng,
    *,
    first_angle: float = 1.5 * np.pi,
    last_angle: float = 4.5 * np.pi,
    height: float = 30.0,
    n_grid: int = 4001,
) -> Samples:
    """Draw a rolled rectangle, uniform in area: arc length along a spiral x width."""
    # The chords of the fine grid are as long as its arcs to 2e-7, so that their sums are a table of
    # arc lengths, inverted by interpolation.
    grid = np.linspace(first_angle, last_angle, n_grid)
    dx = np.diff(grid * np.cos(grid))
    dy = np.diff(grid * np.sin(grid))
    steps = np.hypot(dx, dy)
    arc = np.concatenate([[0.0], np.cumsum(steps)])
    t, width = rng.uniform(size=(2, n_samples))
    angle = np.interp(t * arc[-1], arc, grid)
    x = angle * np.cos(angle)
    z = angle * np.sin(angle)
    X = np.c_[x, height * width, z]
    return X, (t[:, None], width[:, None])


def warped_cylinder(
    n_samples: int, rng, *, length: float = 3.0, amplitude: float = 0.15
) -> Samples:
    """Draw a cylinder with a radius that varies along it: nearly a product."""
    t, turn = rng.uniform(size=(2, n_samples))
    radius = 1 + amplitude * np.sin(2 * np.pi * t)
    around = ring(turn * (2 * np.pi))
    X = np.c_[length * t, radius[:, None] * around]
    return X, (t[:, None], around)


def robot_arm(n_samples: int, rng, *, second_link: float = 0.6) -> Samples:
    """Draw two markers on a planar arm with two full-turn joints.

    The truth is the direction of each link. The first link has length 1.
    """
    first, second = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    elbow = ring(first)
    link = ring(second)
    return np.c_[elbow, elbow + second_link * link], (elbow, link)


SHAPES: dict[str, Shape] = {
    # The paper's shapes; the noisy rectangles get their noise in `sample`.
    "rectangle": product(Interval(PAPER_SIDE), Interval(1.5)),
    "rectangle_z": rectangle_3d,
    "rectangle_xyz": rectangle_3d,
    "torus": product(circle(PAPER_SIDE), circle(2.0)),
    "cylinder": product(Interval(3.0), circle()),
    "cube": product(Interval(PAPER_SIDE), Interval(1.5), Interval(7.0)),
    # Equal factors have equal eigenvalues: any rotation of their functions is one, too.
    "square": product(Interval(), Interval()),
    "equal_cube": product(Interval(), Interval(), Interval()),
    "equal_torus": product(circle(), circle()),
    "equal_torus3": product(circle(), circle(), circle()),
    "equal_cylinder": product(Interval(np.pi), circle()),
    # Factors of two dimensions.
    "sphere_circle": product(Sphere(), circle()),
    "sphere_interval": product(Sphere(), Interval(3.0)),
    "sphere_sphere": product(Sphere(), Sphere()),
    # The longer the strip, the later the short side appears in the spectrum.
    "strip3": product(Interval(3.0), Interval()),
    "strip5": product(Interval(5.0), Interval()),
    "strip7": product(Interval(7.0), Interval()),
    "strip10": product(Interval(10.0), Interval()),
    # Products in a curved embedding or with a distorted metric, and a sum.
    "swiss_roll": swiss_roll,
    "warped_cylinder": warped_cylinder,
    "robot_arm": robot_arm,
    "turning_objects": turning_objects,
    # No products.
    "sphere": product(Sphere()),
    "sphere3": product(Sphere(ambient=4)),
    "disk": independent(Disk()),
    "triangle": triangle,
    "parallelogram": parallelogram,
    "moebius": moebius,
    "klein_bottle": klein_bottle,
    # Data as people have them.
    **{name: shape for group in FIELD.values() for name, shape in group.items()},
}


def named_shape(name: str) -> Shape:
    """Return the shape of this name."""
    if name not in SHAPES:
        raise ValueError(f"the shape must be one of {sorted(SHAPES)}; got {name!r}.")
    return SHAPES[name]


def exact_eigenvalues(name: str, n_functions: int) -> np.ndarray:
    """Return the lowest Laplacian eigenvalues of a product shape.

    The first is the zero of the constant function.

    Parameters
    ----------
    name : str
        A key of `SHAPES` whose value is a product.
    n_functions : int

    Returns
    -------
    ndarray of shape (n_functions,)

    Examples
    --------
    >>> exact_eigenvalues("equal_torus", 5)
    array([0., 1., 1., 1., 1.])
    """
    shape = named_shape(name)
    if not isinstance(shape, Product):
        known = [key for key in SHAPES if isinstance(SHAPES[key], Product)]
        raise ValueError(f"exact eigenvalues are known for {sorted(known)}; got {name!r}.")
    return shape.eigenvalues(n_functions)
