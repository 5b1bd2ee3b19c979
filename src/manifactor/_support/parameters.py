"""Checks of what a caller gives: what must hold, what was given, what to do."""

from numbers import Integral, Real

import numpy as np


def require_finite(X: np.ndarray) -> None:
    """Refuse NaN and infinite values."""
    if np.isfinite(X.sum(dtype=np.float64)):
        return
    bad = ~np.isfinite(X)
    if bad.any():
        where = np.argwhere(bad)[0]
        place = (
            f"row {where[0]}, column {where[1]}" if X.ndim == 2 else f"entry {where[0]}"
        )
        raise ValueError(
            f"`X` must be finite; got {int(bad.sum())} NaN or inf values, the first in {place}. "
            "Remove those samples or fill the values in."
        )


def require_choice(name: str, value, choices, more: str = "") -> None:
    """Refuse a value that is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"`{name}` must be one of {listed}{' ' + more if more else ''}; got {value!r}."
        )


def require_number(
    name: str,
    value,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    above: float = -np.inf,
) -> None:
    """Refuse what is no finite number within the bounds."""
    number = (
        float(value)
        if isinstance(value, Real) and not isinstance(value, bool)
        else np.nan
    )
    if not (np.isfinite(number) and low <= number <= high and number > above):
        bounds = (
            f"a number above {above:g}"
            if np.isfinite(above)
            else f"a number in [{low:g}, {high:g}]"
        )
        raise ValueError(f"`{name}` must be {bounds}; got {value!r}.")


def require_count(
    name: str, value, low: int, high: int, n_samples: int | None = None
) -> int:
    """The value as an int, if it is a whole number within the bounds."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or not low <= int(value) <= high
    ):
        samples = (
            ""
            if n_samples is None
            else f" with {n_samples} samples. Change it or add samples"
        )
        raise ValueError(
            f"`{name}` must be a whole number in [{low}, {high}]; got {value!r}{samples}."
        )
    return int(value)


def require_indices(name: str, value, n_functions: int) -> None:
    """Refuse what is no sequence of indices of non-constant functions."""
    if np.ndim(value) != 1:
        raise ValueError(
            f"`{name}` must be a sequence of indices of functions; got {value!r}."
        )
    for index in value:
        require_count(name, index, 1, n_functions - 1)
