"""Where new samples lie on the factors, and how far noise moves the places."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.arithmetic import ceil_div
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.sums.summands import Sum, confidence
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.preparation import Preparation


@dataclass(frozen=True)
class PlacementSettings:
    """Settings of `place`."""

    # Samples that are placed at a time, so that millions fit into memory.
    block: int = 20_000
    # Bandwidths, as lengths, beyond which a new sample has no neighbours: the kernel
    # exp(-16) is 1e-7 there, nothing but rounding.
    reach: float = 4.0


class Placed(NamedTuple):
    """Where samples lie on one factor.

    Attributes
    ----------
    embedding : ndarray of shape (n, n_coordinates)
    coordinate : ndarray of shape (n,) or None
        None where the factor is neither an interval nor a circle.
    confidence : ndarray of shape (n,)
    """

    embedding: np.ndarray
    coordinate: np.ndarray | None
    confidence: np.ndarray


def place(
    X: np.ndarray,
    factors: Sequence[Factor],
    diffusion: Diffusion,
    *,
    prepare: Callable[[np.ndarray], np.ndarray] | None = None,
    terms: Sum | None = None,
    settings: PlacementSettings = PlacementSettings(),
) -> list[Placed]:
    """Return where new samples lie on each factor, placed a block at a time.

    The confidence of a new sample is that of the nearest training sample. A sample far
    from all of them lies where the nearest one lies, with confidence 0. On factors of
    a sum, a sample lies where the sum comes nearest to it, and its confidence falls
    with its distance from the sum.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    factors : sequence of Factor
    diffusion : Diffusion
        Of the training samples.
    prepare : callable or None
        What to do to a block of samples before it is placed; None where `X` is
        prepared as the training samples are.
    terms : Sum or None
        The sum that the factors are terms of, if they are.
    """
    if diffusion.points is None:
        raise ValueError(
            "new samples are placed by their distances to the training samples, which "
            "a precomputed graph does not have; fit samples instead."
        )
    if terms is None:
        tree = KDTree(diffusion.points)
        place_block = partial(
            _place_block,
            factors=factors,
            diffusion=diffusion,
            tree=tree,
            settings=settings,
        )
    else:
        place_block = partial(_place_on_terms, terms=terms)
    n_blocks = max(1, ceil_div(len(X), settings.block))
    blocks = []
    for block in np.array_split(X, n_blocks):
        # Block by block: samples on disk are never in memory as a whole.
        prepared = block if prepare is None else prepare(block)
        blocks.append(place_block(prepared))
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _place_block(
    X: np.ndarray,
    factors: Sequence[Factor],
    diffusion: Diffusion,
    tree: KDTree,
    settings: PlacementSettings,
) -> list[Placed]:
    """Places of prepared samples on each factor."""
    distance, nearest = tree.query(X, workers=-1)
    far = distance > settings.reach * np.sqrt(diffusion.affinity.bandwidth.value)
    # Far samples have no kernel to be placed by, and would be refused by `extend`.
    near = np.where(far[:, None], diffusion.samples[nearest], X)
    functions = diffusion.extended(near)
    out = []
    for factor in factors:
        confidence = np.where(far, 0.0, factor.confidence[nearest])
        out.append(Placed(*factor.place(functions), confidence))
    return out


def _place_on_terms(X: np.ndarray, terms: Sum) -> list[Placed]:
    """Places of prepared samples on each factor of a sum."""
    found, off = terms.located(X)
    return [
        Placed(places, term.coordinate(places), confidence(term, off))
        for term, places in zip(terms.summands, found, strict=True)
    ]


def _joined(parts: Sequence[Placed]) -> Placed:
    """Places of blocks of samples, one block after the other."""
    coordinates = [part.coordinate for part in parts if part.coordinate is not None]
    return Placed(
        np.concatenate([part.embedding for part in parts]),
        np.concatenate(coordinates) if coordinates else None,
        np.concatenate([part.confidence for part in parts]),
    )


def checked_noise(noise, X) -> np.ndarray:
    """Return the noise of every column of samples as an array, if it can be used."""
    if sp.issparse(X):
        raise ValueError(
            "`noise` cannot be used with precomputed distances. Leave it out."
        )
    noise = np.asarray(noise, dtype=float)
    known = noise.shape == (X.shape[1],) and np.isfinite(noise).all()
    if not known or (noise < 0).any():
        raise ValueError(
            "`noise` must hold a standard deviation of 0 or more for each of the "
            f"{X.shape[1]} columns; got {noise!r:.60}."
        )
    return noise


def signal_shares(
    factors: Sequence[Factor],
    diffusion: Diffusion,
    noise: np.ndarray,
    *,
    terms: Sum | None = None,
    settings: PlacementSettings = PlacementSettings(),
    rng: np.random.Generator,
) -> list[float]:
    """Return the share of each factor's variance that noise of known size leaves.

    Noise of the same size is added to the samples once more; how far it moves the
    places estimates how far the noise already present has moved them.

    Parameters
    ----------
    factors : sequence of Factor
    diffusion : Diffusion
        Of the training samples.
    noise : ndarray of shape (n_features,)
        Standard deviation of the noise in each column of the samples, as they were
        before preparation.
    terms : Sum or None
        As in `place`.
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
    moved = place(noisy, factors, diffusion, terms=terms, settings=settings)
    return [
        _signal_share(factor.embedding, after.embedding)
        for factor, after in zip(factors, moved, strict=True)
    ]


def prepared_noise(
    noise: np.ndarray,
    n_samples: int,
    *,
    preparation: Preparation | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return noise of so many samples as it is after their preparation.

    In principal components C, noise with standard deviations s in the columns has the
    covariance C' diag(s^2) C = R' R, where R is the triangular factor of diag(s) C.
    Only as many numbers are drawn as there are components, not as there are columns.

    Parameters
    ----------
    noise : ndarray of shape (n_features,)
        Standard deviation of the noise in each column before preparation.
    n_samples : int
    preparation : Preparation or None
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_samples, n_prepared)
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
