"""Whole-number arithmetic that has no name in Python."""


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up.

    Examples
    --------
    >>> ceil_div(10, 4), ceil_div(8, 4), ceil_div(0, 4)
    (3, 2, 0)
    """
    return (numerator + denominator - 1) // denominator
