"""The block of vectors that a filtered subspace iteration begins with."""

from typing import Any

import numpy as np
from numpy.random import Generator

from manifactor.spectral.eigenpairs import Start
from manifactor.spectral.filter_plan import (
    FilterPlan,
    FilterSettings,
    chebyshev_filter,
)
from manifactor.spectral.operators import Operator
from manifactor.spectral.resident import from_tensor


def first_block(
    operator: Operator,
    width: int,
    plan: FilterPlan,
    *,
    start: Start | None,
    rng: Generator,
) -> Any:
    """Return random vectors, or those of the start, without what is rough in them."""
    if start is None:
        block = operator.random(width, rng)
    else:
        block = operator.filled(start.rows, start.vectors[:, :width])
    smoothing = plan.rough()
    for rough in smoothing:
        degree = int(np.ceil(plan.settings.rough_gain / rough.gain))
        block = chebyshev_filter(operator, block, rough, max(2, degree))
    if smoothing and start is not None and start.first is not None:
        _divide_by_first(operator, block, start.first, plan.settings)
    return block


def _divide_by_first(
    operator: Operator, block: Any, first: np.ndarray, settings: FilterSettings
) -> None:
    """Scale the samples' values, so that the first vector of a block is the known one.

    Vectors that were known on some samples and are smoothed are larger where there are
    more of these samples around. The first vector shows by how much.
    """
    found = from_tensor(operator.vectors(block, np.arange(1)))[:, 0] / first
    typical = np.median(found)
    # A ratio: vectors have no sign.
    relative = np.maximum(found / typical, settings.least_first)
    operator.scale_rows(block, 1 / relative)
