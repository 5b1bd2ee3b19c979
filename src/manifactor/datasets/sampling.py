"""Samples of named shapes: uniform, uneven, with copies, outliers or noise; exact spectra."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_choice, require_count, require_number
from manifactor.datasets.products import Product, Samples, Shape, Truth, thinned
from manifactor.datasets.shapes import SHAPES


def named_shape(name: str) -> Shape:
    """Return the shape of this name."""
    if name not in SHAPES:
        near = ", ".join(get_close_matches(str(name), SHAPES) or sorted(SHAPES))
        raise ValueError(f"the shape must be one of `datasets.SHAPES`, like {near}; got {name!r}.")
    return SHAPES[name]


def exact_eigenvalues(name: str, n_functions: int) -> np.ndarray:
    """Return the lowest Laplacian eigenvalues of a product shape, the first of which is 0.

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
    named_shape(name)
    products = {key: shape for key, shape in SHAPES.items() if isinstance(shape, Product)}
    spectra = {key: shape.eigenvalues for key, shape in products.items() if shape.exact}
    if name not in spectra:
        raise ValueError(f"exact eigenvalues are known for {sorted(spectra)}; got {name!r}.")
    return spectra[name](n_functions)


# The columns of the paper's noisy rectangles that carry noise.
NOISY_COLUMNS = {"rectangle_z": [2], "rectangle_xyz": [0, 1, 2]}


def _uneven(density: Callable, shape: Shape, n_samples: int, rng) -> Samples:
    """Draw from a density of the factors' first latents in [-1, 1], at most 1."""

    def at(_, truth: Truth) -> np.ndarray:
        return density(np.array([*map(_first_latent, truth)]))

    return thinned(shape, at, n_samples, rng)


def _weighted(u: np.ndarray) -> np.ndarray:
    """Return a product of densities, one along each factor."""
    # It falls from 1 to 0.2 along each.
    return np.prod(0.2 + 0.8 * np.cos(np.pi / 2 * u) ** 2, axis=0)


def _dependent(u: np.ndarray) -> np.ndarray:
    """Return a density that makes neighbouring factors dependent."""
    # Two intervals are correlated by 0.2.
    return np.prod(1 + 0.6 * u[1:] * u[:-1], axis=0) / 1.6 ** (len(u) - 1)


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
    source, n_copies = np.arange(n_samples), n_samples // 10
    source[n_samples - n_copies :] = rng.randint(n_samples - n_copies, size=n_copies)
    return X[source], tuple(t[source] for t in truth)


def _outliers(shape: Shape, n_samples: int, rng) -> Samples:
    """Draw samples and move a few into a box around the shape; their latents stay."""
    X, truth = shape(n_samples, rng)
    far = rng.permutation(n_samples)[: n_samples // 100]
    highest, lowest = X.max(axis=0), X.min(axis=0)
    X = X.copy()
    X[far] = (highest + lowest) / 2 + (highest - lowest) * rng.uniform(-1, 1, size=X[far].shape)
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
        scale = 0.05 if noise is None else noise
        X[:, columns] += rng.normal(scale=scale, size=(n_samples, len(columns)))
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
    return X @ np.linalg.qr(rng.normal(size=(dimension, n_features)))[0].T
