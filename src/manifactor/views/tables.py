"""Tables about a run, for its page and as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.judging.criteria import Test
from manifactor.runs.folder import run_evidence


@dataclass(frozen=True)
class RunTable:
    """Rows of text under a header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of a row is its name
    kind: str = ""  # class of the HTML element
    marked: Sequence[int] = ()  # rows that are to be seen first

    def as_text(self, width: int) -> str:
        """Return the table as lines of text; the last column is wrapped.

        >>> print(RunTable("Sizes", ("what", "size"), [("a", "one two")]).as_text(14))
        Sizes:
          what  size
          a     one
                two
        """
        columns = zip(self.header, *self.rows, strict=True)
        *widths, _ = [max(map(len, column)) for column in columns]
        # Two spaces before each column.
        left = 2 * len(widths) + sum(widths) + 2
        lines = [f"{self.caption}:"]
        for row in (self.header, *self.rows):
            *cells, last = row
            padded = [cell.ljust(size) for cell, size in zip(cells, widths, strict=True)]
            wrapped = _wrapped(last, width - left)
            line = "  ".join(["", *padded, wrapped[0]])
            lines.append(line.rstrip())
            lines += [" " * left + line for line in wrapped[1:]]
        return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    lines = wrap(
        text,
        max(width, 1),
        # Paths are kept whole, so that they can be copied.
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [""]


def run_tables(record: dict, fit: ManifoldFactorizer) -> dict[str, RunTable]:
    """Return all tables of a run by name; those with nothing to say have no rows."""
    return {
        "tests": tests_table(record, fit),
        "leakage": leakage_table(fit),
        "confounders": confounders_table(record),
        "components": components_table(record),
        "computation": computation_table(fit),
        "choices": choices_table(record, fit),
        "conditions": conditions_table(record),
        "seconds": seconds_table(fit),
    }


def tests_table(record: dict, fit: ManifoldFactorizer) -> RunTable:
    """Return the tests behind the verdict, those that failed first."""
    # The order is stable: otherwise that in which they were judged.
    tests = sorted(run_evidence(fit, record).tests, key=lambda test: test.passed)
    return RunTable(
        "Tests behind the verdict",
        ("test", "result", "value", "needed", "what it measures"),
        [_test_row(test) for test in tests],
        kind="tests",
        marked=[row for row, test in enumerate(tests) if not test.passed],
    )


def _test_row(test: Test) -> tuple[str, ...]:
    value = _number(test.value)
    # The test compares the value less its noise.
    if np.isfinite(test.noise):
        value += f" (noise {_number(test.noise)})"
    # In words: colours alone are lost in print and on the colour-blind.
    result = "passed" if test.passed else "failed"
    return test.name, result, value, test.rule, test.meaning


def _number(value: float) -> str:
    """Return a measured number: a count, or a share to three digits."""
    # A value that could not be measured fails its test.
    if np.isnan(value):
        return "not measured"
    return f"{value:,.0f}" if value == round(value) else f"{value:.3f}"


def leakage_table(fit: ManifoldFactorizer) -> RunTable:
    """Return how well the coordinate on each factor predicts the others; empty for one."""
    leakage = fit.evidence_.leakage
    names = [f"factor {number}" for number in range(1, len(leakage) + 1)]
    rows = []
    if len(leakage) > 1:
        for name, row in zip(names, leakage, strict=True):
            # A factor says nothing about itself.
            cells = ["" if np.isnan(r2) else f"{r2:.2f}" for r2 in row]
            rows.append((name, *cells))
    caption = "Leakage: R^2 with which the coordinate on one factor (row) predicts another"
    return RunTable(caption, ("", *names), rows)


def computation_table(fit: ManifoldFactorizer) -> RunTable:
    """Return how well the computation went."""
    residuals = fit.spectrum_.residuals
    sizes = np.bincount(fit.components_)
    # Precomputed neighbours cannot be checked.
    recall = "as given"
    if np.isfinite(fit.recall_):
        recall = f"{fit.recall_:.2%} of the true ones"
    rows = [
        (
            "residuals of the eigenfunctions",
            f"median {np.median(residuals):.1e}, at most {residuals.max():.1e}",
        ),
        ("neighbours found", recall),
        ("outliers", f"{int(fit.outliers_.sum()):,} of {len(fit.outliers_):,}"),
        ("pieces of the neighbour graph", f"{len(sizes)}, the largest of {sizes.max():,} samples"),
        *_unjudged(fit),
    ]
    return RunTable("Computation", ("what", "value"), rows)


def _unjudged(fit: ManifoldFactorizer) -> list[tuple[str, str]]:
    """Return numbers of the evidence that no test judges, where they are measured."""
    measured = [
        (
            "noise of the indivisibility score q (0: eigenfunctions divide, 1: they do not)",
            fit.evidence_.null,
        ),
        ("p-value of independent coordinates", fit.evidence_.dependence),
    ]
    return [(name, f"{value:.3f}") for name, value in measured if np.isfinite(value)]


def components_table(record: dict) -> RunTable:
    """Return signal to noise of the principal components of images or volumes."""
    components = record.get("components", {})
    ratios = components.get("signal_to_noise", [])
    weights = components.get("weights", [])
    pairs = zip(ratios, weights, strict=False)
    rows = [
        (str(number), f"{ratio:.3g}", f"{weight:.2f}")
        for number, (ratio, weight) in enumerate(pairs, start=1)
    ]
    header = ("component", "signal to noise", "weight")
    return RunTable("Principal components of the images or volumes", header, rows)


def confounders_table(record: dict) -> RunTable:
    """Return how much of each factor known properties of the particles explain."""
    found = record.get("confounders", [])
    cells: dict[tuple[str, int], str] = {}
    for each in found:
        text = f"{each['r2']:.2f} (p {each['p']:.2f})"
        cells[each["name"], each["factor"]] = text
    # In order of appearance, each once.
    names = list(dict.fromkeys(name for name, _ in cells))
    numbers = list(dict.fromkeys(number for _, number in cells))
    rows = []
    for name in names:
        row = [cells.get((name, number), "") for number in numbers]
        rows.append((name, *row))
    # Number 0 stands for what the factors leave unexplained.
    columns = [f"factor {number}" if number else "the rest" for number in numbers]
    caption = "Confounders: R^2 with which a property of the particles predicts a factor"
    return RunTable(caption, ("property", *columns), rows)


def choices_table(record: dict, fit: ManifoldFactorizer) -> RunTable:
    """Return what was chosen, and why.

    A run's record has all choices; a fit alone knows those of the factorizer.
    """
    chosen = record.get("choices")
    if chosen is None:
        chosen = {name: vars(choice) for name, choice in fit.choices_.items()}
    rows = [
        (name, value_in_words(choice.get("value")), choice["why"])
        for name, choice in chosen.items()
    ]
    header = ("choice", "value", "why")
    return RunTable("What was chosen, and why", header, rows, kind="choices")


def value_in_words(value: Any) -> str:
    """Return the value of a choice as people read it.

    >>> value_in_words(None), value_in_words(8.975116), value_in_words(83)
    ('none', '8.975', '83')
    """
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def conditions_table(record: dict) -> RunTable:
    """Return what the result of a run depends on: input, seed, versions."""
    rows = [("input", str(record.get("input", "unknown")))]
    # Arrays that were fitted in memory have neither.
    optional = {"input last changed": "input_changed", "particles": "particles"}
    rows += [(name, record[key]) for name, key in optional.items() if key in record]
    if "columns" in record:
        rows.append(("columns", _columns_in_words(record["columns"])))
    rows.append(("seed", str(record.get("seed", "unknown"))))
    versions = record.get("versions", {})
    rows += [(name, str(version)) for name, version in versions.items()]
    header = ("what", "value")
    return RunTable("What the result depends on", header, rows, kind="conditions")


def _columns_in_words(columns: dict, *, most: int = 12) -> str:
    """Return which columns of a table were fitted, and whether they were scaled."""
    numbers, total = columns["numbers"], columns["total"]
    text = f"all {total}"
    if numbers is not None:
        labels = [str(label) for label in columns["names"] or numbers]
        shown = [*labels[:most], "..."] if len(labels) > most else labels
        text = f"{len(numbers)} of {total}: {', '.join(shown)}"
    return text if columns["scale"] is None else f"{text}; each to unit variance"


def seconds_table(fit: ManifoldFactorizer) -> RunTable:
    """Return how long each stage of the fit took."""
    rows = [(stage, f"{value:.2f}") for stage, value in fit.timings_.items()]
    return RunTable("Seconds of the fit, by stage", ("stage", "seconds"), rows)
