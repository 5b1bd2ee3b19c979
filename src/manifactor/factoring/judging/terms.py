"""The evidence on a sum some of whose terms have several factors."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from manifactor.factoring.judging.evidence import Evidence


def weigh_terms(of_sum: Evidence, inside: Mapping[int, Evidence]) -> Evidence:
    """Return the evidence on all factors of a sum with divided terms.

    A test that fails anywhere makes the verdict "partial".

    >>> between = np.array([[np.nan, 0.1], [0.2, np.nan]])
    >>> inner = Evidence((), leakage=np.array([[np.nan, 0.3], [0.4, np.nan]]))
    >>> found = weigh_terms(Evidence((), leakage=between), {0: inner})
    >>> found.terms
    ((1, 2), (3,))
    >>> found.leakage
    array([[nan, 0.3, 0.1],
           [0.4, nan, 0.1],
           [0.2, 0.2, nan]])
    """
    sizes = [inside[term].n_factors if term in inside else 1 for term in range(of_sum.n_factors)]
    tests = [test.of_term(term + 1) for term, each in inside.items() for test in each.tests]
    both = [of_sum, *inside.values()]
    return replace(
        of_sum,
        tests=(*of_sum.tests, *tests),
        leakage=_leakage(of_sum.leakage, sizes, inside),
        # Numbers that were not measured are nan, and do not count.
        null=float(np.fmax.reduce([each.null for each in both])),
        dependence=float(np.fmin.reduce([each.dependence for each in both])),
        terms=_numbers(sizes),
    )


def _numbers(sizes: list[int]) -> tuple[tuple[int, ...], ...]:
    """Numbers of the factors of each term, from 1."""
    ends = np.cumsum(sizes).tolist()
    return tuple(
        tuple(range(end - size + 1, end + 1)) for size, end in zip(sizes, ends, strict=True)
    )


def _leakage(between: np.ndarray, sizes: list[int], inside: Mapping[int, Evidence]) -> np.ndarray:
    """Leakage between all factors: that between terms, and inside each term."""
    leakage = np.repeat(np.repeat(between, sizes, axis=0), sizes, axis=1)
    ends = np.cumsum(sizes)
    for term, each in inside.items():
        own = slice(ends[term] - sizes[term], ends[term])
        leakage[own, own] = each.leakage
    return leakage
