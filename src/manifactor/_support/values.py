"""Values of samples: finite, with squares that neither overflow nor vanish."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

# What to do about samples with bad values.
REMEDIES = ("remove those samples", "fill the values in")

# Squares of values end at 1e308 in double precision, and at 3e38 in single. The margin allows sums
# of 10^8 squared differences. Squares of differences below the least spread vanish, or lose digits.
LARGEST, LARGEST_SINGLE = 1e150, 1e15
LEAST_SPREAD, LEAST_SPREAD_SINGLE = 1e-150, 1e-15


@dataclass(frozen=True)
class BadValues:
    """How many values are not finite, or, where all are, too large, and the first of them."""

    count: int
    place: tuple[int, ...]
    value: float
    limit: float  # what finite values must stay below

    def message(
        self,
        what: str,
        names: Sequence[str | int] | None,
        *,
        first_row: int = 0,
        where: str = "",
        remedies: Sequence[str] = REMEDIES,
    ) -> str:
        """Describe the first bad value and how to fix it; `where` is appended to its place."""
        row, *column = self.place
        place = f"entry {row}{where}"
        if column:
            place = f"row {row + first_row}, column {_label(column[0], names)}{where}"
        if not np.isfinite(self.value):
            return (
                f"{what} must be finite; got {self.count} NaN or inf values, the first "
                f"in {place}. {', or '.join(remedies).capitalize()}."
            )
        return (
            f"values of {what} must be smaller than {self.limit:.0e}, so that their "
            f"squares are finite; got {self.count} that are not, the first, "
            f"{self.value:.2g}, in {place}. Such a number is a usual mark for missing "
            f"values: {', or '.join(remedies)}, or divide all columns by a common number."
        )


def bad_values(X: np.ndarray, *, precision: np.typing.DTypeLike | None = None) -> BadValues | None:
    """Return what is not finite, or has a square that is not; None for good values."""
    single = (X.dtype if precision is None else precision) == np.float32
    limit = LARGEST_SINGLE if single else LARGEST
    # NaN is neither.
    if not X.size or (float(X.min()) > -limit and float(X.max()) < limit):
        return None
    bad = ~np.isfinite(X)
    if not bad.any():
        bad = np.abs(X) >= limit
    place = tuple(int(index) for index in np.argwhere(bad)[0])
    return BadValues(int(bad.sum()), place, float(X[place]), limit)


def require_values(
    X: np.ndarray,
    *,
    first_row: int = 0,
    names: Sequence[str | int] | None = None,
    argument: str = "X",
) -> None:
    """Refuse values, (n_samples, n_features) or (n,), whose squares are not finite.

    Distances would be NaN or infinite, for which searches name samples that do not exist.
    """
    if bad := bad_values(X):
        raise ValueError(bad.message(f"`{argument}`", names, first_row=first_row))


def _label(column: int, names: Sequence[str | int] | None) -> str:
    return str(column) if names is None else repr(names[column])


def require_spread(X: np.ndarray, *, names: Sequence[str | int] | None = None) -> None:
    """Refuse samples, (n_samples, n_features), whose differences vanish, squared or beside values.

    Samples that are all equal pass.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    spread = float((high - low).max())
    least = LEAST_SPREAD_SINGLE if X.dtype == np.float32 else LEAST_SPREAD
    if 0 < spread < least:
        raise ValueError(
            f"values of `X` must differ by more than {least:.0e}, so that the squares of distances "
            f"are not 0; got {spread:.1e}. Multiply all columns by a common number."
        )
    # All values of a column have at least this size, if they have the same sign.
    size = np.maximum(low, -high).astype(np.float64)
    # Beyond this ratio, rounding of the mean exceeds the spread.
    if 0 < spread < size.max() / 1e16:
        raise ValueError(
            "values of `X` must be smaller than 1e+16 times their differences, as numbers have 16 "
            f"digits; those of column {_label(int(size.argmax()), names)} are {size.max():.2g} or "
            f"more, and samples differ by {spread:.2g}. Such a number is a usual mark for missing "
            "values: leave the column out, or subtract a common number from it."
        )


# Arithmetic that has no name in Python or NumPy.


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up."""
    return (numerator + denominator - 1) // denominator


Numbers = TypeVar("Numbers", float, np.ndarray)


def quotient(numerator: Numbers | float, denominator: Numbers) -> Numbers:
    """Return the quotient by numbers that are not negative; by 0 it is 0, or very large."""
    # A smaller number would be 0 in single precision.
    smallest = np.finfo(np.result_type(numerator, denominator, 0.0)).tiny
    with np.errstate(over="ignore"):
        return numerator / np.maximum(denominator, smallest)
