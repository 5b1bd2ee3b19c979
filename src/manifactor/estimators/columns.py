"""Columns that are likely no measurement, or not in the units of the others."""

from dataclasses import dataclass

import numpy as np


class ColumnWarning(UserWarning):
    """Columns that may hide the structure of the others."""


@dataclass(frozen=True)
class ColumnSettings:
    """Settings of `suspicious_columns`."""

    # Times the spread of the other columns. Factors of a product may differ thirtyfold in size and
    # still be found.
    scale_ratio: float = 100.0

    # The spread is the distance between this quantile and the opposite one.
    quantile: float = 0.05

    # Samples that spreads and values are read off: quantiles are then known to a few per cent.
    checked: int = 2000

    # The spreads of more columns, such as pixels, vary widely. There a column is named only if it
    # is among the few largest, with a gap to all others.
    many_columns: int = 64
    few_of_many: float = 0.05

    # Spreads that fall from each of so many columns to the next are those of principal components.
    fewest_falling: int = 5

    # The values of fewer samples may be in order by chance.
    fewest_rows: int = 20

    # A label has at most so many values, each of them in so many samples on average.
    most_labels: int = 20
    samples_per_label: int = 20

    # An index may leave out numbers, as after a draw of samples. Of whole numbers that are drawn at
    # random from the same range, so many pairs would be equal at least, and none in 1 of 10^8
    # draws.
    expected_copies: float = 20.0

    # How far evenly spaced values may lie from a multiple of their step, in steps.
    rounding: float = 0.01

    # Rows by which most columns are seen not to number the rows.
    screened: int = 100


@dataclass(frozen=True)
class Suspicion:
    """Columns of one kind.

    Attributes
    ----------
    kind : "scale", "index", "label" or "constant"
    columns : tuple of int
        Counted from 0.
    """

    kind: str
    columns: tuple[int, ...]


