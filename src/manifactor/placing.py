"""Where new samples lie on the factors."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.threads import cores
from manifactor.factorization import Factorization
from manifactor.factors.factor import Factor
from manifactor.factors.shapes import Places
from manifactor.models.moves.integration import integrated_at
from manifactor.models.moves.unmixing import shifted_at
from manifactor.models.sums.summands import Sum, confidence
from manifactor.operators.engines.searches import nearest_point
from manifactor.operators.laplacian import LEAST_COMPANY
from manifactor.operators.operator import CombinedFunctions, Operator, is_combinable


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
    inside = {}
    for each in found.divided:
        own = [found.factors[number - 1] for number in found.evidence.terms[each.term]]
        inside[each.term] = _placer(own, each.diffusion, n_new)
    return partial(_place_on_terms, found.sum, inside)


def place_blocks(
    X: Any,
    placer: Placer,
    *,
    prepare: Callable[[Any, int], np.ndarray] = lambda some, first_row: some,
    block: int = 20_000,
) -> list[Placed]:
    """Return where samples lie on each factor, placed so many rows at a time.

    Millions of them then fit into memory.

    Shapes: X (n, n_features).
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    rows = getattr(X, "iloc", X)
    # Block by block: samples on disk are never in memory as a whole.
    starts = range(0, max(1, X.shape[0]), block)
    blocks = [placer(prepare(rows[start : start + block], start)) for start in starts]
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _joined(parts: Sequence[Placed]) -> Placed:
    """Places of blocks of samples, one block after the other."""
    columns = zip(*parts, strict=True)
    return Placed(*(None if each[0] is None else np.concatenate(each) for each in columns))  # type: ignore[arg-type]


def _placer(factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Placer:
    """Function that places prepared samples on factors of a diffusion."""
    outliers, distinct = diffusion.graph.outliers, diffusion.graph.distinct
    combinable = is_combinable(diffusion) and all(each.shift is None for each in factors)
    general = None
    if outliers.any() or not combinable:
        nearest = _nearest(diffusion)
        general = partial(_place_block, factors, diffusion, nearest)
    if general is not None and not combinable:
        return general
    effective = [factor.effective() for factor in factors]
    combinations = [factor.combinations for factor in effective]
    return partial(
        _place_combined,
        effective,
        CombinedFunctions(diffusion, np.hstack(combinations), reach=diffusion.reach, n_new=n_new),
        np.cumsum([each.shape[1] for each in combinations]),
        [factor.confidence[distinct] for factor in factors],
        None if general is None else (KDTree(diffusion.samples[outliers]), general),
    )


def _place_block(
    factors: Sequence[Factor],
    diffusion: Operator,
    nearest: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    X: np.ndarray,
) -> list[Placed]:
    """Places of prepared samples by all functions, whatever kernel and search.

    `nearest` returns the distance and the index of the nearest sample of the fit.
    """
    distance, index = nearest(X)
    far = distance > diffusion.reach
    # Far samples have no kernel to be placed by, and would be refused by `steps_from`, as those
    # behind outliers would be. All of them lie where the nearest one lies.
    off = far | diffusion.graph.outliers[index]
    places = places_at(factors, diffusion, np.where(off[:, None], diffusion.samples[index], X))
    return [
        Placed(*own, np.where(far, 0.0, factor.confidence[index]))
        for factor, own in zip(factors, places, strict=True)
    ]


def places_at(factors: Sequence[Factor], diffusion: Operator, X: np.ndarray) -> list[Places]:
    """Return embedding and coordinate of prepared samples on each factor, by all functions."""
    weights, nearest = diffusion.steps_from(X)
    functions = diffusion.extended_by(weights, nearest)
    out: list[Places] = []
    for factor in factors:
        if factor.shift is not None:
            along = shifted_at(factor, diffusion, functions, sp.csr_array(weights))
            out.append((along[:, None], along))
        elif factor.slopes is None:
            out.append(factor.place(functions))
        else:
            along = integrated_at(factor, diffusion, X, sp.csr_array(weights), nearest)
            out.append((along[:, None], along))
    return out


def _nearest(diffusion: Operator) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from samples to distance and index of the nearest sample of the fit."""
    metric, samples = diffusion.metric, diffusion.samples
    plain = nearest_point(samples)
    if metric is None:
        return plain

    def in_metric(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, index = plain(X)
        if metric.flat is not None:
            steps = metric.flat.steps(index, X - samples[index])
            return np.linalg.norm(steps, axis=1), index
        moves = metric.along(index, X - samples[index])
        return np.sqrt(metric.squared_lengths(index, index, moves)), index

    return in_metric


def _place_combined(
    factors: Sequence[Factor],
    functions: CombinedFunctions,
    ends: np.ndarray,
    confidences: Sequence[np.ndarray],
    stray: tuple[KDTree, Placer] | None,
    X: np.ndarray,
) -> list[Placed]:
    """Places of prepared samples, by the functions that they are read from only.

    `stray` has the outliers that the fit left out, and the placer of samples that are nearest to
    one of them, or may be outliers themselves.
    """
    at = functions(X)
    far = at.distance > functions.reach
    values = np.split(at.combined, ends[:-1], axis=1)
    out = [
        Placed(*factor.place_by(own), np.where(far, 0.0, known[at.nearest]))
        for factor, own, known in zip(factors, values, confidences, strict=True)
    ]
    if stray is None:
        return out
    outliers, place = stray
    off, _ = outliers.query(X, workers=cores())
    rows = np.flatnonzero((off < at.distance) | (at.company < LEAST_COMPANY))
    if len(rows):
        for placed, others in zip(out, place(X[rows]), strict=True):
            for own, other in zip(placed, others, strict=True):
                if own is not None:
                    own[rows] = other
    return out


def _place_on_terms(terms: Sum, inside: Mapping[int, Placer], X: np.ndarray) -> list[Placed]:
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
            out.append(placed._replace(confidence=np.minimum(placed.confidence, sure)))
    return out
