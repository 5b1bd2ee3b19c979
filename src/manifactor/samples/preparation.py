"""Samples to prepared samples: a function of every column, and components of noise removed.

In many components of noise, all distances are nearly equal. In many columns, such as those of
images, components that distances between neighbours do not depend on are removed, too.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import svds
from scipy.stats import kurtosis, skew
from sklearn.utils import gen_batches

from manifactor._support.parameters import Choice
from manifactor._support.threads import one_blas_thread, over_cores

T = TypeVar("T")

PREPARATIONS = ("auto", "none")

# In more columns, the covariance costs more than all that follows: the leading components are
# computed without it.
MOST_COLUMNS = 1000

# Leading components that are computed at most: more would cost about as much as they save.
MOST_COMPONENTS = 128

# Distances in so few columns cost little: there only noise is removed.
FEW_COLUMNS = 64

# Components of less variance, relative to the first, are rounding.
RANK_TOLERANCE = 1e-12

# This number of columns of larger variance may be as many factors, each of its own size. Their
# variance counts as that of the next column.
SPARED_COLUMNS = 20

# Fewer components cannot be shown to have equal variances.
SHORTEST_TAIL = 3

# The edges of the Marchenko-Pastur law are sharp only for infinitely many columns.
EDGE_SLACK = 1.05


@dataclass(frozen=True)
class PrincipalAxes:
    """Principal components of samples, descending."""

    mean: np.ndarray  # (n_features,)
    axes: np.ndarray  # (n_features, n_components)
    variance: np.ndarray  # (n_components,)
    total: float  # variance in all columns together

    @property
    def rest(self) -> np.ndarray:
        """Variance beyond the first 0, 1, 2, ... components, (n_components + 1,)."""
        return np.maximum(0.0, self.total - np.append(0.0, np.cumsum(self.variance)))

    def leading(self, count: int) -> "PrincipalAxes":
        """Return the first components only."""
        return self.chosen(np.arange(len(self.variance))[:count])

    def chosen(self, kept: np.ndarray) -> "PrincipalAxes":
        """Return some of the components, given by ascending indices."""
        return PrincipalAxes(self.mean, self.axes[:, kept], self.variance[kept], self.total)

    def scores(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield blocks of the samples in the principal axes."""
        return over_blocks(lambda rows: (X[rows] - self.mean) @ self.axes, X)


def all_axes(X: np.ndarray) -> PrincipalAxes:
    """Return all components of samples, (n_samples, n_features), that are not rounding."""
    mean = X.mean(axis=0, dtype=np.float64)

    def squared(rows: slice) -> np.ndarray:
        block = X[rows] - mean
        return block.T @ block

    scatter = sum(over_blocks(squared, X))
    with one_blas_thread():
        variance, axes = np.linalg.eigh(scatter / len(X))
    # `eigh` sorts ascending.
    seen = variance > RANK_TOLERANCE * variance[-1]
    variance, axes = variance[seen][::-1], axes[:, seen][:, ::-1]
    return PrincipalAxes(mean, axes, variance, float(variance.sum()))


def leading_axes(X: np.ndarray, count: int) -> PrincipalAxes:
    """Return the first components of samples by subspace iteration, in blocks of rows."""
    mean = X.mean(axis=0, dtype=np.float64)
    axes = _first_guess(X, mean, count)
    # An error shrinks in each round by the ratio of the first variance left out to that of the
    # component, 4/5 or less where it matters. Only the variances need double precision.
    for _ in range(3):
        axes = np.linalg.qr(axes)[0]
        axes = _covariance_times(X, mean, axes, precision=X.dtype)[0]
    axes = np.linalg.qr(axes)[0]
    image, total = _covariance_times(X, mean, axes)
    # Rayleigh-Ritz; `eigh` sorts ascending.
    variance, turn = np.linalg.eigh(axes.T @ image)
    first = np.arange(len(variance))[::-1][:count]
    return PrincipalAxes(mean, axes @ turn[:, first], variance[first], total)


