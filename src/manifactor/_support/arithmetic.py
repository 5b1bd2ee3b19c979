"""Arithmetic that has no name in Python or NumPy."""

from typing import overload

import numpy as np


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up.

    >>> ceil_div(10, 4), ceil_div(8, 4), ceil_div(0, 4)
    (3, 2, 0)
    """
    return (numerator + denominator - 1) // denominator


@overload
def quotient(numerator: float, denominator: float) -> float: ...


@overload
def quotient(numerator: np.ndarray | float, denominator: np.ndarray) -> np.ndarray: ...


def quotient(numerator: np.ndarray | float, denominator: np.ndarray | float) -> np.ndarray | float:
    """Return the quotient by numbers that are not negative, never nan where they are 0.

    There it is 0 if the numerator is 0 too, and very large or infinite otherwise.

    >>> quotient(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    >>> quotient(np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32))
    array([0.], dtype=float32)
    """
    dtype = np.result_type(numerator, denominator, 0.0)
    # A smaller number would be 0 in single precision.
    smallest = np.finfo(dtype).tiny
    with np.errstate(over="ignore"):
        return numerator / np.maximum(denominator, smallest)
