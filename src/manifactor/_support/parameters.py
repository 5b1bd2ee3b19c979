"""Checks of arguments, and what was chosen automatically."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

# Parameters of an estimator that are numbers, or "auto".
AUTOMATIC = {"n_factors", "n_functions", "n_neighbors", "bandwidth", "fit_samples"}
AUTOMATIC |= {"eigenvalue_tolerance", "similarity_threshold"}


def require_unmasked(X, argument: str = "X") -> None:
    """Refuse arrays with masked values, which would be used as if they were not."""
    if count := np.ma.count_masked(X) if np.ma.isMaskedArray(X) else 0:
        raise ValueError(
            f"`{argument}` must not have masked values; got {count}. Fill them in, or "
            "leave those samples out."
        )


def require_columns_of_numbers(X) -> None:
    """Refuse a data frame with cells that are not numbers; leave all others alone."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    cells = {name: _first_no_number(np.asarray(X[name])) for name in X.columns}
    names = [name for name, cell in cells.items() if cell is not None]
    listed, more = ", ".join(map(repr, names[:4])), ""
    if len(names) > 4:
        listed, more = f"{listed}, ...", f", {len(names)} columns in all"
    if names:
        raise ValueError(
            f"`X` must hold numbers only; column {names[0]!r} holds {str(cells[names[0]])[:40]!r}. "
            f"Leave out what is not a measurement: X.drop(columns=[{listed}]){more}."
        )


def _first_no_number(column: np.ndarray):
    """Return the first cell that is neither a number nor missing; None without one."""
    if column.dtype.kind in "fiubc":
        return None
    # Missing dates are dates, too.
    dated = column.dtype.kind in "mM"
    # A name that two columns share gives both.
    for cell in column.ravel():
        if dated or (as_number(cell) is None and not _is_missing(cell)):
            return cell
    return None


def _is_missing(cell) -> bool:
    """Return whether a cell is None, or the NA or NaT of pandas, which does not equal itself."""
    try:
        return cell is None or not bool(cell == cell)
    except TypeError:  # NA is neither true nor false
        return True
    except ValueError:  # an array is neither, and no missing value
        return False


def as_number(cell: Any) -> float | None:
    """Return a cell of a table as a number; None if it is none."""
    # Dates are not numbers, though numpy converts those in nanoseconds.
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return None
    try:
        return float(cell)
    except (ValueError, TypeError, OverflowError):
        return None


def require_choice(name: str, value, choices: Collection[str], more: str = "") -> None:
    """Refuse a value that is not among the choices."""
    if isinstance(value, str) and value in choices:
        return
    listed = ", ".join(map(repr, choices))
    raise ValueError(f"`{name}` must be one of {f'{listed} {more}'.strip()}; got {value!r}.")


def require_number(
    name: str, value, *, low: float = -np.inf, high: float = np.inf, above: float = -np.inf
) -> None:
    """Refuse a value that is not a finite number in [low, high] and greater than above."""
    # In Python, True is a number; as an argument it is a mistake.
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_number else np.nan
    if np.isfinite(number) and low <= number <= high and number > above:
        return
    bounds = f"above {above:g}" if np.isfinite(above) else f"in [{low:g}, {high:g}]"
    raise ValueError(f"`{name}` must be {_or_auto(name)}a number {bounds}; got {value!r}.")


def require_count(name: str, value, *, low: int, high: int, n_samples: int | None = None) -> int:
    """Return the value as an int if it is a whole number in [low, high]."""
    # As in scikit-learn, a float is refused even where it is whole.
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and low <= int(value) <= high:
        return int(value)
    advice = "" if n_samples is None else f" with {n_samples} samples. Change it or add samples"
    needed = f"{_or_auto(name)}a whole number in [{low}, {high}]"
    raise ValueError(f"`{name}` must be {needed}; got {value!r}{advice}.")


def _or_auto(name: str) -> str:
    return "'auto' or " if name in AUTOMATIC else ""


def require_indices(name: str, value, *, low: int, high: int, of: str) -> None:
    """Refuse what is not a sequence of indices in [low, high] of the things named `of`."""
    if np.ndim(value) != 1:
        raise ValueError(f"`{name}` must be a sequence of indices of {of}; got {value!r}.")
    for index in value:
        require_count(name, index, low=low, high=high)


# What was chosen automatically, and why.

GIVEN = "set by the caller"


@dataclass(frozen=True)
class Choice:
    """A value and the reason for it, as one phrase.

    Attributes
    ----------
    value : object
    why : str
        Begins in lower case and has no full stop; `GIVEN` where the caller decided.

    Examples
    --------
    >>> Choice("kd_tree", "a tree is fastest in few dimensions")
    Choice(value='kd_tree', why='a tree is fastest in few dimensions')
    """

    value: Any
    why: str

    @property
    def automatic(self) -> bool:
        """Whether the program decided."""
        return self.why != GIVEN


def given(value: Any) -> Choice:
    """A choice that the caller made."""
    return Choice(value, GIVEN)


def choices_as_json(choices: Mapping[str, Choice]) -> dict[str, dict]:
    """Return choices as run.json has them; records become their names in words."""
    entries = {}
    for name, choice in choices.items():
        value = choice.value.item() if isinstance(choice.value, np.generic) else choice.value
        plain = isinstance(value, str | int | float | None)
        entries[name] = {"value": value if plain else str(value), "why": choice.why}
    return entries
