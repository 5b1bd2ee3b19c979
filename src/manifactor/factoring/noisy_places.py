"""How far noise of known size moves the places of samples on the factors."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import scipy.sparse as sp

from manifactor._support.values import bad_values
from manifactor.factoring.factorization import DividedTerm
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.placement import PlacementSettings, place
from manifactor.factoring.sums.summands import Sum
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.preparation import Preparation


def checked_noise(noise, X) -> np.ndarray:
    """Return the noise of every column of samples as an array, if it can be used."""
    if sp.issparse(X):
        raise ValueError("`noise` cannot be used with precomputed distances. Leave it out.")
    with suppress(TypeError, ValueError):  # words stay as they are, and are refused
        noise = np.asarray(noise, dtype=float)
    is_array = isinstance(noise, np.ndarray) and noise.dtype == float
    known = is_array and noise.shape == (X.shape[1],) and bad_values(noise) is None
    if not known or (noise < 0).any():
        raise ValueError(
            "`noise` must hold a standard deviation of 0 or more, below 1e+150, for "
            f"each of the {X.shape[1]} columns; got {noise!r:.60}."
        )
    return noise


def signal_shares(
    factors: Sequence[Factor],
    diffusion: Diffusion,
    noise: np.ndarray,
    *,
    terms: Sum | None = None,
    divided: Sequence[DividedTerm] = (),
    settings: PlacementSettings = PlacementSettings(),
    rng: np.random.Generator,
) -> list[float]:
    """Return the share of each factor's variance that noise of known size leaves.

    Noise of the same size is added to the samples once more; how far it moves the places estimates
    how far the noise already present has moved them.

    Shapes: noise (n_features,).
    """
    samples = diffusion.points
    if samples is None:
        raise ValueError(
            "`noise` is the noise of samples; got it with a precomputed graph of "
            "distances. Pass samples, or leave `noise` out."
        )
    noisy = samples + prepared_noise(
        noise, len(samples), preparation=diffusion.preparation, rng=rng
    )
    moved = place(noisy, factors, diffusion, terms=terms, divided=divided, settings=settings)
    return [
        _signal_share(factor.embedding, after.embedding)
        for factor, after in zip(factors, moved, strict=True)
    ]


def prepared_noise(
    noise: np.ndarray, n_samples: int, *, preparation: Preparation | None, rng: np.random.Generator
) -> np.ndarray:
    """Return noise of so many samples as it is after their preparation.

    In principal components C, noise with standard deviations s in the columns has the covariance C'
    diag(s^2) C = R' R, where R is the triangular factor of diag(s) C. Only as many numbers are
    drawn as there are components, not as there are columns.

    Shapes: noise (n_features,) -> (n_samples, n_prepared).
    """
    if preparation is None:
        return noise * rng.normal(size=(n_samples, len(noise)))
    root = np.linalg.qr(noise[:, None] * preparation.components, mode="r")
    return rng.normal(size=(n_samples, len(root))) @ root


def _signal_share(before: np.ndarray, after: np.ndarray) -> float:
    """One less the mean squared displacement over the variance of the places."""
    # Embeddings have near values at near places, those of a circle across 0, too.
    spread = ((before - before.mean(axis=0)) ** 2).sum()
    return float(1 - ((after - before) ** 2).sum() / spread)
