"""The block of vectors that a filtered subspace iteration begins with."""

from typing import Any

import numpy as np
from numpy.random import Generator

from manifactor.spectral.eigenpairs import Start
from manifactor.spectral.filter_plan import FilterPlan, FilterSettings, chebyshev_filter
from manifactor.spectral.operators import Operator
from manifactor.spectral.resident import from_tensor


def first_block(
    operator: Operator, width: int, plan: FilterPlan, *, start: Start | None, rng: Generator
) -> Any:
    """Return random vectors, or those of the start, without what is rough in them."""
    if start is None:
        block = operator.random(width, rng)
    else:
        block = _extended(operator, start, width, settings=plan.settings)
    for rough in plan.rough():
        degree = int(np.ceil(plan.settings.rough_gain / rough.gain))
        block = chebyshev_filter(operator, block, rough, max(2, degree))
    return block


def _extended(operator: Operator, start: Start, width: int, *, settings: FilterSettings) -> Any:
    """Return vectors that are known on some samples as vectors on all of them.

    Steps of the walk sum the values around each sample. The sums are larger where there are more
    known samples around; those of the first vector show by how much, so that dividing by them
    leaves means.
    """
    block = operator.filled(start.rows, start.vectors[:, :width])
    if start.first is None:
        return block
    around = operator.entries * len(start.rows) / operator.n
    for _ in range(int(np.ceil(settings.known_around / around))):
        block = operator.product(block)
    found = from_tensor(operator.vectors(block, np.arange(1)))[:, 0]
    # Out of reach of all known samples, vectors stay 0.
    reached = np.abs(found) > np.finfo(np.float32).tiny
    factors = np.divide(start.first, found, out=np.zeros(operator.n), where=reached)
    operator.scale_rows(block, factors)
    return block
