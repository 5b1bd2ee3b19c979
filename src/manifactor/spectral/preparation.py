"""Samples to prepared samples: principal components that are noise are removed.

In many components of noise, all distances are nearly equal. From samples in many columns, such as
images, components that distances between neighbours do not depend on are removed, too, since each
column costs time. Principal components are computed in blocks of rows, all of them or the leading
ones.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.parameters import Choice
from manifactor._support.threads import one_blas_thread, over_cores
from manifactor.spectral.noise import (
    SHORTEST_TAIL,
    components_beside_noise,
    first_noise_component,
    noise_components,
)

T = TypeVar("T")

PREPARATIONS = ("auto", "none")

# In more columns, the covariance costs more than all that follows: the leading components are
# computed without it.
MOST_COLUMNS = 1000

# Leading components that are computed at most: more would cost about as much as they save.
MOST_COMPONENTS = 128

# Distances in so few columns cost little: there only noise is removed.
FEW_COLUMNS = 64

# Numbers in a block of rows, 32 MB: the samples are never copied as a whole, and blocks of 100,000
# columns still have 40 rows.
NUMBERS_PER_BLOCK = 2**22

# Components of less variance, relative to the first, are rounding.
RANK_TOLERANCE = 1e-12


# Principal components of samples.


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
        held = np.concatenate([[0.0], np.cumsum(self.variance)])
        return np.maximum(0.0, self.total - held)

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
    """Return all components of samples, (n_samples, n_features), from the covariance.

    Components that are rounding are left out.
    """
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
    """Return the first components of samples, (n_samples, n_features).

    They are computed by subspace iteration: no matrix is larger than the samples, which are read a
    few times in blocks. The same samples give the same result.
    """
    mean = X.mean(axis=0, dtype=np.float64)
    axes = _first_guess(X, mean, count)
    # An error shrinks in each round by the ratio of the first variance left out to that of the
    # component, 4/5 or less where it matters. The iteration may be in the precision of the samples;
    # the variances, computed last, are in double precision.
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
    """Return directions that nearly span the leading components, (n_features, m).

    They are the principal components of a few samples, which are nearly right, and a few random
    directions for what those samples do not show.
    """
    rng = np.random.default_rng(0)
    some = centred_rows(X, mean, 4 * count, rng)
    # The right singular vectors from the smaller matrix of inner products.
    squares, left = np.linalg.eigh(some @ some.T)
    seen = squares[-count:] > RANK_TOLERANCE * squares[-1]
    spanned = some.T @ left[:, -count:][:, seen]
    wanted = min(count + 10, *X.shape)
    random = rng.normal(size=(X.shape[1], max(0, wanted - spanned.shape[1])))
    return np.column_stack([spanned, random])


def _covariance_times(
    X: np.ndarray,
    mean: np.ndarray,
    axes: np.ndarray,
    *,
    precision: np.typing.DTypeLike = np.float64,
) -> tuple[np.ndarray, float]:
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
    """Yield `work` of blocks of rows, in their order, computed on all cores.

    A block has one thread of BLAS: results do not depend on the number of cores.
    """
    blocks = gen_batches(len(X), max(1, NUMBERS_PER_BLOCK // X.shape[1]))
    with one_blas_thread():
        yield from over_cores(work, list(blocks))


# The choice of the components that are kept.


@dataclass(frozen=True)
class Preparation:
    """The principal components that are kept."""

    mean: np.ndarray  # (n_features,)
    components: np.ndarray  # (n_features, n_kept): principal axes
    reason: str  # which components were dropped, and why

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

        for _ in over_blocks(work, X):
            pass
        return prepared


def choose_preparation(X: np.ndarray) -> Choice:
    """Choose the preparation of samples, (n_samples, n_features).

    Samples of any width are read in blocks of rows; a memory map is never read whole.

    >>> rng = np.random.default_rng(0)
    >>> line = np.c_[np.linspace(-5, 5, 2000), np.zeros((2000, 9))]
    >>> choose_preparation(line)
    Choice(value=None, why='no principal components are isotropic Gaussian noise')
    >>> choose_preparation(line + 0.1 * rng.normal(size=line.shape)).why
    '9 of 10 principal components are isotropic Gaussian noise and were dropped'
    """
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
            return _without(found.chosen(kept), n_columns, because=because)
    if not noise:
        return otherwise
    of = f"{n_columns}" if n_columns <= n_found else f"{n_found} relevant"
    reason = f"{noise} of {of} principal components are isotropic Gaussian noise and were dropped"
    return _kept(found.leading(n_found - noise), reason)


def _choose_from_leading(X: np.ndarray, leading: Iterable[PrincipalAxes]) -> Choice:
    """Return the choice from leading components of samples in many columns.

    `leading` has more and more of them, and is used as far as necessary.
    """
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
        first = first_noise_component(
            centred_rows(X, found.mean, 300, np.random.default_rng(0)),
            found.axes,
            variance=found.variance,
            rest=found.rest,
            n_samples=len(X),
        )
        if first == 0:
            return Choice(None, "all principal components look like noise")
        if first is not None:
            because = "samples are uncorrelated with each other in them"
            return _without(found.leading(first), n_columns, because=because)
    # Images with sharp edges need too many: the squared distance to the 8th neighbour varies by
    # 1/sqrt(8) from sample to sample, so that a fifth of it will do.
    if _components_of_distances(X, found, 0.2) is not None:
        return _without_negligible(found, n_columns)
    return Choice(
        None,
        f"the principal components beyond the first {len(found.variance)} of "
        f"{n_columns:,} are not only noise, and distances between neighbours depend "
        "on them",
    )


def _components_of_distances(X: np.ndarray, found: PrincipalAxes, share: float) -> int | None:
    """Return how many components distances between neighbours depend on.

    The others change squared distances by less than this share. None if they are more than were
    found. The squared distance of two samples in the other components is twice the variance of
    those on average, and hardly more for neighbours.
    """
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


def _without(found: PrincipalAxes, n_columns: int, *, because: str) -> Choice:
    dropped = n_columns - len(found.variance)
    return _kept(
        found,
        f"{dropped:,} of {n_columns:,} principal components are noise and were dropped: {because}",
    )


def _without_negligible(found: PrincipalAxes, n_columns: int) -> Choice:
    n_kept = len(found.variance)
    of = f"{n_kept} of {n_columns:,} principal components"
    depend = f"distances between neighbours depend on {of}"
    if n_kept > n_columns / 2:
        return Choice(None, f"{depend}, too many for a projection to save time")
    share = found.rest[-1] / found.total
    return _kept(found, f"{depend}; the others, {share:.0e} of the variance, were dropped")


def _kept(found: PrincipalAxes, reason: str) -> Choice:
    return Choice(Preparation(found.mean, found.axes, reason), reason)
