"""Where new samples lie on the factors."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import cores
from manifactor._support.values import ceil_div
from manifactor.factoring.factor import Factor
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.sums.summands import Sum, confidence
from manifactor.spectral.diffusion import (
    CombinedFunctions,
    Diffusion,
    combined_functions,
    is_combinable,
)
from manifactor.spectral.exact import nearest_point
from manifactor.spectral.laplacian import LEAST_COMPANY


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
    functions = combined_functions(diffusion, np.hstack(combinations), reach=reach, n_new=n_new)
    graph, stray = diffusion.graph, None
    if graph.outliers.any():
        tree = KDTree(diffusion.samples[graph.outliers])
        stray = tree, _general_placer(factors, diffusion, reach)
    return partial(
        _place_combined,
        factors=effective,
        functions=functions,
        ends=np.cumsum([each.shape[1] for each in combinations]),
        confidence=[factor.confidence[graph.distinct] for factor in factors],
        stray=stray,
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
    stray: tuple[KDTree, Placer] | None,
) -> list[Placed]:
    """Places of prepared samples, by the functions that they are read from only.

    `stray` has the outliers that the fit left out, and the placer of samples that are nearest to
    one of them, or may be outliers themselves.
    """
    at = functions(X)
    far = at.distance > functions.reach
    values = np.split(at.combined, ends[:-1], axis=1)
    out = []
    for factor, own, known in zip(factors, values, confidence, strict=True):
        sure = np.where(far, 0.0, known[at.nearest])
        out.append(Placed(*factor.place_by(own), sure))
    if stray is None:
        return out
    outliers, place = stray
    off, _ = outliers.query(X, workers=cores())
    rows = np.flatnonzero((off < at.distance) | (at.company < LEAST_COMPANY))
    if not len(rows):
        return out
    return [_with(*pair, rows) for pair in zip(out, place(X[rows]), strict=True)]


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
    columns = zip(*parts, strict=True)
    return Placed(*(None if each[0] is None else np.concatenate(each) for each in columns))  # type: ignore[arg-type]
