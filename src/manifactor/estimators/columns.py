"""Columns that are likely no measurement, or not in the units of the others."""

import shlex
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import warn_caller
from manifactor.factoring.factorize import Factorization
from manifactor.factoring.judging.advice import DataKnown
from manifactor.factoring.judging.weighing import density_of, is_uneven
from manifactor.spectral.preparation import Preparation


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


# Suspicious columns in words: what they look like, and what to do.

# Names of columns, or their numbers in a table of which some columns were left out.
Labels = Sequence[str | int]

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
# A longer list of columns is not read.
MOST_NAMED = 4


def column_labels(estimator, given: Labels | None) -> Labels | None:
    """Return the labels given by the caller, else the names that a DataFrame had."""
    if given is not None:
        return given
    return getattr(estimator, "feature_names_in_", None)


def require_labels(given: object, n_columns: int) -> None:
    """Raise ValueError unless there is one label for each column, or None."""
    if given is None:
        return
    # A single word is a sequence, too: of its letters.
    if isinstance(given, Sized) and not isinstance(given, str | bytes):
        if len(given) == n_columns:
            return
        got = f"{len(given)} names"
    else:
        got = repr(given)[:60]
    raise ValueError(
        f"`column_names` must be a list with one name for each of the {n_columns} "
        f"columns of `X`; got {got}. Leave it out to count columns from 0."
    )


