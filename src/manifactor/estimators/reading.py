"""Samples as a caller gives them to `fit`, drawn and checked."""

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from manifactor._support.values import bad_values
from manifactor.estimators.arrays import (
    OUTSIDE_MEMORY,
    as_rows,
    draw_count,
    draw_rows,
    frame_of,
    kind_of,
    precision_of,
    require_known_shape,
    take_rows,
)
from manifactor.estimators.moving import pairs_as_well, read_moves
from manifactor.models.moves.paths import GivenMetric, Moves, Pairs, Trajectory
from manifactor.samples import Samples
from manifactor.samples.columns import column_labels
from manifactor.samples.likelihood import GaussianLikelihood, denoise

# Samples of a trajectory that are fitted unless the caller says how many: as many as the fits of
# `studies/dynamics.py` have. Three intervals take 10,000.
MOST_OF_TRAJECTORY = 3000
# Columns of samples with noise of their own: the covariances of 20,000 samples take .6 GB.
MOST_WITH_NOISE = 64


def read_samples(
    estimator: Any, X: Any, moves: dict[str, Any], noise: Any, names: Any, fit_samples: Any
) -> Samples:
    """Return samples to fit: some rows of X, checked by an estimator, which learns their columns.

    Noise of each sample is taken off: it lies where it would without.
    """
    given, lag = X, moves.pop("lag")
    X, estimator.image_shape_ = as_rows(X, several=moves["trajectories"] is True)
    X, known = read_moves(estimator, X, moves, lag)
    with suppress(TypeError, ValueError):  # what is no array of numbers is refused below
        noise = None if noise is None else np.asarray(noise, dtype=float)

    def drawn(moves: Any, as_pairs: Any = None) -> Samples:
        rows, own = _rows_to_fit(estimator, X, moves, fit_samples), noise
        some = X if rows is None else take_rows(X, rows)
        if rows is not None and np.ndim(noise) > 1 and len(noise) == X.shape[0]:
            own = noise[rows]
        if rows is not None and isinstance(moves, GivenMetric):
            moves = moves.chosen(rows)
        columns = estimator._checked(some, names)
        if own is not None:
            columns, own = _without_noise(estimator, columns, own, moves)
        return Samples(
            columns,
            names=column_labels(estimator, names, columns.shape[1]),
            moves=moves,
            noise=own,
            rng=random_numbers(estimator.random_state),
            rows=rows,
            as_pairs=as_pairs,
            frame=frame_of(given, rows),
            precision=precision_of(some),
        )

    def as_pairs(verdict: str) -> Samples | None:
        pairs = pairs_as_well(known, lag, verdict)
        return None if pairs is None else drawn(pairs)

    return drawn(known, None if known is None else as_pairs)


def _rows_to_fit(
    estimator: Any, X: Any, moves: Moves | None, asked: int | str
) -> np.ndarray | None:
    """Return the samples to fit, ascending, None for all; of trajectories, even ones."""
    in_time, outside = isinstance(moves, Trajectory | Pairs), kind_of(X) in OUTSIDE_MEMORY
    if in_time and asked == "auto":
        asked = MOST_OF_TRAJECTORY
    if not outside and asked in ("auto", "all"):
        return None
    if sp.issparse(X):
        raise ValueError(
            "`fit_samples` draws samples; got it with a sparse matrix of distances. Leave it out."
        )
    if outside:
        require_known_shape(X)
    n_samples, n_features = np.shape(X)
    count = draw_count(asked, n_samples)
    if outside:
        estimator.require_room(count, n_features)
    elif count == n_samples:
        return None
    if isinstance(moves, Trajectory):
        return moves.even_rows(count)
    seed = check_random_state(estimator.random_state).randint(2**31)
    return draw_rows(n_samples, count, np.random.default_rng(seed))


def _without_noise(
    estimator: Any, X: Any, noise: Any, moves: Moves | None
) -> tuple[Any, np.ndarray | None]:
    """Return samples without noise of their own, and the noise that is the same for all."""
    noise = _checked_noise(noise, X)
    if noise.ndim == 1:
        return X, noise
    if moves is not None or estimator.transformation not in ("auto", "none"):
        raise ValueError(
            "`noise` of each sample must be that of samples as they are; got moves or a "
            "`transformation`, too. Give its deviation in every column, or leave it out."
        )
    likelihood = GaussianLikelihood.of_samples(X, noise)
    return denoise(likelihood, X, rng=np.random.default_rng(0)), None


def _checked_noise(noise: Any, X: Any) -> np.ndarray:
    """Return deviations of every column, (p,), or covariances of every sample, (n, p, p)."""
    if sp.issparse(X):
        raise ValueError("`noise` cannot be used with precomputed distances. Leave it out.")
    n, p = X.shape
    numbers = noise if isinstance(noise, np.ndarray) else np.empty(0)
    if numbers.ndim > 1 and p > MOST_WITH_NOISE:
        raise ValueError(
            f"`noise` of each sample is for {MOST_WITH_NOISE} columns or fewer; got {p}. Give main "
            "directions of the samples and their noise, or the noise of every column."
        )
    known = numbers.shape in ((p,), (n, p), (n, p, p)) and bad_values(numbers) is None
    if not known or (numbers.ndim < 3 and (numbers < 0).any()):
        raise ValueError(
            "`noise` must hold a standard deviation of 0 or more, below 1e+150, for "
            f"each of the {p} columns, or that of each sample, ({n}, {p}), or a covariance of each "
            f"sample, ({n}, {p}, {p}); got {noise!r:.60}."
        )
    if numbers.ndim == 2:
        # A column without noise has a thousandth of its spread.
        spread = X.std(axis=0)
        least = 1e-3 * np.where(spread > 0, spread, 1)
        return np.maximum(numbers, least)[:, :, None] ** 2 * np.eye(p)
    if numbers.ndim == 3:
        skew = np.abs(numbers - numbers.swapaxes(1, 2)).max(axis=(1, 2), initial=0)
        spread = np.linalg.eigvalsh(numbers)
        wrong = (spread[:, 0] <= 1e-12 * spread[:, -1]) | (skew > 1e-6 * spread[:, -1])
        if wrong.any():
            raise ValueError(
                "the covariances of `noise` must be symmetric and positive in all directions; "
                f"that of sample {wrong.argmax()} is not. Add a small variance to the diagonal."
            )
    return numbers


def random_numbers(random_state: Any) -> np.random.Generator:
    """Return a generator, a child of the seed's: earlier versions drew the same numbers."""
    seed = check_random_state(random_state).randint(2**31)
    return np.random.default_rng(seed).spawn(1)[0]