def suspicious_columns(
    X: np.ndarray, *, settings: ColumnSettings = ColumnSettings()
) -> tuple[Suspicion, ...]:
    """Return the columns of samples that may hide the structure of the others.

    >>> X = np.random.default_rng(0).uniform(size=(500, 3)) * [1, 1, 1000]
    >>> suspicious_columns(np.c_[np.arange(500), X])
    (Suspicion(kind='scale', columns=(3,)), Suspicion(kind='index', columns=(0,)))

    Shapes: X (n_samples, n_features).
    """
    if len(X) < settings.fewest_rows or X.shape[1] < 2:
        return ()
    some = np.asarray(X[:: max(1, len(X) // settings.checked)])
    spread = _spread(some, settings)
    index = _index_columns(X, settings)
    label = _label_columns(some, index, settings)
    # The scale of an index or a label means nothing, and is compared with no other.
    no_measurement = index | label
    kinds = {
        "scale": _apart_in_scale(spread, no_measurement, settings),
        "index": index,
        "label": label,
        "constant": spread == 0,
    }
    found = [
        Suspicion(kind, tuple(np.flatnonzero(columns).tolist()))
        for kind, columns in kinds.items()
        if columns.any()
    ]
    harmless = all(suspicion.kind == "constant" for suspicion in found)
    return () if harmless else tuple(found)


def _spread(some: np.ndarray, settings: ColumnSettings) -> np.ndarray:
    """Return the distance between two quantiles of every column.

    If both are equal, the distance between the smallest and the largest value.
    """
    low, high = np.quantile(some, [settings.quantile, 1 - settings.quantile], axis=0)
    whole = some.max(axis=0) - some.min(axis=0)
    return np.where(high > low, high - low, whole)


def _apart_in_scale(
    spread: np.ndarray, skipped: np.ndarray, settings: ColumnSettings
) -> np.ndarray:
    """Return which columns differ in scale from the others."""
    apart = np.zeros(len(spread), dtype=bool)
    compared = np.flatnonzero(~skipped & (spread > 0))
    sizes = spread[compared]
    if len(compared) > settings.many_columns:
        apart[compared] = _apart_from_many(sizes, settings)
        return apart
    falling = bool((np.diff(sizes) <= 0).all())
    if len(compared) < 2 or (falling and len(compared) >= settings.fewest_falling):
        return apart
    for i, column in enumerate(compared):
        # The lower one of two middle values: among (1, 1, 1000) only the last differs.
        others = np.sort(np.delete(sizes, i))
        middle = others[(len(others) - 1) // 2]
        ratio = max(sizes[i] / middle, middle / sizes[i])
        apart[column] = ratio >= settings.scale_ratio
    return apart


def _apart_from_many(sizes: np.ndarray, settings: ColumnSettings) -> np.ndarray:
    """Return which of many columns are larger than all others by a wide gap."""
    descending = np.sort(sizes)[::-1]
    few = max(1, int(settings.few_of_many * len(sizes)))
    ratios = descending[:few] / descending[1 : few + 1]
    wide = np.flatnonzero(ratios >= settings.scale_ratio)
    if not len(wide):
        return np.zeros(len(sizes), dtype=bool)
    return sizes >= descending[wide[-1]]


def numbering_columns(
    X: np.ndarray, *, settings: ColumnSettings = ColumnSettings()
) -> tuple[int, ...]:
    """Return the columns that number the rows, in any order.

    Their values are evenly spaced, or whole numbers of a small range, and all different. If all
    columns that vary are like that, as those of a design of experiments are, none of them is
    returned.

    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> numbering_columns(np.c_[X, np.random.default_rng(0).permutation(500)])
    (2,)

    Shapes: X (n_samples, n_features).
    """
    if len(X) < settings.fewest_rows or X.shape[1] < 2:
        return ()
    first = np.asarray(X[: settings.screened])
    different = (np.diff(np.sort(first, axis=0), axis=0) > 0).all(axis=0)
    # Every value of many columns, such as pixels, would take long to read.
    if X.shape[1] > settings.many_columns:
        different &= (first == np.floor(first)).all(axis=0)
    found = [
        int(column)
        for column in np.flatnonzero(different)
        if _numbers_rows(np.asarray(X[:, column]), settings)
    ]
    varying = _varying(X, settings)
    return tuple(found) if set(found) < set(np.flatnonzero(varying)) else ()


def label_columns(X: np.ndarray, *, settings: ColumnSettings = ColumnSettings()) -> tuple[int, ...]:
    """Return the columns that hold a few whole numbers while others are continuous.

    Many columns, such as pixels, are not searched: some of them are nearly always 0.

    >>> rng = np.random.default_rng(0)
    >>> label_columns(np.c_[rng.uniform(size=(500, 2)), rng.integers(0, 3, 500)])
    (2,)
    """
    few = len(X) >= settings.fewest_rows and X.shape[1] <= settings.many_columns
    if not few:
        return ()
    some = np.asarray(X[:: max(1, len(X) // settings.checked)])
    label = _label_columns(some, _index_columns(X, settings), settings)
    return tuple(np.flatnonzero(label).tolist())


def _numbers_rows(values: np.ndarray, settings: ColumnSettings) -> bool:
    """Return whether values are evenly spaced or whole, and all different."""
    n, low = len(values), values.min()
    length = values.max() - low

    def evenly_spaced(some: np.ndarray) -> bool:
        # Evenly spaced values are whole in units of their step.
        steps = (some - low) * ((n - 1) / length)
        return bool((np.abs(steps - np.rint(steps)) < settings.rounding).all())

    # The first rows tell nearly always.
    first = values[: settings.screened]
    if evenly_spaced(first) and evenly_spaced(values):
        steps = (values - low) * ((n - 1) / length)
        return bool((np.bincount(np.rint(steps).astype(int)) == 1).all())
    copies = n**2 / (2 * length)
    whole = _all_whole(first) and _all_whole(values)
    return whole and copies >= settings.expected_copies and _all_different(values)


def _all_whole(values: np.ndarray) -> bool:
    return bool((values == np.floor(values)).all())


def _all_different(values: np.ndarray) -> bool:
    return len(np.unique(values)) == len(values)


def _index_columns(X: np.ndarray, settings: ColumnSettings) -> np.ndarray:
    """Return which columns order the rows, or number them in any order.

    None of them if no other column varies: what is left must be worth a fit.
    """
    first = np.asarray(X[: settings.checked])
    steps = np.diff(first, axis=0)
    ordered = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    index = np.zeros(X.shape[1], dtype=bool)
    index[list(numbering_columns(X, settings=settings))] = True
    for column in np.flatnonzero(ordered):
        index[column] |= _is_ordered(np.asarray(X[:, column]))
    others = _varying(X, settings) & ~index
    return index if others.any() else np.zeros_like(index)


def _varying(X: np.ndarray, settings: ColumnSettings) -> np.ndarray:
    """Return which columns vary, judged by rows from all over the table."""
    some = np.asarray(X[:: max(1, len(X) // settings.checked)])
    return (some != some[0]).any(axis=0)


def _is_ordered(values: np.ndarray) -> bool:
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _label_columns(some: np.ndarray, index: np.ndarray, settings: ColumnSettings) -> np.ndarray:
    """Return which columns have few whole numbers while others are continuous."""
    whole = (some == np.floor(some)).all(axis=0)
    label = np.zeros(some.shape[1], dtype=bool)
    # Where most columns hold whole numbers, that is how they are measured.
    measured = ~index & (some != some[0]).any(axis=0)
    if 2 * (whole & measured).sum() > measured.sum():
        return label
    most = min(settings.most_labels, len(some) // settings.samples_per_label)
    for column in np.flatnonzero(whole & measured):
        label[column] = len(np.unique(some[:, column])) <= most
    return label
