"""The named shapes: products, curved and irreducible shapes, with exact latents."""

import numpy as np

from manifactor.datasets.products import (
    Interval,
    Product,
    Samples,
    Shape,
    Sphere,
    circle,
    product,
)

# The long side of the paper's rectangle, torus and cube. Its ratio to the other sides
# is irrational, so that no two factors share an eigenvalue.
PAPER_SIDE = 1 + np.sqrt(np.pi)

# Two sides of length 1 with 60 degrees between them.
SIDES_AT_60_DEGREES = np.array(
    [
        [1.0, 0.0],
        [0.5, np.sqrt(3) / 2],
    ]
)


def _ring(angle: np.ndarray) -> np.ndarray:
    """Return points of the unit circle, (n_samples, 2)."""
    return np.c_[np.cos(angle), np.sin(angle)]


def _two_angles(n_samples: int, rng) -> np.ndarray:
    """Draw uniform angles, (2, n_samples)."""
    return rng.uniform(0, 2 * np.pi, size=(2, n_samples))


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
    # The chords of the fine grid are as long as its arcs to 2e-7, so that their sums
    # are a table of arc lengths, inverted by interpolation.
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
    n_samples: int,
    rng,
    *,
    length: float = 3.0,
    amplitude: float = 0.15,
) -> Samples:
    """Draw a cylinder with a radius that varies along it: nearly a product."""
    t, turn = rng.uniform(size=(2, n_samples))
    radius = 1 + amplitude * np.sin(2 * np.pi * t)
    ring = _ring(turn * (2 * np.pi))
    X = np.c_[length * t, radius[:, None] * ring]
    return X, (t[:, None], ring)


def robot_arm(
    n_samples: int,
    rng,
    *,
    second_link: float = 0.6,
) -> Samples:
    """Draw two markers on a planar arm with two full-turn joints.

    The truth is the direction of each link. The first link has length 1.
    """
    first, second = _two_angles(n_samples, rng)
    elbow = _ring(first)
    link = _ring(second)
    return np.c_[elbow, elbow + second_link * link], (elbow, link)


def turning_objects(
    n_samples: int,
    rng,
    *,
    shape: tuple[int, int] = (16, 24),
    variance_ratio: float = 5,
) -> Samples:
    """Draw images of two objects that turn independently: additive, no product.

    The first object has `variance_ratio` times the variance of the second.
    """
    angles = _two_angles(n_samples, rng)
    n_rows, n_columns = shape
    columns = np.linspace(-1.5, 1.5, n_columns)
    rows = np.linspace(-1, 1, n_rows)
    pixel = np.stack(np.meshgrid(columns, rows), axis=-1)
    left, right = [-0.6, 0], [0.6, 0]
    first = _turned_blobs(pixel - left, angles[0])
    second = _turned_blobs(pixel - right, angles[1])
    first_variance = first.var(axis=0).sum()
    second_variance = second.var(axis=0).sum()
    X = first / np.sqrt(first_variance)
    X = X + second / np.sqrt(variance_ratio * second_variance)
    return X, tuple(_ring(angle) for angle in angles)


def _turned_blobs(
    pixel: np.ndarray,
    angle: np.ndarray,
    *,
    blob_area: float = 0.08,
) -> np.ndarray:
    """Return images of three blobs turned about the origin, (n_samples, n_pixels)."""
    # Unequal in radius, angle and weight: an object with a symmetry would look the same
    # after less than a full turn.
    blobs = [
        (0.55, 0.0, 1.0),
        (0.4, 2.0, 0.7),
        (0.3, 4.0, 0.5),
    ]
    flat = pixel.reshape(-1, 2)
    images = np.zeros((len(angle), len(flat)))
    for radius, start, weight in blobs:
        centre = radius * _ring(angle + start)
        offset = flat - centre[:, None]
        squared = (offset**2).sum(axis=2)
        images = images + weight * np.exp(-squared / blob_area)
    return images


def disk(n_samples: int, rng) -> Samples:
    """Draw the unit disk, which is irreducible."""
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    # The square root makes the samples uniform in area.
    radius = np.sqrt(rng.uniform(size=n_samples))
    X = radius[:, None] * _ring(angle)
    return X, (X,)


def triangle(n_samples: int, rng) -> Samples:
    """Draw an equilateral triangle of side 1, which is irreducible."""
    # The gaps between sorted uniform numbers are uniform barycentric coordinates.
    u = rng.uniform(size=(n_samples, 2))
    low, high = np.sort(u, axis=1).T
    X = np.c_[low, high - low] @ SIDES_AT_60_DEGREES
    return X, (X,)


def parallelogram(n_samples: int, rng) -> Samples:
    """Draw a rhombus of side 1 with an angle of 60 degrees, which is irreducible."""
    X = rng.uniform(size=(n_samples, 2)) @ SIDES_AT_60_DEGREES
    return X, (X,)


def moebius(n_samples: int, rng) -> Samples:
    """Draw a nearly flat Moebius band in R^4: a product locally but not globally."""
    turn, height = rng.uniform(size=(2, n_samples))
    angle = turn * (2 * np.pi)
    height = height - 0.5
    # Half a turn of the strip for each full turn of the circle glues it with a twist.
    twist = _ring(angle / 2)
    X = np.c_[_ring(angle), height[:, None] * twist]
    return X, (X,)


def klein_bottle(n_samples: int, rng) -> Samples:
    """Draw a nearly flat Klein bottle in R^5: a product locally but not globally."""
    u, v = _two_angles(n_samples, rng)
    # One full turn of u reflects sin v.
    twisted = np.sin(v)[:, None] * _ring(u / 2)
    X = np.c_[2 * _ring(u), np.cos(v), twisted]
    return X, (X,)


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
    "disk": disk,
    "triangle": triangle,
    "parallelogram": parallelogram,
    "moebius": moebius,
    "klein_bottle": klein_bottle,
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
        raise ValueError(
            f"exact eigenvalues are known for {sorted(known)}; got {name!r}."
        )
    return shape.eigenvalues(n_functions)