def _first_guess(X: np.ndarray, mean: np.ndarray, count: int) -> np.ndarray:
    """Return the components of a few samples and random directions, (n_features, m)."""
    rng = np.random.default_rng(0)
    some = centred_rows(X, mean, 4 * count, rng)
    # The right singular vectors from the smaller matrix of inner products.
    squares, left = np.linalg.eigh(some @ some.T)
    seen = squares[-count:] > RANK_TOLERANCE * squares[-1]
    spanned = some.T @ left[:, -count:][:, seen]
    wanted = min(count + 10, *X.shape)
    random = rng.normal(size=(X.shape[1], max(0, wanted - spanned.shape[1])))
    return np.column_stack([spanned, random])


def _covariance_times(X, mean, axes, *, precision: Any = np.float64) -> tuple[np.ndarray, float]:
    """Return the covariance times some vectors, and the variance of all columns."""
    image, total = np.zeros(axes.shape), 0.0
    vectors, level = axes.astype(precision), mean.astype(precision)

    def work(rows: slice) -> tuple[np.ndarray, float]:
        # In the precision of the finer of the two.
        block = X[rows] - level
        return block.T @ (block @ vectors), float(np.vdot(block, block))

    for some_image, some_total in over_blocks(work, X):
        image += some_image
        total += some_total
    return image / len(X), total / len(X)


