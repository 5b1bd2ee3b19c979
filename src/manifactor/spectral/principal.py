"""Principal components of samples, in blocks of rows: all of them or the leading."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.threads import one_blas_thread, over_cores

T = TypeVar("T")


@dataclass(frozen=True)
class PrincipalSettings:
    """Settings of `all_axes` and `leading_axes`."""

    # Numbers in a block of rows, 32 MB: the samples are never copied as a whole, and blocks of
    # 100,000 columns still have 40 rows.
    numbers_per_step: int = 2**22

    # Components of less variance, relative to the first, are rounding.
    rank_tolerance: float = 1e-12

    # The iteration starts from the principal components of a few samples, so many for each
    # component asked for. They are nearly right. A few random directions are added for what those
    # samples do not show.
    start_samples: int = 4
    spare: int = 10

    # Products with the covariance. An error shrinks in each by the ratio of the first variance left
    # out to that of the component, 4/5 or less where it matters.
    rounds: int = 4


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
        axes, variance = self.axes[:, kept], self.variance[kept]
        return PrincipalAxes(self.mean, axes, variance, self.total)

    def scores(
        self, X: np.ndarray, settings: PrincipalSettings = PrincipalSettings()
    ) -> Iterator[np.ndarray]:
        """Yield blocks of the samples in the principal axes."""
        return over_blocks(lambda rows: (X[rows] - self.mean) @ self.axes, X, settings)


def all_axes(X: np.ndarray, settings: PrincipalSettings = PrincipalSettings()) -> PrincipalAxes:
    """Return all components of samples, (n_samples, n_features), from the covariance.

    Components that are rounding are left out.
    """
    mean = X.mean(axis=0, dtype=np.float64)

    def squared(rows: slice) -> np.ndarray:
        block = X[rows] - mean
        return block.T @ block

    scatter = sum(over_blocks(squared, X, settings))
    with one_blas_thread():
        variance, axes = np.linalg.eigh(scatter / len(X))
    # `eigh` sorts ascending.
    seen = variance > settings.rank_tolerance * variance[-1]
    variance, axes = variance[seen][::-1], axes[:, seen][:, ::-1]
    return PrincipalAxes(mean, axes, variance, float(variance.sum()))


def leading_axes(
    X: np.ndarray, count: int, settings: PrincipalSettings = PrincipalSettings()
) -> PrincipalAxes:
    """Return the first components of samples, (n_samples, n_features).

    They are computed by subspace iteration: no matrix is larger than the samples, which are read a
    few times in blocks. The same samples give the same result.
    """
    rng = np.random.default_rng(0)
    mean = X.mean(axis=0, dtype=np.float64)
    axes = _first_guess(X, mean, count, settings, rng)
    # The iteration may be in the precision of the samples; the variances, computed last, are in
    # double precision.
    for _ in range(settings.rounds - 1):
        axes = np.linalg.qr(axes)[0]
        axes = _covariance_times(X, mean, axes, settings, precision=X.dtype)[0]
    axes = np.linalg.qr(axes)[0]
    image, total = _covariance_times(X, mean, axes, settings)
    # Rayleigh-Ritz; `eigh` sorts ascending.
    variance, turn = np.linalg.eigh(axes.T @ image)
    first = np.arange(len(variance))[::-1][:count]
    return PrincipalAxes(mean, axes @ turn[:, first], variance[first], total)


def _first_guess(
    X: np.ndarray,
    mean: np.ndarray,
    count: int,
    settings: PrincipalSettings,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return directions that nearly span the leading components, (n_features, m)."""
    some = centred_rows(X, mean, settings.start_samples * count, rng)
    # The right singular vectors from the smaller matrix of inner products.
    squares, left = np.linalg.eigh(some @ some.T)
    seen = squares[-count:] > settings.rank_tolerance * squares[-1]
    spanned = some.T @ left[:, -count:][:, seen]
    wanted = min(count + settings.spare, *X.shape)
    random = rng.normal(size=(X.shape[1], max(0, wanted - spanned.shape[1])))
    return np.column_stack([spanned, random])


def _covariance_times(
    X: np.ndarray,
    mean: np.ndarray,
    axes: np.ndarray,
    settings: PrincipalSettings,
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

    for some_image, some_total in over_blocks(work, X, settings):
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


def drawn_rows(X: np.ndarray, most: int) -> np.ndarray:
    """Return samples in their order, one of each of `most` equal runs; all of few."""
    if len(X) <= most:
        return X
    # At random places, since values may repeat along the rows; and always the same.
    step = len(X) / most
    places = np.arange(most) + np.random.default_rng(0).random(most)
    return X[(places * step).astype(int)]


def over_blocks(
    work: Callable[[slice], T], X: np.ndarray, settings: PrincipalSettings
) -> Iterator[T]:
    """Yield `work` of blocks of rows, in their order, computed on all cores.

    A block has one thread of BLAS: results do not depend on the number of cores.
    """
    numbers = settings.numbers_per_step
    blocks = gen_batches(len(X), max(1, numbers // X.shape[1]))
    with one_blas_thread():
        yield from over_cores(work, list(blocks))
