"""Coordinates of intervals freed from the other factors, where samples are in equilibrium.

Independent latents are independent in equilibrium: the share of samples below a place on one of
them, among samples at the same place on the others, is then a function of that place alone. Small
errors of a coordinate, which change its order with the other factors, do not change this share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.threads import row_slices
from manifactor.factors.factor import Factor, Reading
from manifactor.models.moves.integration import Integrated, Step
from manifactor.operators.operator import Operator
from manifactor.statistics import random_rows

# The part of the samples, one in so many, that are next to a place on the other factors. Of wells,
# fewer make places rough, and leave more of the others.
ALIKE = 3
# Samples that others are compared with, at most.
MOST_COMPARED = 3000


@dataclass(frozen=True)
class Unmixed(Integrated):
    """Places of which lines are what is added to a coordinate, (n_samples,)."""

    def along(self, line: np.ndarray, factor: Factor, rough: np.ndarray, step: Step) -> np.ndarray:
        """Return the coordinate at new samples, given that of the functions."""
        shift = _mean(sp.csr_array(step.weights), line[step.diffusion.graph.distinct])
        return np.clip(rough + shift, 0, 1)


def unmixed(
    factors: Sequence[Factor], readings: Sequence[Reading], diffusion: Operator
) -> tuple[tuple[Factor, ...], Unmixed]:
    """Return factors with coordinates of intervals that are independent of the others'."""
    # Twice: what a coordinate is freed from must be free itself.
    shifts = _shifts(factors, [factor.embedding for factor in factors])
    shifts = _shifts(factors, [_places(*pair) for pair in zip(factors, shifts, strict=True)])
    rows, inverse = diffusion.graph.distinct, diffusion.graph.inverse
    weights = sp.csr_array(diffusion.steps_from(diffusion.distinct_points)[0])
    out = []
    for factor, shift in zip(factors, shifts, strict=True):
        if shift is not None:
            # The mean of neighbours, as for new samples: a share of a few hundred is rough.
            smooth = _mean(weights, shift[rows])[inverse]
            places = np.clip(_places(factor, smooth), 0, 1)
            factor = replace(factor, coordinate=places[:, 0], embedding=places)
        out.append(factor)
    return tuple(out), Unmixed(tuple(readings), tuple(shifts))


def _mean(weights: sp.csr_array, shift: np.ndarray) -> np.ndarray:
    sums = weights.sum(axis=1)
    return weights @ shift / np.where(sums > 0, sums, 1)


def _places(factor: Factor, shift: np.ndarray | None) -> np.ndarray:
    return factor.embedding if shift is None else factor.embedding + shift[:, None]


def _shifts(factors: Sequence[Factor], places: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """Return how samples move on each factor to be independent of these places on the others.

    Only on intervals do they move.
    """
    return [
        _shift(factor.embedding[:, 0], np.hstack([*places[:k], *places[k + 1 :]]))
        if factor.topology == "interval"
        else None
        for k, factor in enumerate(factors)
    ]


def _shift(along: np.ndarray, others: np.ndarray) -> np.ndarray:
    some = random_rows(len(along), MOST_COMPARED)
    known, tree = along[some], KDTree(others[some])
    shares = []
    for rows in row_slices(len(along), 5000):
        near = known[tree.query(others[rows], len(some) // ALIKE)[1]]
        own = along[rows, None]
        shares.append(((near < own).mean(axis=1) + (near <= own).mean(axis=1)) / 2)
    return np.quantile(along, np.concatenate(shares)) - along
