"""Where new samples lie on the factors."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.threads import cores
from manifactor._support.values import bad_values, ceil_div
from manifactor.factoring.factor import Factor
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.sums.summands import Sum, confidence
from manifactor.spectral.diffusion import CombinedFunctions, Diffusion, Values, is_combinable
from manifactor.spectral.laplacian import LEAST_COMPANY
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.searches import nearest_point


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


# From samples to the distance and the index of the nearest one of the fit.
Nearest = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

# From prepared samples, (n, n_features), to their places on each factor.
Placer = Callable[[np.ndarray], list[Placed]]


def make_placer(found: Factorization, *, n_new: int) -> Placer:
    """Return a function from prepared samples to their places on each factor.

    The confidence of a new sample is that of the nearest training sample. A sample far from all of
    them lies where the nearest one lies, with confidence 0. On terms of a sum, a sample lies where
    the sum comes nearest to it, and its confidence falls with its distance from the sum. On the
    factors of a divided term it lies where its point on the term lies, and the lower of both
    confidences counts.
    """
    if found.diffusion.points is None:
        raise ValueError(
            "new samples are placed by their distances to the training samples, which "
            "a precomputed graph does not have; fit samples instead."
        )
    if found.sum is None:
        return _placer(found.factors, found.diffusion, n_new)
    # The factors of a divided term follow each other.
    inside, first = {}, 0
    divided = {each.term: each for each in found.divided}
    for term in range(len(found.sum.summands)):
        count = divided[term].n_factors if term in divided else 1
        if term in divided:
            own = found.factors[first : first + count]
            inside[term] = _placer(own, divided[term].diffusion, n_new)
        first += count
    return partial(_place_on_terms, terms=found.sum, inside=inside)


def place_blocks(
    X: Any,
    placer: Placer,
    *,
    prepare: Callable[[Any, int], np.ndarray] | None = None,
    block: int = 20_000,
) -> list[Placed]:
    """Return where samples lie on each factor, placed so many rows at a time.

    Millions of them then fit into memory.

    Shapes: X (n, n_features).
    """
    rows = getattr(X, "iloc", X) if hasattr(X, "shape") else np.asarray(X)
    n_samples = len(X) if isinstance(X, Sequence) else X.shape[0]
    n_blocks = max(1, ceil_div(n_samples, block))
    edges = np.linspace(0, n_samples, n_blocks + 1).astype(int).tolist()
    blocks = []
    for start, stop in pairwise(edges):
        # Block by block: samples on disk are never in memory as a whole.
        some = rows[start:stop]
        blocks.append(placer(some if prepare is None else prepare(some, start)))
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _placer(factors: Sequence[Factor], diffusion: Diffusion, n_new: int) -> Placer:
    """Function that places prepared samples on factors of a diffusion."""
    # Beyond four bandwidths, as lengths, a new sample has no neighbours: the kernel exp(-16) is
    # 1e-7 there, nothing but rounding.
    reach = 4.0 * float(np.sqrt(diffusion.affinity.bandwidth.value))
    if not is_combinable(diffusion):
        return _general_placer(factors, diffusion, reach)
    effective = [factor.effective() for factor in factors]
    combinations = [factor.combinations for factor in effective]
    functions = CombinedFunctions(diffusion, np.hstack(combinations), reach=reach, n_new=n_new)
    distinct = diffusion.graph.distinct
    return partial(
        _place_combined,
        factors=effective,
        functions=functions,
        ends=np.cumsum([each.shape[1] for each in combinations]),
        confidence=[factor.confidence[distinct] for factor in factors],
        exceptions=_exceptions(factors, diffusion, reach),
    )


def _general_placer(factors: Sequence[Factor], diffusion: Diffusion, reach: float) -> Placer:
    """Function that places samples by all functions, whatever kernel and search."""
    return partial(
        _place_block,
        factors=factors,
        diffusion=diffusion,
        nearest=nearest_point(diffusion.samples),
        reach=reach,
    )


@dataclass(frozen=True)
class Exceptions:
    """Samples that are placed by themselves, since the fit left outliers out."""

    outliers: KDTree  # of the fit
    # Kernel weight of all neighbours below which a sample may be an outlier, too
    least_company: float
    place: Placer  # how they are placed

    def among(self, X: np.ndarray, at: Values) -> np.ndarray:
        """Return which samples are nearest to an outlier, or have little company."""
        off, _ = self.outliers.query(X, workers=cores())
        return np.flatnonzero((off < at.distance) | (at.company < self.least_company))


def _exceptions(factors: Sequence[Factor], diffusion: Diffusion, reach: float) -> Exceptions | None:
    """What is placed by itself; None where the fit left nothing out."""
    outliers = diffusion.graph.outliers
    if not outliers.any():
        return None
    return Exceptions(
        KDTree(diffusion.samples[outliers]),
        LEAST_COMPANY,
        _general_placer(factors, diffusion, reach),
    )


def _place_block(
    X: np.ndarray, factors: Sequence[Factor], diffusion: Diffusion, nearest: Nearest, reach: float
) -> list[Placed]:
    """Places of prepared samples on each factor."""
    distance, index = nearest(X)
    far = distance > reach
    # Far samples have no kernel to be placed by, and would be refused by `extend`.
    near = np.where(far[:, None], diffusion.samples[index], X)
    functions = diffusion.extended(near)
    out = []
    for factor in factors:
        confidence = np.where(far, 0.0, factor.confidence[index])
        out.append(Placed(*factor.place(functions), confidence))
    return out


def _place_combined(
    X: np.ndarray,
    factors: Sequence[Factor],
    functions: CombinedFunctions,
    ends: np.ndarray,
    confidence: Sequence[np.ndarray],
    exceptions: Exceptions | None,
) -> list[Placed]:
    """Places of prepared samples, by the functions that they are read from only."""
    at = functions(X)
    far = at.distance > functions.reach
    values = np.split(at.combined, ends[:-1], axis=1)
    out = []
    for factor, own, known in zip(factors, values, confidence, strict=True):
        sure = np.where(far, 0.0, known[at.nearest])
        out.append(Placed(*factor.place_by(own), sure))
    rows = np.arange(0) if exceptions is None else exceptions.among(X, at)
    if exceptions is None or not len(rows):
        return out
    others = exceptions.place(X[rows])
    return [_with(*pair, rows) for pair in zip(out, others, strict=True)]


def _with(places: Placed, others: Placed, rows: np.ndarray) -> Placed:
    """Places, some rows of which are replaced by others."""
    kept = [each if each is None else each.copy() for each in places]
    for own, other in zip(kept, others, strict=True):
        if own is not None:
            own[rows] = other
    return Placed(*kept)  # type: ignore[arg-type]


def _place_on_terms(X: np.ndarray, terms: Sum, inside: Mapping[int, Placer]) -> list[Placed]:
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


# How far noise of known size moves the places of samples on the factors.


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
    found: Factorization, noise: np.ndarray, *, rng: np.random.Generator
) -> list[float]:
    """Return the share of each factor's variance that noise of known size leaves.

    Noise of the same size is added to the samples once more; how far it moves the places estimates
    how far the noise already present has moved them.

    Shapes: noise (n_features,).
    """
    samples = found.diffusion.samples
    preparation = found.diffusion.preparation
    noisy = samples + prepared_noise(noise, len(samples), preparation=preparation, rng=rng)
    moved = place_blocks(noisy, make_placer(found, n_new=len(noisy)))
    return [
        _signal_share(factor.embedding, after.embedding)
        for factor, after in zip(found.factors, moved, strict=True)
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
