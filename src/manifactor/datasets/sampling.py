"""Samples of a named shape: uniform, uneven, with copies, outliers or noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_count, require_number
from manifactor.datasets.products import Samples, Shape, Truth
from manifactor.datasets.shapes import named_shape

# The paper's noisy rectangles: columns that carry noise, and its standard deviation.
NOISY_COLUMNS: dict[str, Sequence[int]] = {"rectangle_z": [2], "rectangle_xyz": [0, 1, 2]}
PAPER_NOISE = 0.05


@dataclass(frozen=True)
class SamplingSettings:
    """Settings of the samplings other than "uniform"."""

    # "weighted": the density falls from 1 to this along each factor, a fivefold range.
    lowest_density: float = 0.2
    # "dependent": the density is 1 + 0.6 u v, which correlates two intervals by 0.2.
    dependence: float = 0.6
    # Candidates drawn for each sample of an uneven density. "weighted" keeps 60 % of them for each
    # interval: one draw is enough for two intervals, others repeat it.
    oversampling: int = 4
    # "duplicates": one sample in 10 is a copy.
    samples_per_copy: int = 10
    # "outliers": one sample in 100 lies in a box twice as wide as the shape.
    samples_per_outlier: int = 100
    outlier_box: float = 2


def _uniform(shape: Shape, n_samples: int, rng, *, settings: SamplingSettings) -> Samples:
    """Draw samples that are uniform in the latents."""
    return shape(n_samples, rng)


def _weighted(shape: Shape, n_samples: int, rng, *, settings: SamplingSettings) -> Samples:
    """Draw from a product of densities, one along the first latent of each factor."""
    lowest = settings.lowest_density

    def density(u: np.ndarray) -> np.ndarray:
        hill = np.cos(np.pi / 2 * u) ** 2
        return np.prod(lowest + (1 - lowest) * hill, axis=0)

    return _thinned(shape, n_samples, rng, density, settings.oversampling)


def _dependent(shape: Shape, n_samples: int, rng, *, settings: SamplingSettings) -> Samples:
    """Draw from a density that makes neighbouring factors dependent."""
    dependence = settings.dependence

    def density(u: np.ndarray) -> np.ndarray:
        pairs = 1 + dependence * u[1:] * u[:-1]
        largest = (1 + dependence) ** (len(u) - 1)
        return np.prod(pairs, axis=0) / largest

    return _thinned(shape, n_samples, rng, density, settings.oversampling)


def _thinned(shape: Shape, n_samples: int, rng, density: Callable, oversampling: int) -> Samples:
    """Draw by rejection from a density of the factors' first latents in [-1, 1]."""
    kept: list[Samples] = []
    while sum(len(X) for X, _ in kept) < n_samples:
        X, truth = shape(oversampling * n_samples, rng)
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


def _duplicates(shape: Shape, n_samples: int, rng, *, settings: SamplingSettings) -> Samples:
    """Draw samples of which the last are copies of others."""
    X, truth = shape(n_samples, rng)
    n_copies = n_samples // settings.samples_per_copy
    n_distinct = n_samples - n_copies
    source = np.arange(n_samples)
    source[n_distinct:] = rng.randint(n_distinct, size=n_copies)
    return X[source], tuple(t[source] for t in truth)


def _outliers(shape: Shape, n_samples: int, rng, *, settings: SamplingSettings) -> Samples:
    """Draw samples and move a few into a box around the shape; their latents stay."""
    X, truth = shape(n_samples, rng)
    n_outliers = n_samples // settings.samples_per_outlier
    far = rng.permutation(n_samples)[:n_outliers]
    highest = X.max(axis=0)
    lowest = X.min(axis=0)
    centre = (highest + lowest) / 2
    half_width = (highest - lowest) / 2
    direction = rng.uniform(-1, 1, size=X[far].shape)
    X = X.copy()
    X[far] = centre + settings.outlier_box * half_width * direction
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
    settings: SamplingSettings = SamplingSettings(),
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
    settings : SamplingSettings
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
    _require_valid(n_samples, noise, sampling)
    rng = check_random_state(random_state)
    X, truth = SAMPLINGS[sampling](shape, n_samples, rng, settings=settings)
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


def _require_valid(n_samples: int, noise: float | None, sampling: str) -> None:
    require_count("n_samples", n_samples, low=1, high=10**9)
    if noise is not None:
        require_number("noise", noise, low=0)
    if sampling not in SAMPLINGS:
        raise ValueError(f"`sampling` must be one of {sorted(SAMPLINGS)}; got {sampling!r}.")


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
