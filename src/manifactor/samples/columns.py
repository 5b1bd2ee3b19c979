"""Columns that are likely not measurements, or not in the units of the others."""

import shlex
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import Warned, listed

# A column differs in scale if its spread is this many times that of the other columns, or the
# other way round. Factors of a product may differ thirtyfold in size and still be found.
SCALE_RATIO = 100.0

# The spreads of more columns, such as pixels, vary widely. There a column is named only if it is
# among the few largest, with a gap to all others.
MANY_COLUMNS = 64

# Names of columns, or their numbers in a table of which some columns were left out.
Labels = Sequence[str | int]

# What is said of columns.
MEANINGS = {
    "scale": "differ{s} in scale from other columns a hundredfold or more",
    "index": "order{s} or number{s} the rows, as an index or a time does",
    "label": "hold{s} a few whole numbers, as {labels}",
    "constant": "{are} constant",
}


class ColumnWarning(UserWarning):
    """Columns that may hide the structure of the others."""


# Columns, counted from 0, by the kind of `MEANINGS`.
Suspicions = dict[str, tuple[int, ...]]


def suspicious_columns(X: np.ndarray) -> Suspicions:
    """Return the columns of samples that may hide the structure of the others."""
    if not _is_comparable(X):
        return {}
    some = _some_rows(X)
    low, high = np.quantile(some, [0.05, 0.95], axis=0)
    spread = np.where(high > low, high - low, np.ptp(some, axis=0))
    index = _index_columns(X)
    label = _label_columns(some, index)
    # The scale of an index or a label means nothing.
    scale = _apart_in_scale(spread, index | label)
    found = _named(scale=scale, index=index, label=label, constant=spread == 0)
    # Constant columns alone are harmless.
    return {} if [*found] == ["constant"] else found


def _named(**kinds: np.ndarray) -> Suspicions:
    """Return the columns of those kinds that there are."""
    found = {kind: tuple(np.flatnonzero(which).tolist()) for kind, which in kinds.items()}
    return {kind: columns for kind, columns in found.items() if columns}


def _is_comparable(X: np.ndarray) -> bool:
    # The values of fewer samples may be in order by chance.
    return len(X) >= 20 and X.shape[1] >= 2


