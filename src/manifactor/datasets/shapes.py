"""The named shapes with exact latents, and samples of them: uniform, uneven, with noise."""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_choice, require_count, require_number
from manifactor.datasets.field import FIELD
from manifactor.datasets.not_products import klein_bottle, moebius, parallelogram, triangle
from manifactor.datasets.objects import turning_objects
from manifactor.datasets.products import (
    Disk,
    Interval,
    Product,
    Samples,
    Shape,
    Sphere,
    Truth,
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
    X = np.c_[3.0 * t, radius[:, None] * around]
    return X, (t[:, None], around)


def robot_arm(n_samples: int, rng) -> Samples:
    """Draw two markers on a planar arm with two full-turn joints.

    The truth is the direction of each link. The links have lengths 1 and 0.6.
    """
    first, second = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    elbow, link = ring(first), ring(second)
    return np.c_[elbow, elbow + 0.6 * link], (elbow, link)


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


# The paper's noisy rectangles: columns that carry noise, and its standard deviation.
NOISY_COLUMNS: dict[str, Sequence[int]] = {"rectangle_z": [2], "rectangle_xyz": [0, 1, 2]}
PAPER_NOISE = 0.05


def _uniform(shape: Shape, n_samples: int, rng) -> Samples:
    """Draw samples that are uniform in the latents."""
    return shape(n_samples, rng)


def _weighted(shape: Shape, n_samples: int, rng) -> Samples:
    """Draw from a product of densities, one along the first latent of each factor."""

    def density(u: np.ndarray) -> np.ndarray:
        hill = np.cos(np.pi / 2 * u) ** 2
        # The density falls from 1 to 0.2 along each factor, a fivefold range.
        return np.prod(0.2 + (1 - 0.2) * hill, axis=0)

    return _thinned(shape, n_samples, rng, density)


def _dependent(shape: Shape, n_samples: int, rng) -> Samples:
    """Draw from a density that makes neighbouring factors dependent."""

    def density(u: np.ndarray) -> np.ndarray:
        # Two intervals are correlated by 0.2.
        pairs = 1 + 0.6 * u[1:] * u[:-1]
        largest = (1 + 0.6) ** (len(u) - 1)
        return np.prod(pairs, axis=0) / largest

    return _thinned(shape, n_samples, rng, density)


def _thinned(shape: Shape, n_samples: int, rng, density: Callable) -> Samples:
    """Draw by rejection from a density of the factors' first latents in [-1, 1]."""
    kept: list[Samples] = []
    while sum(len(X) for X, _ in kept) < n_samples:
        # "weighted" keeps 60 % of the candidates for each interval: one draw is enough for two
        # intervals, others repeat it.
        X, truth = shape(4 * n_samples, rng)
        latents = np.array([_first_latent(t) for t in truth])
        # The density is at most 1, so that it is the probability of keeping a sample.
        keep = rng.uniform(size=len(X)) < density(latents)
        kept_truth = tuple(t[keep] for t in truth)
        kept.append((X[keep], kept_truth))
    X = np.vstack([X for X, _ in kept])[:n_samples]
    blocks = zip(*(truth for _, truth in kept), strict=True)
    return X, tuple(np.vstack(block)[:n_samples] for block in blocks)


def _first_latent(truth: np.ndarray) -> np.ndarray:
    """Return a factor's first latent, scaled to [-1, 1]."""
    first = truth[:, 0]
    if truth.shape[1] > 1:
        return first
    if first.min() < 0 or first.max() > 1:
        raise ValueError(
            "the samplings 'weighted' and 'dependent' need latents between 0 and 1; "
            "those of this shape are not bounded. Choose another shape or sampling."
        )
    return 2 * first - 1


def _duplicates(shape: Shape, n_samples: int, rng) -> Samples:
    """Draw samples of which the last are copies of others."""
    X, truth = shape(n_samples, rng)
    n_copies = n_samples // 10
    n_distinct = n_samples - n_copies
    source = np.arange(n_samples)
    source[n_distinct:] = rng.randint(n_distinct, size=n_copies)
    return X[source], tuple(t[source] for t in truth)


def _outliers(shape: Shape, n_samples: int, rng) -> Samples:
    """Draw samples and move a few into a box around the shape; their latents stay."""
    X, truth = shape(n_samples, rng)
    n_outliers = n_samples // 100
    far = rng.permutation(n_samples)[:n_outliers]
    highest, lowest = X.max(axis=0), X.min(axis=0)
    centre, half_width = (highest + lowest) / 2, (highest - lowest) / 2
    direction = rng.uniform(-1, 1, size=X[far].shape)
    X = X.copy()
    X[far] = centre + 2 * half_width * direction
    return X, truth


SAMPLINGS: dict[str, Callable[..., Samples]] = {
    "uniform": _uniform,
    "weighted": _weighted,
    "dependent": _dependent,
    "duplicates": _duplicates,
    "outliers": _outliers,
}


def sample(
    name: str,
    n_samples: int,
    *,
    noise: float | None = None,
    ambient_dimension: int | None = None,
    sampling: str = "uniform",
    random_state=None,
) -> tuple[np.ndarray, Truth]:
    """Draw samples of a shape and the exact latents behind them.

    Parameters
    ----------
    name : str
        A key of `SHAPES`.
    n_samples : int
    noise : float or None
        Standard deviation of Gaussian noise, in units of the shape, added to every
        coordinate after the rotation. For "rectangle_z" and "rectangle_xyz", noise is
        added to z and to x, y, z only, and None means 0.05.
    ambient_dimension : int or None
        Rotate the shape into a random subspace of R^ambient_dimension.
    sampling : str
        A key of `SAMPLINGS`. "uniform": uniform in the latents; "weighted": the density
        along each factor varies fivefold; "dependent": the density makes neighbouring
        factors dependent; "duplicates": a tenth of the samples are copies of others;
        "outliers": one sample in a hundred is drawn from a box around the shape.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    truth : tuple of ndarray of shape (n_samples, c_i)
        One for each true factor: an interval has 1 column, a circle 2 (cosine and
        sine), a sphere 3.

    Examples
    --------
    >>> X, truth = sample("torus", 100, random_state=0)
    >>> X.shape, [t.shape for t in truth]
    ((100, 4), [(100, 2), (100, 2)])
    """
    shape = named_shape(name)
    require_count("n_samples", n_samples, low=1, high=10**9)
    if noise is not None:
        require_number("noise", noise, low=0)
    require_choice("sampling", sampling, sorted(SAMPLINGS))
    rng = check_random_state(random_state)
    X, truth = SAMPLINGS[sampling](shape, n_samples, rng)
    columns = NOISY_COLUMNS.get(name)
    if columns is not None:
        scale = PAPER_NOISE if noise is None else noise
        size = (n_samples, len(columns))
        X[:, columns] += rng.normal(scale=scale, size=size)
    # Other noise comes after the rotation: it must fill the ambient space.
    if ambient_dimension is not None:
        X = rotated_into(X, ambient_dimension, rng)
    if columns is None and noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    return X, truth


def rotated_into(X: np.ndarray, dimension: int, rng) -> np.ndarray:
    """Return samples in a random subspace of a larger space, (n_samples, dimension)."""
    n_features = X.shape[1]
    if dimension < n_features:
        raise ValueError(
            f"`ambient_dimension` must be at least {n_features} for this shape; got {dimension}."
        )
    # The Q of a normal matrix is an orthonormal frame without preferred directions.
    normal = rng.normal(size=(dimension, n_features))
    frame, _ = np.linalg.qr(normal)
    return X @ frame.T
