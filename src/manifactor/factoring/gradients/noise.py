"""Noise of a number that all samples show, read from halves of the samples.

The same kernel between a random half of the samples has the same bias and twice the variance, so a
half shows about twice the noise of the whole. What the halves add to a number, on average, is
therefore about the noise in the number itself. Structure, which the halves show as the whole does,
cancels in the difference. Near 0 the estimate is too large: on a square of 1,500 samples q is 0.01,
and halves add 0.23 to it.

Both functions return 0 where there are no halves to compare with, and where the halves differ in
the direction in which noise does not push the number.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Numbers: TypeAlias = float | np.ndarray  # one, or several of them


def excess_in_halves(value: Numbers, in_halves: Sequence[Numbers]) -> np.ndarray:
    """Return the noise of a number that noise raises: what halves add to it.

    >>> float(excess_in_halves(0.25, [0.5, 1.0]))
    0.5
    >>> float(excess_in_halves(0.25, [])), float(excess_in_halves(0.25, [0.125]))
    (0.0, 0.0)
    """
    if not len(in_halves):
        return np.zeros_like(value)
    mean = np.mean(np.asarray(in_halves), axis=0)
    return np.maximum(mean - value, 0)


def deficit_in_halves(value: Numbers, in_halves: Sequence[Numbers]) -> np.ndarray:
    """Return the noise of a number that noise lowers: what halves lose of it.

    >>> float(deficit_in_halves(1.0, [0.5, 0.25])), float(deficit_in_halves(0.5, [1.0]))
    (0.625, 0.0)
    """
    if not len(in_halves):
        return np.zeros_like(value)
    mean = np.mean(np.asarray(in_halves), axis=0)
    return np.maximum(value - mean, 0)