def _some_rows(X: np.ndarray) -> np.ndarray:
    """Return 2,000 rows or more from all over a table: quantiles are known to a few per cent."""
    return np.asarray(X[:: max(1, len(X) // 2000)])


def _varying(some: np.ndarray) -> np.ndarray:
    return (some != some[0]).any(axis=0)


def _apart_in_scale(spread: np.ndarray, skipped: np.ndarray) -> np.ndarray:
    """Return which columns differ in scale from the others."""
    apart = np.zeros(len(spread), dtype=bool)
    compared = np.flatnonzero(~skipped & (spread > 0))
    sizes = spread[compared]
    if len(compared) > MANY_COLUMNS:
        apart[compared] = _apart_from_many(sizes)
        return apart
    falling = bool((np.diff(sizes) <= 0).all())
    # Spreads that fall from each of 5 columns to the next are those of principal components.
    if len(compared) < 2 or (falling and len(compared) >= 5):
        return apart
    for i, column in enumerate(compared):
        # The lower one of two middle values: among (1, 1, 1000) only the last differs.
        others = np.sort(np.delete(sizes, i))
        middle = others[(len(others) - 1) // 2]
        apart[column] = max(sizes[i] / middle, middle / sizes[i]) >= SCALE_RATIO
    if not apart.any():
        # Of many units, no column may be far from the middle, but the largest from the smallest.
        apart[compared] = np.maximum(sizes / sizes.min(), sizes.max() / sizes) >= SCALE_RATIO
    return apart


def _apart_from_many(sizes: np.ndarray) -> np.ndarray:
    """Return which of many columns are larger than all others by a wide gap."""
    descending = np.sort(sizes)[::-1]
    few = max(1, int(0.05 * len(sizes)))
    wide = np.flatnonzero(descending[:few] / descending[1 : few + 1] >= SCALE_RATIO)
    return sizes >= (descending[wide[-1]] if len(wide) else np.inf)


def numbering_columns(X: np.ndarray) -> np.ndarray:
    """Return which columns number the rows, in any order.

    Their values are evenly spaced, or whole numbers of a small range, and all different. None is
    returned if all columns that vary are like that, as in a design of experiments.
    """
    # The first rows show that most columns do not number the rows.
    first = np.asarray(X[:100])
    found = np.asarray((np.diff(np.sort(first, axis=0), axis=0) > 0).all(axis=0))
    # Every value of many columns, such as pixels, would take long to read.
    if X.shape[1] > MANY_COLUMNS:
        found &= (first == np.floor(first)).all(axis=0)
    for column in np.flatnonzero(found):
        found[column] = _numbers_rows(np.asarray(X[:, column]))
    return _unless_all(found, X)


def _unless_all(found: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return columns; none of them if no other one varies: what is left must be worth a fit."""
    return found & (_varying(_some_rows(X)) & ~found).any()


def _numbers_rows(values: np.ndarray) -> bool:
    """Return whether values are evenly spaced or whole, and all different."""
    n, low = len(values), values.min()
    length = values.max() - low
    # Evenly spaced values are whole in units of their step, up to rounding.
    steps = (values - low) * ((n - 1) / length)
    if _are_whole(steps, 0.01):
        return bool((np.bincount(np.rint(steps).astype(int)) == 1).all())
    # An index may leave out numbers, as after a draw of samples. Of whole numbers that are drawn at
    # random from the same range, 20 pairs would be equal on average, and none in 1 of 10^8 draws.
    return _are_whole(values) and n**2 / (2 * length) >= 20.0 and len(np.unique(values)) == n


def _are_whole(values: np.ndarray, rounding: float = 0.0) -> bool:
    # The first values tell nearly always.
    return all(
        bool((np.abs(some - np.rint(some)) <= rounding).all()) for some in (values[:100], values)
    )


def _index_columns(X: np.ndarray) -> np.ndarray:
    """Return which columns order the rows, or number them in any order."""
    index = numbering_columns(X)
    for column in np.flatnonzero(_is_ordered(np.asarray(X[:2000]))):
        index[column] |= _is_ordered(np.asarray(X[:, column]))
    return _unless_all(index, X)


def _is_ordered(values: np.ndarray) -> np.ndarray:
    steps = np.diff(values, axis=0)
    return np.asarray((steps > 0).all(axis=0) | (steps < 0).all(axis=0))


def _label_columns(some: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return which columns have few whole numbers while others are continuous."""
    whole = (some == np.floor(some)).all(axis=0)
    label = np.zeros(some.shape[1], dtype=bool)
    measured = ~index & _varying(some)
    # Where most columns hold whole numbers, that is how they are measured.
    if 2 * (whole & measured).sum() > measured.sum():
        return label
    # A label has at most 20 values, each of them in 20 samples on average.
    most = min(20, len(some) // 20)
    for column in np.flatnonzero(whole & measured):
        label[column] = len(np.unique(some[:, column])) <= most
    return label


def column_labels(estimator, given: Any, n_columns: int) -> Labels | None:
    """Return the labels given by the caller, one for each column, else those of a DataFrame."""
    if given is None:
        return getattr(estimator, "feature_names_in_", None)
    # A single word is a sequence, too: of its letters.
    several = isinstance(given, Sized) and not isinstance(given, str | bytes)
    if several and len(given) == n_columns:
        return given
    got = f"{len(given)} names" if several else repr(given)[:60]
    raise ValueError(
        f"`column_names` must be a list with one name for each of the {n_columns} "
        f"columns of `X`; got {got}. Leave it out to count columns from 0."
    )


def in_words(found: Suspicions, names: Labels | None = None) -> str:
    """Return what was found as a sentence; "" for nothing."""
    one = {"s": "s", "are": "is", "labels": "a label does"}
    several = {"s": "", "are": "are", "labels": "labels do"}
    text = "; ".join(
        f"{_listed(each, names)} {MEANINGS[kind].format(**several if len(each) > 1 else one)}"
        for kind, each in found.items()
    )
    return f"{text[0].upper()}{text[1:]}." if text else ""


def remedy(found: Suspicions, names: Labels | None = None) -> str:
    """Return what to do, as sentences with a call of Python and an option each."""
    left_out = sorted({*found.get("index", ()), *found.get("label", ())})
    sentences = []
    if left_out:
        measured = "it is measured" if len(left_out) == 1 else "they are measured"
        few = ", ".join(_first_few(left_out, names, "..."))
        of_frame = names is not None and isinstance(names[left_out[0]], str)
        drop = f"X.drop(columns=[{few}])" if of_frame else f"np.delete(X, [{few}], axis=1)"
        option = _first_few(left_out, names, "...", str)
        sentences.append(
            f"Leave out {_listed(left_out, names)}, unless {measured}: `{drop}` in Python, "
            f"`--drop {shlex.quote(','.join(option))}` on the command line."
        )
    if "scale" in found:
        which = "the other columns" if left_out else "all columns"
        sentences.append(
            f"Bring {which} to one scale: `StandardScaler().fit_transform(X)` in "
            "Python, `--standardise` on the command line."
        )
    return " ".join([*sentences, "Then fit again."]) if sentences else ""


def _listed(columns: Sequence[int], names: Labels | None) -> str:
    """Return columns by name or number, the first few of them."""
    which = listed(_first_few(columns, names, "{} more"))
    return f"{'column' if len(columns) == 1 else 'columns'} {which}"


def _first_few(
    columns: Sequence[int], names: Labels | None, more: str, word: Callable[[Any], str] = repr
) -> list[str]:
    """Return a word for each of the first four columns: a longer list is not read."""
    labels = columns if names is None else [names[column] for column in columns]
    return [*map(word, labels[:4])] + [more.format(len(labels) - 4)] * (len(labels) > 4)


def no_measurements(X) -> Suspicions:
    """Return the columns that number the rows or hold labels: these may look like a factor."""
    if sp.issparse(X) or not _is_comparable(X):  # precomputed distances have no columns
        return {}
    kinds = {"index": numbering_columns(X)}
    # Many columns, such as pixels, hold no labels: some of them are nearly always 0.
    if X.shape[1] <= MANY_COLUMNS:
        kinds["label"] = _label_columns(_some_rows(X), _index_columns(X))
    return _named(**kinds)


def warned_of(columns: Suspicions, names: Labels | None) -> tuple[Warned, ...]:
    """Return the warning of columns; none if they are harmless."""
    what_to_do = remedy(columns, names)
    said = f"{in_words(columns, names)} {what_to_do}"
    return (Warned(said, ColumnWarning),) if what_to_do else ()
