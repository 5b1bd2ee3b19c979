"""Principal components of noise: how large they are, and how many there are."""

from collections.abc import Iterable, Iterator

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import svds
from scipy.stats import kurtosis, skew

# This number of columns of larger variance may be as many factors, each of its own size. Their
# variance counts as that of the next column.
SPARED_COLUMNS = 20

# Fewer components cannot be shown to have equal variances.
SHORTEST_TAIL = 3

# The edges of the Marchenko-Pastur law are sharp only for infinitely many columns.
EDGE_SLACK = 1.05


# The largest variance of a principal component of noise, from its size in columns.


def even_edge(total: float, n_dimensions: float, n_samples: int) -> float:
    """Return the edge of the Marchenko-Pastur law, from the variance in all dimensions.

    >>> print(even_edge(800.0, 400, 1600))
    4.5
    """
    return float(total / n_dimensions * (1 + np.sqrt(n_dimensions / n_samples)) ** 2)


def uneven_edge(left: np.ndarray, share: np.ndarray, *, n_samples: int, n_measured: int) -> float:
    """Return the largest variance of a component of noise, uneven between columns.

    The principal components of independent noise have variances below the edge of the generalised
    Marchenko-Pastur law (Silverstein and Choi, 1995), the minimum of ``1/c + sum(variance / (1 -
    variance * c)) / n_samples`` over c. For equal variances this is the edge of the
    Marchenko-Pastur law.

    Leading components hold a part of the noise of each column, the leverage of the column. With the
    other part, its share, the column counts in the sum, and its variance is what is left divided by
    its share.

    >>> even, uneven = np.full(400, 2.0), np.repeat([1.0, 3.0], 200)
    >>> for left in (even, uneven):
    ...     edge = uneven_edge(left, np.ones(400), n_samples=1600, n_measured=1600)
    ...     print(f"{edge:.3f}")
    4.500
    5.657

    Shapes: left (n_features,), share (n_features,).
    """
    share = np.maximum(share, np.finfo(float).eps)
    variance = _without_sampling_error(left / share, share, n_measured)
    largest = np.sort(variance)[-1 - min(SPARED_COLUMNS, len(variance) - 1)]
    if largest <= 0:
        return 0.0
    relative = np.minimum(1.0, variance / largest)
    weight = share * relative / n_samples

    def edge(c: float) -> float:
        return 1 / c + float((weight / (1 - relative * c)).sum())

    # The error of the minimum is of the order of the square of that of its place.
    options = {"xatol": 1e-4}
    least = minimize_scalar(edge, bounds=(0, 1), method="bounded", options=options)
    return float(largest * float(least.fun))


def _without_sampling_error(variance: np.ndarray, share: np.ndarray, n_measured: int) -> np.ndarray:
    """Return measured variances, drawn towards their mean.

    They then vary as much as the true ones: those of Gaussian noise are measured with a relative
    error of ``sqrt(2 / n_measured)``.
    """
    mean = np.average(variance, weights=share)
    spread = np.average((variance - mean) ** 2, weights=share)
    error = 2 / n_measured * np.average(variance**2, weights=share)
    true = np.sqrt(max(0.0, 1 - error / spread)) if spread > 0 else 0.0
    return mean + true * (variance - mean)