def in_words(found: Iterable[Suspicion], names: Labels | None = None) -> str:
    """Return what was found as a sentence; "" for nothing."""
    clauses = []
    for suspicion in found:
        meaning = MEANINGS[suspicion.kind][len(suspicion.columns) > 1]
        clauses.append(f"{_listed(suspicion.columns, names)} {meaning}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def remedy(found: Iterable[Suspicion], names: Labels | None = None) -> str:
    """Return what to do, as sentences with a call of Python and an option each.

    >>> remedy([Suspicion("index", (2,))], ["x", "y", "id"])  # doctest: +ELLIPSIS
    "Leave out column 'id', unless it is measured: `X.drop(columns=['id'])` in ..."
    """
    columns = {suspicion.kind: suspicion.columns for suspicion in found}
    left_out = sorted({*columns.get("index", ()), *columns.get("label", ())})
    measured = "it is measured" if len(left_out) == 1 else "they are measured"
    sentences = []
    if left_out:
        sentences.append(
            f"Leave out {_listed(left_out, names)}, unless {measured}: "
            f"`{_python_drop(left_out, names)}` in Python, "
            f"`--drop {_option(left_out, names)}` on the command line."
        )
    if "scale" in columns:
        which = "the other columns" if left_out else "all columns"
        sentences.append(
            f"Bring {which} to one scale: `StandardScaler().fit_transform(X)` in "
            "Python, `--standardise` on the command line."
        )
    return " ".join([*sentences, "Then fit again."]) if sentences else ""


def _listed(columns: Sequence[int], names: Labels | None) -> str:
    """Return columns by name or number, the first few of them."""
    shown = [_name(column, names) for column in columns[:MOST_NAMED]]
    if len(columns) > MOST_NAMED:
        shown.append(f"{len(columns) - MOST_NAMED} more")
    listed = shown[0]
    if len(shown) > 1:
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"{'column' if len(columns) == 1 else 'columns'} {listed}"


def _name(column: int, names: Labels | None) -> str:
    return str(column) if names is None else repr(names[column])


def _python_drop(columns: Sequence[int], names: Labels | None) -> str:
    """Return the call that leaves columns out of a DataFrame, else of an array."""
    shown = [_name(column, names) for column in columns[:MOST_NAMED]]
    if len(columns) > MOST_NAMED:
        shown.append("...")
    listed = ", ".join(shown)
    if names is not None and isinstance(names[columns[0]], str):
        return f"X.drop(columns=[{listed}])"
    return f"np.delete(X, [{listed}], axis=1)"


def _option(columns: Sequence[int], names: Labels | None) -> str:
    """Return columns as the command line takes them."""
    shown = [str(c if names is None else names[c]) for c in columns[:MOST_NAMED]]
    if len(columns) > MOST_NAMED:
        shown.append("...")
    return shlex.quote(",".join(shown))


# What is known of the data beside the tests, and remarks on suspicious columns.


def warn_of_no_measurements(X, names: Labels | None = None) -> tuple[Suspicion, ...]:
    """Warn of columns that number the rows or hold labels, and return them.

    Such a column may be independent of the others, so that even a product may be one of row numbers
    or labels. Precomputed distances have no columns.
    """
    if sp.issparse(X):
        return ()
    kinds = {"index": numbering_columns(X), "label": label_columns(X)}
    found = tuple(Suspicion(kind, columns) for kind, columns in kinds.items() if columns)
    _warn(found, names)
    return found


def with_data_known(
    found: Factorization,
    X,
    *,
    warned: Sequence[Suspicion] = (),
    noise: np.ndarray | None = None,
    names: Labels | None = None,
) -> Factorization:
    """Return a factorization whose evidence knows the data; warn of columns.

    Shapes: X (n_samples, n_features), noise (n_features,).
    """
    evidence = found.evidence
    columns = tuple(warned)
    if not (evidence.verdict == "product" or sp.issparse(X)):
        columns = suspicious_columns(X)
        _warn([each for each in columns if each not in warned], names)
    known = _known(found, X, noise=noise)
    known = replace(known, columns=remedy(columns, names))
    details = evidence.details
    if columns:
        # Before other remarks, which may not hold without these columns.
        after = f"{details[:1].upper()}{details[1:]}"
        details = f"{in_words(columns, names)} {after}".strip()
    return replace(found, evidence=replace(evidence, known=known, details=details))


def _warn(found: Sequence[Suspicion], names: Labels | None) -> None:
    """Warn of columns, unless they are harmless."""
    what_to_do = remedy(found, names)
    if what_to_do:
        warn_caller(f"{in_words(found, names)} {what_to_do}", ColumnWarning)


def _known(found: Factorization, X, *, noise: np.ndarray | None) -> DataKnown:
    """What is known of the data but their columns."""
    return DataKnown(
        n_samples=len(found.diffusion.graph.distinct),
        n_columns=0 if sp.issparse(X) else X.shape[1],
        noise=_noise_share(found, X, noise),
        uneven=is_uneven(density_of(found.diffusion)),
        circles=any(factor.topology == "circle" for factor in found.factors),
    )


def _noise_share(
    found: Factorization,
    X,
    noise: np.ndarray | None,
    *,
    settings: ColumnSettings = ColumnSettings(),
) -> float:
    """Share of the variance of prepared samples that is noise; nan if not known.

    Noise whose size is not given has the same variance in the components that were kept as in those
    dropped.
    """
    preparation, samples = found.diffusion.preparation, found.diffusion.points
    if samples is None:
        return np.nan
    some = slice(None, None, max(1, len(X) // settings.checked))
    kept = float(np.var(np.asarray(samples[some]), axis=0).sum())
    if not kept:
        return np.nan
    if noise is not None:
        return _kept_noise(np.asarray(noise), preparation) / kept
    if preparation is None:
        return np.nan
    n_columns, n_kept = preparation.components.shape
    if n_kept == n_columns:
        return np.nan
    given = float(np.var(np.asarray(X[some], dtype=float), axis=0).sum())
    return n_kept * max(0.0, given - kept) / (n_columns - n_kept) / kept


def _kept_noise(noise: np.ndarray, preparation: Preparation | None) -> float:
    """Variance in prepared samples of independent noise of known size in columns."""
    variance = noise**2
    if preparation is not None:
        variance = variance @ preparation.components**2
    return float(variance.sum())
