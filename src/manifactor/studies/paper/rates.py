"""Rates over seeds, and the rows of the table they make."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from manifactor.studies.paper.cases import Case
from manifactor.studies.paper.lab import Job, Lab
from manifactor.studies.paper.section import Settings, Table

HEADER = [
    "data",
    "method",
    "solved",
    "R^2 own",
    "R^2 leaked",
    "completeness",
    "functions",
    "of them pure",
    "verdicts",
]
VERDICTS = ("product", "partial", "none")


def measured(
    cases: Iterable[str],
    methods: Iterable[str],
    n: int,
    *,
    settings: Settings,
    lab: Lab,
) -> dict[tuple[str, str], list[dict]]:
    """The numbers of every data set and method, one record a seed."""
    keys = [(case, method) for case in cases for method in methods]
    numbers = iter(
        lab.measure(
            [
                Job(case, method, n, seed)
                for case, method in keys
                for seed in settings.seeds
            ]
        )
    )
    return {
        key: [{"seed": seed, **next(numbers)} for seed in settings.seeds]
        for key in keys
    }


def table_of(
    cases: Mapping[str, Case],
    records: Mapping[tuple[str, str], Sequence[dict]],
    caption: str,
) -> Table:
    """One row for each data set and method: means over the seeds."""
    rows = [
        [cases[case].title, method, *_means(runs)]
        for (case, method), runs in records.items()
    ]
    return Table(caption, HEADER, rows)


def _means(runs: Sequence[dict]) -> list[str]:
    own, leak, pure = (
        np.mean([run[key] for run in runs]) for key in ("own", "leak", "pure_functions")
    )
    complete = [run["completeness"] for run in runs if np.isfinite(run["completeness"])]
    return [
        f"{solved(runs)} of {len(runs)}",
        f"{own:.3f}",
        f"{leak:.3f}",
        f"{np.mean(complete):.2f}" if complete else "-",
        f"{np.mean([np.mean(run['functions']) for run in runs]):.1f}",
        f"{pure:.0%}",
        " / ".join(
            str(sum(run["verdict"] == verdict for run in runs)) for verdict in VERDICTS
        ),
    ]


def solved(runs: Sequence[dict]) -> int:
    """How many runs were solved."""
    return sum(run["solved"] for run in runs)


def in_words(
    method: str,
    cases: Mapping[str, Case],
    records: Mapping[tuple[str, str], Sequence[dict]],
) -> str:
    """How often a method was right, and on which data it was not always."""
    mine = {case: runs for (case, by), runs in records.items() if by == method}
    total = sum(len(runs) for runs in mine.values())
    missed = [
        f"{cases[case].title} ({solved(runs)} of {len(runs)})"
        for case, runs in mine.items()
        if solved(runs) < len(runs)
    ]
    tail = f"; not always: {'; '.join(missed)}" if missed else ""
    return f"{method.capitalize()}: solved in {sum(map(solved, mine.values()))} of {total} runs{tail}."