def left_in_columns(
    samples: np.ndarray, scores: np.ndarray, axes: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield mean squares of columns beyond the first 0, 1, 2, ... components.

    Shapes: samples (n_samples, n_features), scores (n_samples, n_components), axes (n_features,
    n_components).
    """
    left = (samples**2).mean(axis=0)
    along = samples.T @ scores / len(samples)
    squares = scores.T @ scores / len(samples)
    for k, axis in enumerate(axes.T):
        yield np.maximum(0.0, left)
        # What is left of the samples, times the scores of the component.
        inner = along[:, k] - axes[:, :k] @ squares[:k, k]
        left = left - 2 * axis * inner + axis**2 * squares[k, k]


# The number of principal components that are noise, in few columns and in many.


def noise_components(scores: Iterable[np.ndarray], variance: np.ndarray, n_samples: int) -> int:
    """Return how many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and together they must
    have the kurtosis of a Gaussian (Mardia, 1970): a tail of equal variances that is not Gaussian
    is structure, such as the coordinates of a sphere.

    Shapes: scores (n_rows, n_components), variance (n_components,).
    """
    # Mardia's kurtosis of the last 1, 2, ... components: the mean fourth power of the length in
    # those components, in units of their standard deviations.
    kurtosis = np.zeros(len(variance))
    for block in scores:
        squares = np.cumsum(block[:, ::-1] ** 2 / variance[::-1], axis=1)
        kurtosis += (squares**2).sum(axis=0) / n_samples
    longest = 0
    for m in range(SHORTEST_TAIL, len(variance) + 1):
        expected, error = gaussian_kurtosis(m, n_samples)
        # It may differ by 3 standard errors of its estimate, and by a hundredth of it.
        gaussian = abs(kurtosis[m - 1] - expected) < 3 * error + 0.01 * expected
        tail, ratio = variance[-m:], np.sqrt(m / n_samples)
        highest = EDGE_SLACK * tail.mean() * (1 + ratio) ** 2
        lowest = tail.mean() * max(0, 1 - ratio) ** 2 / EDGE_SLACK
        if gaussian and tail[0] < highest and tail[-1] > lowest:
            longest = m
    return longest


def gaussian_kurtosis(n_components: int, n_samples: int) -> tuple[float, float]:
    """Return the kurtosis of a Gaussian (Mardia, 1970), and its standard error.

    The error is that of the estimate from `n_samples` samples.
    """
    of_many = n_components * (n_components + 2)
    # Lengths are measured by the samples' own covariance, which shortens the longest.
    expected = of_many * (n_samples - 1) / (n_samples + 1)
    return expected, np.sqrt(8 * of_many / n_samples)


def first_noise_component(
    samples: np.ndarray, axes: np.ndarray, *, variance: np.ndarray, rest: np.ndarray, n_samples: int
) -> int | None:
    """Return the index of the first component that is noise; None if none of them is.

    In many columns the last components are not computed. The components from k on are noise if
    component k lies below the edge of the Marchenko-Pastur law, and if the samples are uncorrelated
    with each other in all of them: on a manifold, samples near each other have similar values of
    every component. The edge is that of even noise whose number of dimensions is measured, since
    pixels may be constant or correlated, or that of noise of unequal size in columns, whichever is
    larger.

    Shapes: samples (n_compared, n_features), axes (n_features, n_components), variance
    (n_components,), rest (n_components + 1,).
    """
    scores, inner = samples @ axes, samples @ samples.T
    share = np.ones(len(axes))
    for first, left in enumerate(left_in_columns(samples, scores, axes)):
        cosines = _cosines_of_others(inner)
        # The mean square of the cosines of random vectors is the inverse of the number of
        # dimensions.
        square = np.vdot(cosines, cosines) / (len(cosines) * (len(cosines) - 1))
        n_dimensions = 1 / square if square > 0 else 0.0
        # In fewer dimensions, samples of noise have large cosines by chance.
        if n_dimensions >= 50:
            even = even_edge(rest[first], n_dimensions, n_samples)
            # Variances of columns in some samples, scaled to the variance in all.
            scaled = left * (rest[first] / max(left.sum(), np.finfo(float).tiny))
            uneven = uneven_edge(scaled, share, n_samples=n_samples, n_measured=len(samples))
            # Cosines of noise are normal: among 300 others there is one so large once in 6,000
            # times. A few samples may be nearly copies.
            similar = (np.abs(cosines) > 5 / np.sqrt(n_dimensions)).any(axis=1)
            below = variance[first] < EDGE_SLACK * max(even, uneven)
            if below and similar.mean() < 0.05:
                return first
        inner -= np.outer(scores[:, first], scores[:, first])
        share = share - axes[:, first] ** 2
    return None


def _cosines_of_others(inner: np.ndarray) -> np.ndarray:
    """Return the cosines between samples; 0 for a sample with itself or a copy."""
    length = np.sqrt(np.maximum(np.diag(inner), np.finfo(float).tiny))
    cosines = inner / np.outer(length, length)
    # Copies may have the same noise.
    is_copy = cosines > 1 - 1e-9
    np.fill_diagonal(is_copy, True)
    return np.where(is_copy, 0.0, cosines)


# Principal components of noise whose size differs between columns or samples.


def components_beside_noise(samples: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return the principal components that are more than noise, as indices.

    Random signs turn structure into noise and leave noise as it is, whatever its size in each
    entry. The components from k on are noise if the variance of component k is hardly larger than
    that of any component of the same samples, less the components before k, with random signs. A
    factor that shows in one column only looks the same. It is told from noise by its distribution,
    which is not Gaussian.

    Shapes: samples (n_samples, n_features), centred; axes (n_features, n_components).
    """
    scores = samples @ axes
    everything = np.arange(axes.shape[1])
    first = _first_of_random_sign(samples, scores, axes)
    if first is None or not _fills_its_directions(scores[:, first:]):
        return everything
    is_signal = everything < first
    is_signal[first:] = ~_have_shape_of_noise(scores[:, first:])
    return np.flatnonzero(is_signal)


def _first_of_random_sign(samples: np.ndarray, scores: np.ndarray, axes: np.ndarray) -> int | None:
    """Return the first component that has no more variance than random signs leave."""
    # Fewer components may be as many factors, each of its own size.
    last = axes.shape[1] - 20

    def is_noise(first: int) -> bool:
        return _is_of_random_sign(samples, scores, axes, first)

    # Signal comes first: look at components 0, 1, 3, 7, ... and then in between.
    signal, first = -1, 0
    while first <= last and not is_noise(first):
        signal, first = first, max(first + 1, min(2 * first + 1, last))
    if first > last:
        return None
    while first - signal > 1:
        middle = (signal + first) // 2
        signal, first = (signal, middle) if is_noise(middle) else (middle, first)
    return first


def _is_of_random_sign(
    samples: np.ndarray, scores: np.ndarray, axes: np.ndarray, first: int
) -> bool:
    """Return whether a component has hardly more variance than random signs leave."""
    rng = np.random.default_rng(0)
    rest = samples - scores[:, :first] @ axes[:, :first].T
    signs = rng.choice([-1.0, 1.0], size=rest.shape)
    start = rng.normal(size=min(rest.shape))
    # Both from these samples: fewer of them make the largest variance larger.
    own, largest = (
        svds(one, k=1, v0=start, tol=1e-3, return_singular_vectors=False)[0]
        for one in (rest, rest * signs)
    )
    # Random signs spread the variance of a component over all. On noise whose size varies 15-fold
    # between columns, and on Poisson noise, the first component has up to 1.2 times the variance of
    # any one that is left; signal has twice as much.
    return bool(own**2 < 1.3 * largest**2)


def _fills_its_directions(scores: np.ndarray) -> bool:
    """Return whether all components together have a Gaussian's kurtosis, or a larger one.

    The coordinates of a sphere have a smaller one. Noise whose size differs between samples has a
    larger one.
    """
    n_samples, n_components = scores.shape
    lengths = (scores**2 / (scores**2).mean(axis=0)).sum(axis=1)
    gaussian, error = gaussian_kurtosis(n_components, n_samples)
    return bool((lengths**2).mean() > gaussian - 3 * error)


def _have_shape_of_noise(scores: np.ndarray) -> np.ndarray:
    """Return which components are Gaussian but for the size of the noise in each sample."""
    squares = scores**2 / (scores**2).mean(axis=0)
    others = squares.sum(axis=1, keepdims=True) - squares
    even = scores / np.sqrt(np.maximum(others, np.finfo(float).tiny))
    shape = kurtosis(even)
    # A Gaussian has 0. The kurtosis of an interval is -1.2, those of a Laplace and an exponential
    # distribution 3 and 6, and the skewness of the latter 2. With 1,000 samples, the standard
    # errors are .15 and .08.
    return (np.abs(skew(even)) < 0.5) & (shape > -0.6) & (shape < 1.5)
