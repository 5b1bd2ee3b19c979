"""Values of samples: finite, with squares that neither overflow nor vanish."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

# What to do about samples with bad values.
REMEDIES = ("remove those samples", "fill the values in")


# Squares of values end at 1e308 in double precision, and at 3e38 in single. The margin allows sums
# of 10^8 squared differences. Squares of differences below the least spread vanish, or lose digits.
LARGEST, LARGEST_SINGLE = 1e150, 1e15
LEAST_SPREAD, LEAST_SPREAD_SINGLE = 1e-150, 1e-15
# Numbers whose extremes are taken at a time. They stay in the processor's cache, so that samples
# are read once from memory, or from their file.
NUMBERS_PER_STEP = 2**16


@dataclass(frozen=True)
class BadValues:
    """Values that are not finite, or, where all are, too large."""

    count: int  # number of such values
    place: tuple[int, ...]  # indices of the first
    value: float  # the first
    limit: float  # what finite values must stay below

    def words(self, what: str, where: str, *remedies: str) -> str:
        """Return the message of an error."""
        if not np.isfinite(self.value):
            return (
                f"{what} must be finite; got {self.count} NaN or inf values, the first "
                f"in {where}. {_either(*remedies).capitalize()}."
            )
        divided = "divide all columns by a common number"
        return (
            f"values of {what} must be smaller than {self.limit:.0e}, so that their "
            f"squares are finite; got {self.count} that are not, the first, "
            f"{self.value:.2g}, in {where}. Such a number is a usual mark for missing "
            f"values: {_either(*remedies, divided)}."
        )


def _either(*remedies: str) -> str:
    """Return some of which one is to be chosen, in words."""
    *others, last = remedies
    return f"{', '.join(others)}, or {last}" if others else last


def bad_values(X: np.ndarray, *, precision: np.typing.DTypeLike | None = None) -> BadValues | None:
    """Return what is not finite, or has a square that is not; None for good values."""
    single = (X.dtype if precision is None else precision) == np.float32
    limit = LARGEST_SINGLE if single else LARGEST
    if not X.size or _squares_are_small(X, limit):
        return None
    low, high = extremes(X)
    # NaN is neither.
    if low > -limit and high < limit:
        return None
    bad = ~np.isfinite(X)
    if not bad.any():
        bad = np.abs(X) >= limit
    place = tuple(int(index) for index in np.argwhere(bad)[0])
    return BadValues(int(bad.sum()), place, float(X[place]), limit)


def _squares_are_small(X: np.ndarray, limit: float) -> bool:
    """Return whether the sum of squares shows that all values lie below the limit.

    It takes half as long as both extremes. Where it is large, they have to tell.
    """
    if not X.flags.c_contiguous:
        return False
    flat = X.reshape(-1)
    with np.errstate(over="ignore"):
        # Half of what one value at the limit gives: sums are rounded. NaN is not less.
        return bool(np.dot(flat, flat) < limit**2 / 2)


def extremes(X: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest value; NaN if there is one.

    >>> extremes(np.array([[3.0, 1.0], [2.0, 5.0]]))
    (1.0, 5.0)
    """
    step = max(1, NUMBERS_PER_STEP // max(1, X.size // len(X)))
    blocks = [X[start : start + step] for start in range(0, len(X), step)]
    low, high = np.array([(block.min(), block.max()) for block in blocks]).T
    return float(low.min()), float(high.max())


def require_values(
    X: np.ndarray,
    *,
    first_row: int = 0,
    names: Sequence[str | int] | None = None,
    argument: str = "X",
) -> None:
    """Refuse values that are not finite, and those whose squares are not.

    Distances would be NaN or infinite, for which searches name samples that do not exist.

    Shapes: X (n_samples, n_features) or (n,).
    """
    found = bad_values(X)
    if found is None:
        return
    row, *column = found.place
    row += first_row
    place = f"entry {row}"
    if column:
        place = f"row {row}, column {_label(column[0], names)}"
    raise ValueError(found.words(f"`{argument}`", place, *REMEDIES))


def _label(column: int, names: Sequence[str | int] | None) -> str:
    return str(column) if names is None else repr(names[column])


def require_spread(X: np.ndarray, *, names: Sequence[str | int] | None = None) -> None:
    """Refuse samples whose differences vanish, squared or beside their values.

    Samples that are all equal pass.

    Shapes: X (n_samples, n_features).
    """
    low, high = X.min(axis=0), X.max(axis=0)
    spread = float((high - low).max())
    least = LEAST_SPREAD_SINGLE if X.dtype == np.float32 else LEAST_SPREAD
    if 0 < spread < least:
        raise ValueError(
            f"values of `X` must differ by more than {least:.0e}, so that the squares "
            f"of distances are not 0; got {spread:.1e}. Multiply all columns by a "
            "common number."
        )
    # All values of a column have at least this size, if they have the same sign.
    size = np.maximum(low, -high).astype(np.float64)
    # Beyond this ratio, rounding of the mean exceeds the spread.
    if 0 < spread < size.max() / 1e16:
        raise ValueError(
            "values of `X` must be smaller than 1e+16 times their differences, as numbers have 16 "
            "digits; those of column "
            f"{_label(int(size.argmax()), names)} are {size.max():.2g} or more, and "
            f"samples differ by "
            f"{spread:.2g}. Such a number is a usual mark for missing values: leave "
            "the column out, or subtract a common number from it."
        )


# Arithmetic that has no name in Python or NumPy.


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