def centred_rows(
    X: np.ndarray, mean: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return some samples, drawn at random, less the mean: (count, n_features)."""
    rows = rng.choice(len(X), min(count, len(X)), replace=False)
    # In their order: a file is read from its beginning to its end.
    return X[np.sort(rows)].astype(np.float64) - mean


def over_blocks(work: Callable[[slice], T], X: np.ndarray) -> Iterator[T]:
    """Yield `work` of blocks of rows in order, on all cores, one BLAS thread each."""
    # 32 MB each: the samples are never copied as a whole.
    blocks = gen_batches(len(X), max(1, 2**22 // X.shape[1]))
    with one_blas_thread():
        yield from over_cores(work, list(blocks))


def even_edge(total: float, n_dimensions: float, n_samples: int) -> float:
    """Return the edge of the Marchenko-Pastur law, from the variance in all dimensions."""
    return float(total / n_dimensions * (1 + np.sqrt(n_dimensions / n_samples)) ** 2)


def uneven_edge(left: np.ndarray, share: np.ndarray, *, n_samples: int, n_measured: int) -> float:
    """Return the largest variance of a component of noise, uneven between columns.

    It is the edge of the generalised Marchenko-Pastur law (Silverstein and Choi, 1995), the minimum
    of ``1/c + sum(variance / (1 - variance * c)) / n_samples`` over c. A column counts with the
    share of its noise that leading components do not hold.

    Shapes: left (n_features,), share (n_features,).
    """
    share = np.maximum(share, np.finfo(float).eps)
    variance = _without_sampling_error(left / share, share, n_measured)
    largest = np.sort(variance)[-1 - min(SPARED_COLUMNS, len(variance) - 1)]
    if largest <= 0:
        return 0.0
    relative = np.minimum(1.0, variance / largest)
    weight = share * relative / n_samples
    least = minimize_scalar(
        lambda c: 1 / c + float((weight / (1 - relative * c)).sum()),
        bounds=(0, 1),
        method="bounded",
        # The error of the minimum is of the order of the square of that of its place.
        options={"xatol": 1e-4},
    )
    return float(largest * float(least.fun))


def _without_sampling_error(variance: np.ndarray, share: np.ndarray, n_measured: int) -> np.ndarray:
    """Return measured variances, drawn towards their mean to vary as much as the true ones."""
    mean = np.average(variance, weights=share)
    spread = np.average((variance - mean) ** 2, weights=share)
    error = 2 / n_measured * np.average(variance**2, weights=share)
    true = np.sqrt(max(0.0, 1 - error / spread)) if spread > 0 else 0.0
    return mean + true * (variance - mean)


def left_in_columns(
    samples: np.ndarray, scores: np.ndarray, axes: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield mean squares of columns of samples beyond the first 0, 1, 2, ... components."""
    left = (samples**2).mean(axis=0)
    along = samples.T @ scores / len(samples)
    squares = scores.T @ scores / len(samples)
    for k, axis in enumerate(axes.T):
        yield np.maximum(0.0, left)
        # What is left of the samples, times the scores of the component.
        inner = along[:, k] - axes[:, :k] @ squares[:k, k]
        left = left - 2 * axis * inner + axis**2 * squares[k, k]


def noise_components(scores: Iterable[np.ndarray], variance: np.ndarray, n_samples: int) -> int:
    """Return how many of the last principal components are isotropic Gaussian noise.

    Their variances must lie within the edges of the Marchenko-Pastur law, and together they must
    have the kurtosis of a Gaussian (Mardia, 1970), unlike the coordinates of a sphere.
    """
    # Of the last 1, 2, ... components: the mean fourth power of lengths in standard deviations.
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
    """Return Gaussian kurtosis (Mardia, 1970), and the error of its estimate from n samples."""
    of_many = n_components * (n_components + 2)
    # Lengths are measured by the samples' own covariance, which shortens the longest.
    expected = of_many * (n_samples - 1) / (n_samples + 1)
    return expected, np.sqrt(8 * of_many / n_samples)


def first_noise_component(
    samples: np.ndarray, found: PrincipalAxes, *, n_samples: int
) -> int | None:
    """Return the index of the first component that is noise; None if none of them is.

    The components from k on are noise if component k lies below the edge of the Marchenko-Pastur
    law, and if the samples are uncorrelated with each other in all of them: on a manifold, samples
    near each other have similar values. The edge is the larger one of even noise whose number of
    dimensions is measured, since pixels may be constant or correlated, and of uneven noise.
    """
    axes, rest = found.axes, found.rest
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
            below = found.variance[first] < EDGE_SLACK * max(even, uneven)
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


def components_beside_noise(samples: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return the principal components of centred samples that are more than noise, as indices.

    Random signs turn structure into noise and leave noise as it is, whatever its size in each
    entry. The components from k on are noise if the variance of component k is hardly larger than
    that of any component of the rest with random signs. A factor that shows in one column only
    looks the same, but its distribution is not Gaussian.
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
        rng = np.random.default_rng(0)
        rest = samples - scores[:, :first] @ axes[:, :first].T
        signs = rng.choice([-1.0, 1.0], size=rest.shape)
        start = rng.normal(size=min(rest.shape))
        # Both from these samples: fewer of them make the largest variance larger.
        own, largest = (
            svds(one, k=1, v0=start, tol=1e-3, return_singular_vectors=False)[0]
            for one in (rest, rest * signs)
        )
        # Random signs spread the variance of a component over all. On noise whose size varies
        # 15-fold between columns, and on Poisson noise, the first component has up to 1.2 times the
        # variance of any one that is left; signal has twice as much.
        return bool(own**2 < 1.3 * largest**2)

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


def _fills_its_directions(scores: np.ndarray) -> bool:
    """Return whether components have a Gaussian's kurtosis or more; on a sphere they have less."""
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


@dataclass(frozen=True)
class Preparation:
    """The principal components that are kept."""

    mean: np.ndarray  # (n_features,)
    components: np.ndarray  # (n_features, n_kept): principal axes
    reason: str  # which components were dropped, and why
    noise: float = 0.0  # variance in each direction of noise that was dropped

    def __repr__(self) -> str:
        n_columns, n_kept = self.components.shape
        return f"Preparation({n_kept} of {n_columns} principal components kept)"

    def __str__(self) -> str:
        kept = self.components.shape[1]
        return f"{kept} principal component{'' if kept == 1 else 's'}"

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return prepared samples, (n, n_kept)."""
        prepared = np.empty((len(X), self.components.shape[1]))

        def work(rows: slice) -> None:
            prepared[rows] = (X[rows] - self.mean) @ self.components

        deque(over_blocks(work, X), maxlen=0)
        return prepared


def choose_preparation(X: np.ndarray) -> Choice:
    """Choose the preparation of samples, which are read in blocks of rows."""
    n_samples, n_columns = X.shape
    if n_samples < 150:
        return Choice(None, "fewer than 150 samples cannot tell noise from signal")
    if n_columns <= SHORTEST_TAIL:
        return Choice(None, f"noise cannot be told from signal in {n_columns} columns")
    if n_columns > MOST_COLUMNS:
        # Components of nearly as many samples are fitted to their noise.
        most = min(MOST_COMPONENTS, n_samples // 2)
        counts = [*(few for few in (32, 64) if few < most), most]
        return _choose_from_leading(X, (leading_axes(X, count) for count in counts))
    without = Choice(None, "no principal components are isotropic Gaussian noise")
    enough = 250_000
    if n_columns <= FEW_COLUMNS and n_samples > enough:
        # One of each of as many equal runs tells noise from signal. At random places, since values
        # may repeat along the rows; and always the same.
        places = np.arange(enough) + np.random.default_rng(0).random(enough)
        X = X[(places * (n_samples / enough)).astype(int)]
    found = all_axes(X)
    if n_columns > FEW_COLUMNS:
        without = _choose_from_leading(X, [found.leading(MOST_COMPONENTS)])
    return _choose_without_noise(X, found, without) if without.value is None else without


def _choose_without_noise(X: np.ndarray, found: PrincipalAxes, otherwise: Choice) -> Choice:
    """Return the choice without noise, isotropic or uneven; else `otherwise`."""
    n_found, n_columns = len(found.variance), X.shape[1]
    if not n_found:
        return Choice(None, "all samples are equal")
    noise = noise_components(found.scores(X), found.variance, len(X))
    # Nothing sets noise apart from signal where there is no signal.
    if noise == n_found:
        gaussian = Choice(None, "all principal components look like one Gaussian")
        return gaussian if otherwise.value is None else otherwise
    if n_columns <= MOST_COLUMNS:
        # The signs of more samples hardly change a ratio of two variances.
        some = centred_rows(X, found.mean, 3000, np.random.default_rng(0))
        kept = components_beside_noise(some, found.axes)
        if 0 < len(kept) < n_found - noise:
            because = "they have no more variance than with random signs"
            return _without(found.chosen(kept), n_columns, of=n_found, because=because)
    if not noise:
        return otherwise
    of = f"{n_columns}" if n_columns <= n_found else f"{n_found} relevant"
    reason = f"{noise} of {of} principal components are isotropic Gaussian noise and were dropped"
    return _kept(found.leading(n_found - noise), reason, n_noisy=noise)


def _choose_from_leading(X: np.ndarray, leading: Iterable[PrincipalAxes]) -> Choice:
    """Return the choice from more and more leading components, as far as necessary."""
    n_columns = X.shape[1]
    for found in leading:
        if found.total <= 0:
            return Choice(None, "all samples are equal")
        # The kernel then changes by 0.001, where the sampling error of its sums is 0.1, and what is
        # lost of a factor is 30 times smaller than the distance between neighbours.
        needed = _components_of_distances(X, found, 1e-3)
        if needed is not None:
            # Noise may have few dimensions, such as that of few columns rotated into many.
            relevant = found.leading(needed)
            return _choose_without_noise(X, relevant, _without_negligible(relevant, n_columns))
        # 300 samples have 45,000 inner products, whose mean square is then known to 1 %.
        some = centred_rows(X, found.mean, 300, np.random.default_rng(0))
        first = first_noise_component(some, found, n_samples=len(X))
        if first == 0:
            return Choice(None, "all principal components look like noise")
        if first is not None:
            because = "samples are uncorrelated with each other in them"
            return _without(found.leading(first), n_columns, of=n_columns, because=because)
    # Images with sharp edges need too many: the squared distance to the 8th neighbour varies by
    # 1/sqrt(8) from sample to sample, so that a fifth of it will do.
    if _components_of_distances(X, found, 0.2) is not None:
        return _without_negligible(found, n_columns)
    return Choice(
        None,
        f"the principal components beyond the first {len(found.variance)} of {n_columns:,} are "
        "not only noise, and distances between neighbours depend on them",
    )


def _components_of_distances(X: np.ndarray, found: PrincipalAxes, share: float) -> int | None:
    """Return how many components change squared distances of neighbours by more than a share.

    None if they are more than were found.
    """
    # The squared distance of two samples in the other components is twice the variance of those on
    # average, and hardly more for neighbours.
    rest = 2 * found.rest
    rounding = RANK_TOLERANCE * found.total
    # Twice the total variance is the mean squared distance of any two samples, and neighbours are
    # nearer: no need to measure their distance.
    if rest[-1] > max(rounding, share * 2 * found.total):
        return None
    enough = rest <= max(rounding, share * _neighbor_distance(X, found))
    return int(np.argmax(enough)) if enough.any() else None


def _neighbor_distance(X: np.ndarray, found: PrincipalAxes) -> float:
    """Return the median squared distance of 200 samples to their 8th neighbour."""
    some = centred_rows(X, found.mean, 200, np.random.default_rng(0)) @ found.axes
    # The nearest is the sample itself.
    nearest = np.full((len(some), 9), np.inf)
    for block in found.scores(X):
        lengths = (some**2).sum(axis=1)[:, None] + (block**2).sum(axis=1)
        squares = np.maximum(0.0, lengths - 2 * some @ block.T)
        nearest = np.partition(np.column_stack([nearest, squares]), 8, axis=1)[:, :9]
    return float(np.median(nearest.max(axis=1)))


def _without(found: PrincipalAxes, n_columns: int, *, of: int, because: str) -> Choice:
    n_kept = len(found.variance)
    what = f"{n_columns - n_kept:,} of {n_columns:,} principal components"
    return _kept(found, f"{what} are noise and were dropped: {because}", n_noisy=of - n_kept)


def _without_negligible(found: PrincipalAxes, n_columns: int) -> Choice:
    n_kept = len(found.variance)
    of = f"{n_kept} of {n_columns:,} principal components"
    depend = f"distances between neighbours depend on {of}"
    if n_kept > n_columns / 2:
        return Choice(None, f"{depend}, too many for a projection to save time")
    share = found.rest[-1] / found.total
    return _kept(found, f"{depend}; the others, {share:.0e} of the variance, were dropped")


def _kept(found: PrincipalAxes, reason: str, *, n_noisy: int = 0) -> Choice:
    noise = float(found.rest[-1] / n_noisy) if n_noisy else 0.0
    return Choice(Preparation(found.mean, found.axes, reason, noise), reason)


# "auto" and "none" leave the columns as they are; a factorizer may try the square root by "auto".
TRANSFORMATIONS = ("auto", "none", "sqrt", "log", "ranks")
WORDS = {"sqrt": "square root", "log": "logarithm", "ranks": "ranks"}
# Ranks are read off so many quantiles of each column.
N_QUANTILES = 1001


@dataclass(frozen=True)
class Transformation:
    """A monotone function of every column, and its inverse."""

    name: str  # "sqrt", "log" or "ranks"
    # (n_quantiles, n_features): of the samples of the fit, for ranks
    quantiles: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def __str__(self) -> str:
        return WORDS[self.name]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return a function of every column of samples, (n, n_features)."""
        if self.name == "ranks":
            return np.column_stack(
                [_ranks(x, known) for x, known in zip(X.T, self.quantiles.T, strict=True)]
            )
        least = X.min(axis=0)
        column = int(least.argmin())
        # A logarithm of 0 is not finite.
        if least[column] < 0 or (self.name == "log" and least[column] == 0):
            what = "not be negative" if self.name == "sqrt" else "be positive"
            raise ValueError(
                f"with `transformation={self.name!r}`, all values must {what}; got "
                f"{least[column]:.3g} in column {column}. Use 'ranks', or leave the column out."
            )
        return np.sqrt(X) if self.name == "sqrt" else np.log(X)

    def inverse(self, X: np.ndarray) -> np.ndarray:
        """Return the samples of which this is the function, (n, n_features)."""
        if self.name == "ranks":
            shares = np.linspace(0, 1, len(self.quantiles))
            columns = zip(X.T, self.quantiles.T, strict=True)
            return np.column_stack([np.interp(x, shares, known) for x, known in columns])
        # An average of roots may be a little below 0.
        return np.maximum(X, 0) ** 2 if self.name == "sqrt" else np.exp(X)


def _ranks(x: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return the share of samples below each value, from 0 to 1; that of ties is their mean."""
    shares = np.linspace(0, 1, len(quantiles))
    above = np.interp(-x, -quantiles[::-1], shares)
    return (np.interp(x, quantiles, shares) + 1 - above) / 2


def make_transformation(name: str, X: np.ndarray) -> Transformation | None:
    """Return the transformation of samples, by its name; None for samples as they are."""
    if name in ("auto", "none"):
        return None
    if name != "ranks":
        return Transformation(name)
    shares = np.linspace(0, 1, min(len(X), N_QUANTILES))
    return Transformation(name, np.quantile(X, shares, axis=0))
