"""Columns that are likely no measurement, or not in the units of the others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from manifactor._support.warning import warn_caller
from manifactor.factoring.factorize import Factorization

# Names of columns, or their numbers in a table of which some columns were left out.
Labels = Sequence[str | int]


class ColumnWarning(UserWarning):
    """Columns that may hide the structure of the others."""


@dataclass(frozen=True)
class ColumnSettings:
    """Settings of `suspicious_columns`."""

    # Times the spread of the other columns. Factors of a product may differ thirtyfold
    # in size and still be found.
    scale_ratio: float = 100.0

    # The spread is the distance between this quantile and the opposite one.
    quantile: float = 0.05

    # Samples that spreads and values are read off: quantiles are then known to a few
    # per cent.
    checked: int = 2000

    # The spreads of more columns, such as pixels, vary widely. There a column is named
    # only if it is among the few largest, with a gap to all others.
    many_columns: int = 64
    few_of_many: float = 0.05

    # Spreads that fall from each of so many columns to the next are those of principal
    # components.
    fewest_falling: int = 5

    # The values of fewer samples may be in order by chance.
    fewest_rows: int = 20

    # A label has at most so many values, each of them in so many samples on average.
    most_labels: int = 20
    samples_per_label: int = 20

    # An index may leave out numbers: its range is at most so many times the number of
    # samples.
    index_range: float = 2.0


# What is said of one column and of several.
MEANINGS = {
    "scale": (
        "differs in scale from other columns a hundredfold or more",
        "differ in scale from other columns a hundredfold or more",
    ),
    "index": (
        "orders or numbers the rows, as an index or a time does",
        "order or number the rows, as an index or a time does",
    ),
    "label": (
        "holds a few whole numbers, as a label does",
        "hold a few whole numbers, as labels do",
    ),
    "constant": ("is constant", "are constant"),
}


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

    def in_words(self, names: Labels | None = None, *, most: int = 4) -> str:
        """Return a clause that names the columns, the first `most` of them."""
        shown = [_name(column, names) for column in self.columns[:most]]
        if len(self.columns) > most:
            shown.append(f"{len(self.columns) - most} more")
        listed = shown[0]
        if len(shown) > 1:
            listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
        noun = "column" if len(self.columns) == 1 else "columns"
        meaning = MEANINGS[self.kind][len(self.columns) > 1]
        return f"{noun} {listed} {meaning}"


def _name(column: int, names: Labels | None) -> str:
    return str(column) if names is None else repr(names[column])


def column_labels(estimator, given: Labels | None) -> Labels | None:
    """Return the labels given by the caller, else the names that a DataFrame had."""
    if given is not None:
        return given
    return getattr(estimator, "feature_names_in_", None)


def remarked_on_columns(
    found: Factorization, X, names: Labels | None = None
) -> Factorization:
    """Return the factorization with a remark on suspicious columns, and warn of them.

    A product is returned as it is, and so is a factorization of precomputed distances.
    """
    if found.evidence.verdict == "product" or sp.issparse(X):
        return found
    remark = in_words(suspicious_columns(X), names)
    if not remark:
        return found
    warn_caller(remark, ColumnWarning)
    # Before other remarks, which may not hold without these columns.
    more = found.evidence.details
    details = f"{remark} {more[:1].upper()}{more[1:]}".strip()
    return replace(found, evidence=replace(found.evidence, details=details))


def suspicious_columns(
    X: np.ndarray, *, settings: ColumnSettings = ColumnSettings()
) -> tuple[Suspicion, ...]:
    """Return the columns of samples that may hide the structure of the others.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    settings : ColumnSettings

    Returns
    -------
    tuple of Suspicion
        One for each kind. Constant columns are harmless; they are named only beside
        others.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(500, 3)) * [1, 1, 1000]
    >>> suspicious_columns(np.c_[np.arange(500), X])
    (Suspicion(kind='scale', columns=(3,)), Suspicion(kind='index', columns=(0,)))
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


def in_words(found: Sequence[Suspicion], names: Labels | None = None) -> str:
    """Return what was found, and what to do, as sentences; "" for nothing."""
    if not found:
        return ""
    clauses = "; ".join(suspicion.in_words(names) for suspicion in found)
    kinds = {suspicion.kind for suspicion in found}
    advice = []
    if kinds & {"index", "label"}:
        advice.append("leave out what is no measurement")
    if "scale" in kinds:
        advice.append("standardise columns of different units")
    remedy = " and ".join(advice)
    return f"{_capital(clauses)}. {_capital(remedy)}, and fit again."


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


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


def _index_columns(X: np.ndarray, settings: ColumnSettings) -> np.ndarray:
    """Return which columns order the rows, or number them in any order."""
    first = np.asarray(X[: settings.checked])
    steps = np.diff(first, axis=0)
    ordered = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    whole = (first == np.floor(first)).all(axis=0)
    index = np.zeros(X.shape[1], dtype=bool)
    for column in np.flatnonzero(ordered | whole):
        values = np.asarray(X[:, column])
        numbers_rows = whole[column] and _numbers_rows(values, settings)
        index[column] = _is_ordered(values) or numbers_rows
    return index


def _is_ordered(values: np.ndarray) -> bool:
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _numbers_rows(values: np.ndarray, settings: ColumnSettings) -> bool:
    """Return whether whole numbers are all different, with few left out."""
    if values.max() - values.min() > settings.index_range * len(values):
        return False
    return len(np.unique(values)) == len(values)


def _label_columns(
    some: np.ndarray, index: np.ndarray, settings: ColumnSettings
) -> np.ndarray:
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
