"""Columns of a file of particles as numbers; a value that is none is named."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manifactor._support.parameters import as_number

Values = Sequence[str] | np.ndarray


def floats(values: Values, name: str, path: Path, *, what: str = "a number") -> np.ndarray:
    """Return a column as floats, which may be NaN or infinite.

    >>> floats(["1", "2.5"], "rlnVoltage", Path("a.star"))
    array([1. , 2.5])
    """
    try:
        return np.asarray(values, dtype=float)
    except (ValueError, TypeError):
        cells = np.asarray(values)
    found = [as_number(cell) for cell in cells.ravel()]
    good = np.array([number is not None for number in found])
    _require(good.reshape(cells.shape), values, name, path, what)
    return np.array(found, dtype=float).reshape(cells.shape)


def finite(values: Values, name: str, path: Path) -> np.ndarray:
    """Return a column as finite floats."""
    what = "a finite number"
    found = floats(values, name, path, what=what)
    _require(np.isfinite(found), values, name, path, what)
    return found


def positive(values: Values, name: str, path: Path) -> np.ndarray:
    """Return a column as finite floats above 0."""
    found = finite(values, name, path)
    _require(found > 0, values, name, path, "a number above 0")
    return found


def whole(values: Values, name: str, path: Path) -> np.ndarray:
    """Return a column as whole numbers."""
    what = "a whole number"
    found = floats(values, name, path, what=what)
    # Larger ones are not exact in double precision.
    is_whole = (np.abs(found) < 2**53) & (found == np.rint(found))
    _require(is_whole, values, name, path, what)
    return found.astype(np.int64)


def _require(good: np.ndarray, values: Values, name: str, path: Path, what: str) -> None:
    if not good.all():
        raise _wrong(values, int(np.argwhere(~good)[0][0]), name, path, what)


def _wrong(values: Values, row: int, name: str, path: Path, what: str) -> ValueError:
    value = values[row]
    shown = value if isinstance(value, str) else np.asarray(value).tolist()
    return ValueError(
        f"{path} must state {what} as {name} in every row; row {row + 1} has "
        f"{str(shown)[:60]!r}. Repair it, or leave the row out."
    )
