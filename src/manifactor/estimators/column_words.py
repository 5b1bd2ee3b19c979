"""Suspicious columns in words: what they look like, and what to do."""

import shlex
from collections.abc import Iterable, Sequence, Sized

from manifactor.estimators.columns import Suspicion

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
