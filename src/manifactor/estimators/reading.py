"""Samples as a caller gives them to `fit`, drawn and checked."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from manifactor._support.values import bad_values
from manifactor.estimators.arrays import as_rows, frame_of, precision_of
from manifactor.estimators.moving import draw_with_moves, pairs_as_well, read_moves
from manifactor.samples import Samples
from manifactor.samples.columns import column_labels
from manifactor.samples.likelihood import GaussianLikelihood, denoise

# Columns of samples with noise of their own: the covariances of 20,000 samples take .6 GB.
MOST_WITH_NOISE = 64


def checked_noise(noise, X) -> np.ndarray:
    """Return the noise of samples as an array, if it can be used.

    Standard deviations of every column, (n_features,), or covariances of every sample, (n_samples,
    n_features, n_features).
    """
    if sp.issparse(X):
        raise ValueError("`noise` cannot be used with precomputed distances. Leave it out.")
    n, p = X.shape
    if isinstance(noise, np.ndarray) and noise.ndim > 1 and p > MOST_WITH_NOISE:
        raise ValueError(
            f"`noise` of each sample is for {MOST_WITH_NOISE} columns or fewer; got {p}. Give main "
            "directions of the samples and their noise, or the noise of every column."
        )
    numbers = np.empty(0)
    with suppress(TypeError, ValueError):  # words are refused
        noise = numbers = np.asarray(noise, dtype=float)
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


def as_array(noise: Any) -> Any:
    """Return noise as an array if it is one of numbers; else as it is, to be refused."""
    with suppress(TypeError, ValueError):
        return None if noise is None else np.asarray(noise, dtype=float)
    return noise


def read_samples(
    estimator: Any, X: Any, moves: dict[str, Any], noise: Any, names: Any, fit_samples: Any
) -> Samples:
    """Return samples to fit: some rows of X, checked by an estimator, which learns their columns.

    Noise of each sample is taken off: it lies where it would without.
    """
    frame, lag = partial(frame_of, X), moves.pop("lag")
    X, estimator.image_shape_ = as_rows(X, several=moves["trajectories"] is True)
    X, known = read_moves(estimator, X, moves, lag)
    draw = partial(_drawn, estimator, X, frame, as_array(noise), names, fit_samples)

    def as_pairs(verdict: str) -> Samples | None:
        pairs = pairs_as_well(known, lag, verdict)
        return None if pairs is None else draw(pairs)

    return draw(known, None if known is None else as_pairs)


def _drawn(
    estimator: Any,
    X: Any,
    frame: Callable[[Any], Any],
    noise: Any,
    names: Any,
    count: Any,
    moves: Any,
    as_pairs: Any = None,
) -> Samples:
    given = X
    X, rows, moves = draw_with_moves(estimator, X, moves, count)
    per_sample = isinstance(noise, np.ndarray) and noise.ndim > 1
    if per_sample and X.shape[0] < given.shape[0] == len(noise):
        noise = noise[rows]
    precision = precision_of(X)
    X = estimator._checked(X, names)
    noise = None if noise is None else checked_noise(noise, X)
    if noise is not None and noise.ndim > 1:
        if moves is not None or estimator.transformation not in ("auto", "none"):
            raise ValueError(
                "`noise` of each sample must be that of samples as they are; got moves or a "
                "`transformation`, too. Give its deviation in every column, or leave it out."
            )
        likelihood = GaussianLikelihood.of_samples(X, noise)
        X, noise = denoise(likelihood, X, rng=np.random.default_rng(0)), None
    rng = random_numbers(estimator.random_state)
    names = column_labels(estimator, names, X.shape[1])
    return Samples(X, names, moves, noise, rng, rows, as_pairs, frame(rows), precision)


def random_numbers(random_state: Any) -> np.random.Generator:
    """Return a generator, a child of the seed's: earlier versions drew the same numbers."""
    seed = check_random_state(random_state).randint(2**31)
    return np.random.default_rng(seed).spawn(1)[0]
