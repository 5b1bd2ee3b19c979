"""Functions of places that a volume is a sum of: one level of a motion, or of two.

A term gives a level for each motion, 0 where it does not depend on it: on two motions (2, 0) is the
second function of the first motion, (1, 1) a product of both motions' first functions. The level of
an interval is a degree, that of a circle a harmonic.
"""

from collections.abc import Collection, Sequence
from functools import reduce

import numpy as np
from numpy.polynomial.legendre import Legendre

Term = tuple[int, ...]


def term_features(topologies: Sequence[str], places: np.ndarray, term: Term) -> np.ndarray:
    """Return the features of places that one term stands for.

    Shapes: places (n, n_motions) -> (n, n_features).
    """
    parts = [
        LEVELS[topology](place, level)
        for topology, place, level in zip(topologies, places.T, term, strict=True)
        if level
    ]
    return reduce(_products, parts, np.ones((len(places), 1)))


def _products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    width = first.shape[1] * second.shape[1]
    return (first[:, :, None] * second[:, None]).reshape(len(first), width)


def _polynomial(place: np.ndarray, degree: int) -> np.ndarray:
    """Legendre's polynomial of unit variance."""
    values = np.sqrt(2 * degree + 1) * Legendre.basis(degree)(2 * place - 1)
    return values[:, None]


def _harmonic(place: np.ndarray, order: int) -> np.ndarray:
    """Cosine and sine of unit variance."""
    angle = 2 * np.pi * order * place
    return np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])


LEVELS = {"interval": _polynomial, "circle": _harmonic}


def constant_term(n_motions: int) -> Term:
    """Return the term of the mean volume."""
    return n_motions * (0,)


def first_terms(n_motions: int) -> tuple[Term, ...]:
    """Return the first level of each motion."""
    return tuple(
        tuple(int(motion == own) for motion in range(n_motions)) for own in range(n_motions)
    )


def next_terms(terms: Collection[Term], *, max_levels: Sequence[int]) -> tuple[Term, ...]:
    """Return the terms whose lower terms are all there."""
    n_motions = len(next(iter(terms)))
    steps = first_terms(n_motions)
    beyond = {_plus(term, step) for term in terms for step in steps} - set(terms)

    def may_follow(term: Term) -> bool:
        lower = [_plus(term, step, -1) for step in steps]
        known = all(one in terms for one in lower if min(one) >= 0)
        n_moving = int(np.count_nonzero(term))
        allowed = n_moving <= len(max_levels)
        return known and allowed and sum(term) <= max_levels[n_moving - 1]

    return tuple(sorted(filter(may_follow, beyond)))


def _plus(term: Term, step: Term, times: int = 1) -> Term:
    return tuple(level + times * more for level, more in zip(term, step, strict=True))
