"""The named shapes with exact latents, and samples of them: uniform, uneven, with noise."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_choice, require_count, require_number
from manifactor.datasets.charts import annulus, ellipse, vase
from manifactor.datasets.not_products import (
    PROFILES,
    Cloud,
    Conformal,
    CutCorner,
    Ellipsoid,
    Frustum,
    Hole,
    LatticeTorus,
    Motion,
    Revolution,
    Scene,
    SolidEllipsoid,
    Stadium,
    klein_bottle,
    moebius,
    parallelogram,
    shifting,
    triangle,
    turning,
    turning_objects,
)
from manifactor.datasets.products import (
    Beta,
    Bumps,
    Disk,
    Exponential,
    Gap,
    Interval,
    Normal,
    Samples,
    Shape,
    Sphere,
    Truth,
    Uneven,
    VonMises,
    Wells,
    circle,
    product,
    projective_plane,
    ring,
    rotations,
    star,
    thinned,
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
    """Draw two markers on a planar arm with links of 1 and .6, whose directions are the truth."""
    first, second = rng.uniform(0, 2 * np.pi, size=(2, n_samples))
    elbow, link = ring(first), ring(second)
    return np.c_[elbow, elbow + 0.6 * link], (elbow, link)


# Two objects beside each other, and nearer, so that their images overlap.
APART = ((-0.5, 0.0), (0.5, 0.0))
OVERLAPPING = ((-0.25, 0.0), (0.25, 0.0))
# Three smaller objects.
THREE_CENTRES = ((-0.55, -0.5), (0.55, -0.5), (0.0, 0.5))


def scene(motions: Sequence[Motion], ratio: float, centres=None, **changes) -> Scene:
    """Return a scene of two or three objects, with the ratio of their variances."""
    if centres is None:
        centres = APART if len(motions) == 2 else THREE_CENTRES
    size = 0.7 if len(motions) == 2 else 0.5
    objects = [(move, at, size) for move, at in zip(motions, centres, strict=True)]
    return Scene(objects, ratio, **changes)


FIELD: dict[str, Mapping[str, Shape]] = {
    # Standard deviations of the factors.
    "gaussian": {
        f"gaussian_{'_'.join(map(str, deviations))}": product(*map(Normal, deviations))
        for deviations in (
            *((1, 1.5), (1, 2), (1, 3), (1, 5)),
            *((1, 1.5, 2.25), (1, 2, 4), (1, 3, 5)),
        )
    },
    "soft density": {
        "beta": product(Uneven(Interval(1.6), Beta(2, 5)), Uneven(Interval(), Beta(2, 2))),
        "equal_beta": product(Uneven(Interval(2.0), Beta(2, 2)), Uneven(Interval(), Beta(2, 2))),
        **{
            f"von_mises_torus_{k}": product(
                Uneven(circle(1.6), VonMises(k)), Uneven(circle(), VonMises(k))
            )
            for k in (1, 2)
        },
        **{f"von_mises_cylinder_{k}": product(3.0, Uneven(circle(), VonMises(k))) for k in (1, 2)},
        "bimodal": product(Uneven(Interval(1.6), Bumps(0.16)), 1.0),
        "deep_bimodal": product(Uneven(Interval(1.6), Bumps(0.12)), 1.0),
        "exponential": product(Exponential(1.0), 3.0),
    },
    # Barriers in units of kT.
    "wells": {
        f"{name}_{barrier}": product(
            *(Uneven(circle(radius), Wells(barrier, tilt)) for radius in (1.0, 0.7))
        )
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
        "thin_disk": product(Disk(7.5), 1.0),
        "large_sphere_circle": product(Sphere(10.0), circle()),
    },
    # Ratios of the variances of the objects' images.
    "images of objects": {
        **{f"two_turning_{ratio}": scene((turning, turning), ratio) for ratio in (1, 5, 10, 30)},
        **{
            f"turning_and_shifting_{ratio}": scene((turning, shifting), ratio)
            for ratio in (1, 10, 30)
        },
        "two_shifting": scene((shifting, shifting), 5),
        "overlapping": scene((turning, turning), 5, OVERLAPPING),
        "overlapping_shift": scene((turning, shifting), 3, OVERLAPPING),
        "occluded": scene((turning, turning), 3, OVERLAPPING, occluding=True),
        "noisy_turning": scene((turning, turning), 5, noise=0.5),
        **{
            f"three_objects_{ratio}": scene((turning, shifting, turning), ratio)
            for ratio in (5, 30)
        },
    },
    # Lengths of the gap in per cent of the factor's length.
    "gaps": {
        f"{name}_gap{percent}": product(Uneven(part, Gap(percent / 100, 0.45)), other)
        for percent in (5, 10, 15)
        for name, part, other in (
            ("rectangle", Interval(1.6), Interval()),
            ("cylinder", Interval(4.0), circle()),
            ("torus", circle(1.6), circle()),
        )
    },
    "conformal": {
        "exponential_map": Conformal("exponential", (0.0, 1.0), (0.0, 1.6)),
        "long_exponential_map": Conformal("exponential", (0.0, 1.5), (0.0, 2.5)),
        "square_map": Conformal("square", (0.6, 1.6), (0.0, 1.5)),
        "bend_map": Conformal("bend", (-1.0, 1.0), (-0.6, 0.6)),
        "stereographic_map": Conformal("stereographic", (-1.2, 1.2), (-0.8, 0.8)),
        "mercator_map": Conformal("mercator", (-1.3, 1.3), closed=True),
        "catenoid_map": Conformal("catenoid", (-1.2, 1.2), closed=True),
    },
    # Ratios of the largest to the smallest radius.
    "revolution": {
        f"{profile}_{ratio:g}": Revolution(profile, ratio, 3 * ratio)
        for profile in PROFILES
        for ratio in (1.5, 2.0, 3.0)
    },
    "unusual factors": {
        "star_circle": product(star, circle(0.8)),
        "projective_plane_interval": product(projective_plane, 2.2),
        "rotations_interval": product(rotations, 4.0),
    },
    "one factor": {
        "cloud2": Cloud(2, 0.0),
        "cloud3": Cloud(3, 0.0),
        "correlated_cloud2": Cloud(2, 0.3),
        "correlated_cloud3": Cloud(3, 0.3),
        "ellipsoid": Ellipsoid((1.0, 1.5, 2.0)),
        "long_ellipsoid": Ellipsoid((1.0, 2.0, 3.0)),
        "solid_ellipsoid": SolidEllipsoid((1.0, 1.5, 2.0)),
        "frustum": Frustum(0.5, 2.0),
        "long_frustum": Frustum(0.4, 10.0),
    },
    "near products": {
        "cut_corner": CutCorner((1.6, 1.0), 0.5),
        "small_cut_corner": CutCorner((1.6, 1.0), 0.3),
        "hole": Hole((1.6, 1.0), 0.2),
        "large_hole": Hole((1.6, 1.0), 0.3),
        "stadium": Stadium((2.5, 1.0)),
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
    "disk": product(Disk()),
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


def named_shape(name: str) -> Shape:
    """Return the shape of this name."""
    if name not in SHAPES:
        near = ", ".join(get_close_matches(str(name), SHAPES) or sorted(SHAPES))
        raise ValueError(f"the shape must be one of `datasets.SHAPES`, like {near}; got {name!r}.")
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
    known: dict[str, Any] = {
        key: shape for key, shape in SHAPES.items() if getattr(shape, "exact", False)
    }
    if named_shape(name) not in known.values():
        raise ValueError(f"exact eigenvalues are known for {sorted(known)}; got {name!r}.")
    return known[name].eigenvalues(n_functions)


# The paper's noisy rectangles: columns that carry noise, and its standard deviation.
NOISY_COLUMNS: dict[str, Sequence[int]] = {"rectangle_z": [2], "rectangle_xyz": [0, 1, 2]}
PAPER_NOISE = 0.05


def _uneven(density: Callable, shape: Shape, n_samples: int, rng) -> Samples:
    """Draw from a density of the factors' first latents in [-1, 1], at most 1."""

    def at(_, truth: Truth) -> np.ndarray:
        return density(np.array([*map(_first_latent, truth)]))

    return thinned(shape, at, n_samples, rng)


def _weighted(u: np.ndarray) -> np.ndarray:
    """Return a product of densities, one along each factor."""
    hill = np.cos(np.pi / 2 * u) ** 2
    # The density falls from 1 to 0.2 along each factor, a fivefold range.
    return np.prod(0.2 + (1 - 0.2) * hill, axis=0)


def _dependent(u: np.ndarray) -> np.ndarray:
    """Return a density that makes neighbouring factors dependent."""
    # Two intervals are correlated by 0.2.
    pairs = 1 + 0.6 * u[1:] * u[:-1]
    largest = (1 + 0.6) ** (len(u) - 1)
    return np.prod(pairs, axis=0) / largest


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
    "uniform": lambda shape, n_samples, rng: shape(n_samples, rng),
    "weighted": partial(_uneven, _weighted),
    "dependent": partial(_uneven, _dependent),
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
