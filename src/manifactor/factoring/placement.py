"""Where new samples lie on the factors, and how far noise moves the places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.arithmetic import ceil_div
from manifactor.factoring.factorization import DividedTerm, Factorization
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
    divided: Sequence[DividedTerm] = (),
    settings: PlacementSettings = PlacementSettings(),
) -> list[Placed]:
    """Return where new samples lie on each factor, placed a block at a time.

    The confidence of a new sample is that of the nearest training sample. A sample far
    from all of them lies where the nearest one lies, with confidence 0. On terms of
    a sum, a sample lies where the sum comes nearest to it, and its confidence falls
    with its distance from the sum. On the factors of a divided term it lies where its
    point on the term lies, and the lower of both confidences counts.

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
    divided : sequence of DividedTerm
        Terms of the sum that have several factors.
    """
    if diffusion.points is None:
        raise ValueError(
            "new samples are placed by their distances to the training samples, which "
            "a precomputed graph does not have; fit samples instead."
        )
    if terms is None:
        place_block = _placer(factors, diffusion, settings)
    else:
        inside = _placers_inside(terms, factors, divided, settings)
        place_block = partial(_place_on_terms, terms=terms, inside=inside)
    n_blocks = max(1, ceil_div(len(X), settings.block))
    blocks = []
    for block in np.array_split(X, n_blocks):
        # Block by block: samples on disk are never in memory as a whole.
        prepared = block if prepare is None else prepare(block)
        blocks.append(place_block(prepared))
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def place_on(found: Factorization, X: np.ndarray, **options: Any) -> list[Placed]:
    """Return where new samples lie on the factors of a factorization, as `place`."""
    return place(
        X,
        found.factors,
        found.diffusion,
        terms=found.sum,
        divided=found.divided,
        **options,
    )


def _placer(
    factors: Sequence[Factor], diffusion: Diffusion, settings: PlacementSettings
) -> Callable[[np.ndarray], list[Placed]]:
    """Function that places prepared samples on factors of a diffusion."""
    return partial(
        _place_block,
        factors=factors,
        diffusion=diffusion,
        tree=KDTree(diffusion.points),
        settings=settings,
    )


def _placers_inside(
    terms: Sum,
    factors: Sequence[Factor],
    divided: Sequence[DividedTerm],
    settings: PlacementSettings,
) -> dict[int, Callable[[np.ndarray], list[Placed]]]:
    """Functions from points of a divided term to places on its factors, by term."""
    found = {each.term: each for each in divided}
    placers, first = {}, 0
    for term in range(len(terms.summands)):
        count = 1
        if term in found:
            count = found[term].n_factors
            own = factors[first : first + count]
            placers[term] = _placer(own, found[term].diffusion, settings)
        first += count
    return placers


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


def _place_on_terms(
    X: np.ndarray,
    terms: Sum,
    inside: Mapping[int, Callable[[np.ndarray], list[Placed]]],
) -> list[Placed]:
    """Places of prepared samples on each factor of a sum."""
    found = terms.explain(X)
    out = []
    for number, term in enumerate(terms.summands):
        sure = confidence(term, found.off)
        if number not in inside:
            places = found.places[number]
            out.append(Placed(places, term.coordinate(places), sure))
            continue
        for placed in inside[number](found.means[number]):
            both = np.minimum(placed.confidence, sure)
            out.append(placed._replace(confidence=both))
    return out


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
    divided: Sequence[DividedTerm] = (),
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
    terms, divided
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
    moved = place(
        noisy, factors, diffusion, terms=terms, divided=divided, settings=settings
    )
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
