"""Arithmetic that has no name in Python or NumPy."""

from typing import overload

import numpy as np


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up.

    Examples
    --------
    >>> ceil_div(10, 4), ceil_div(8, 4), ceil_div(0, 4)
    (3, 2, 0)
    """
    return (numerator + denominator - 1) // denominator


@overload
def quotient(numerator: float, denominator: float) -> float: ...


@overload
def quotient(numerator: np.ndarray | float, denominator: np.ndarray) -> np.ndarray: ...


def quotient(
    numerator: np.ndarray | float, denominator: np.ndarray | float
) -> np.ndarray | float:
    """Return the quotient by numbers that are not negative, finite where they are 0.

    There it is 0 if the numerator is 0 too, and very large otherwise.

    Examples
    --------
    >>> quotient(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    # Below any variance or length that counts, and above the smallest number by far
    # enough that no quotient overflows.
    return numerator / np.maximum(denominator, 1e-300)
