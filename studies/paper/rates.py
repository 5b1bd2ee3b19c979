"""Rates over seeds, and the table of them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from studies.paper.cases import Case
from studies.paper.finding import Job
from studies.paper.lab import Lab
from studies.paper.section import Settings, Table
from studies.records import count, verdict_counts

# The columns that `_means` fills, after data and method.
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

# One record for each seed, by data set and method.
Records = Mapping[tuple[str, str], Sequence[dict]]


def measured(
    cases: Iterable[str], methods: Sequence[str], n: int, *, settings: Settings, lab: Lab
) -> dict[tuple[str, str], list[dict]]:
    """Return the numbers of every data set, method and seed."""
    jobs = [
        Job(case, method, n, seed)
        for case in cases
        for method in methods
        for seed in settings.seeds
    ]
    records: dict[tuple[str, str], list[dict]] = {}
    # All jobs in one call: the lab spreads them over the processes.
    for job, numbers in zip(jobs, lab.measure(jobs), strict=True):
        runs = records.setdefault((job.case, job.method), [])
        runs.append({"seed": job.seed, **numbers})
    return records


def table_of(cases: Mapping[str, Case], records: Records, caption: str) -> Table:
    """Return a table of means over the seeds: a row for each data set and method."""
    rows = [[cases[case].title, method, *_means(runs)] for (case, method), runs in records.items()]
    return Table(caption, HEADER, rows)


def _means(runs: Sequence[dict]) -> list[str]:
    # A fit that found one factor has no completeness: it is nan.
    complete = [run["completeness"] for run in runs if np.isfinite(run["completeness"])]
    functions = [np.mean(run["functions"]) for run in runs]
    return [
        f"{count(runs, 'solved')} of {len(runs)}",
        f"{_mean(runs, 'own'):.3f}",
        f"{_mean(runs, 'leak'):.3f}",
        f"{np.mean(complete):.2f}" if complete else "-",
        f"{np.mean(functions):.1f}",
        f"{_mean(runs, 'pure_functions'):.0%}",
        verdict_counts(runs),
    ]


def _mean(runs: Sequence[dict], key: str) -> float:
    return float(np.mean([run[key] for run in runs]))


def in_words(method: str, cases: Mapping[str, Case], records: Records) -> str:
    """Say how often a method was right, and on which data it was not always."""
    mine = {case: runs for (case, by), runs in records.items() if by == method}
    solved = {case: count(runs, "solved") for case, runs in mine.items()}
    total = sum(len(runs) for runs in mine.values())
    right = sum(solved.values())
    # Only the data on which something went wrong are named.
    missed = [
        f"{cases[case].title} ({solved[case]} of {len(runs)})"
        for case, runs in mine.items()
        if solved[case] < len(runs)
    ]
    tail = f"; not always: {'; '.join(missed)}" if missed else ""
    return f"{method.capitalize()}: solved in {right} of {total} runs{tail}."


def by_label(records: Records) -> dict[str, Sequence[dict]]:
    """Return the records with keys that JSON can hold."""
    return {f"{case}, {method}": runs for (case, method), runs in records.items()}
