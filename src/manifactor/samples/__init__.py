"""Samples as they are given to a factorization, checked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Samples:
    """What is the same in all models: columns, moves and noise of the samples."""

    columns: Any  # (n_samples, n_features), or a sparse matrix of distances
    names: Sequence[str | int] | None = None  # of the columns
    moves: Any = None  # a metric, a trajectory, bursts or pairs
    noise: np.ndarray | None = None  # (n_features,): its standard deviation in every column
    # For the operators; the search for factors draws the same numbers in every fit
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    rows: np.ndarray | None = None  # numbers of the samples that were drawn; None for all
    # The same as pairs at a longer lag, given a verdict by the metric of short moves, if these
    # may tell more
    as_pairs: "Callable[[str], Samples | None] | None" = None
    frame: Any = None  # what the caller's data frame says of these rows
    precision: type[np.floating] = np.float64  # of the caller's array
    n_given: int = 0  # number of rows as given, if copies of others were left out
