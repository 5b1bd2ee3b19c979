"""Reliability of the verdict: how often it is right on random problems of all kinds."""

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from manifactor import datasets
from manifactor.datasets.kinds import KINDS
from manifactor.datasets.problems import Problem, ProblemSettings
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.judging.evidence import Evidence
from manifactor.scores import score, wilson_interval
from manifactor.studies.confidence import verdict_confidence
from manifactor.studies.processes import map_processes
from manifactor.views import plots

VERDICTS = ("product", "partial", "none")


@dataclass(frozen=True)
class CalibrationSettings:
    """Settings of the calibration."""

    # A rate of 99 % among a thousand verdicts is known to 0.6 %.
    n_problems: int = 2000
    # Check that everything runs.
    quick_problems: int = 20
    # Of each verdict's problems, by confidence; equally many in each.
    n_bins: int = 8
    # Fewer problems in a bin give an interval as wide as the picture.
    least_in_bin: int = 10


def run(
    n_problems: int,
    *,
    problems: ProblemSettings = ProblemSettings(),
    n_jobs: int | None = None,
) -> Iterator[dict]:
    """Return one record for each of the first random problems, in their order."""
    jobs = [(seed, problems) for seed in range(n_problems)]
    return map_processes(record, jobs, n_jobs=n_jobs)


def record(seed: int, problems: ProblemSettings = ProblemSettings()) -> dict:
    """Fit a random problem and return what was said and whether it is right."""
    problem = datasets.random_problem(seed, settings=problems)
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        try:
            said = _answer(problem, seed)
        # One failure must not lose the other problems.
        except Exception as error:
            said = {"verdict": f"error: {error}", "confidence": 0.0}
    solved = said.get("solved", False)
    wrong_product = said["verdict"] == "product" and not problem.product
    return {
        "seed": seed,
        "kind": problem.kind,
        "product": problem.product,
        "description": problem.description,
        "number_right": False,
        "solved": solved,
        **said,
        "right": solved and not wrong_product,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _answer(problem: Problem, seed: int) -> dict:
    """Return the verdict, its confidence and its tests, and the score."""
    # One thread: there is a process for each core already.
    fit = ManifoldFactorizer(random_state=seed, n_jobs=1).fit(problem.X)
    evidence = fit.evidence_
    found = score([factor.embedding for factor in fit.factors_], problem.truth)
    return {
        "verdict": fit.verdict_,
        "confidence": round(verdict_confidence(fit.verdict_, evidence.tests), 4),
        "number_right": found.number_right,
        "solved": found.solved,
        "own": round(found.worst, 4),
        "leak": round(found.leak, 4),
        "reason": evidence.reason,
        "tests": _tests(evidence),
    }


def _tests(evidence: Evidence) -> list[dict]:
    """Return the numbers of all tests, from which a confidence can be made anew."""
    kept = ("name", "value", "noise", "limit", "at_least", "passed")
    tests = [asdict(test) for test in evidence.tests]
    return [{key: _or_none(test[key]) for key in kept} for test in tests]


def _or_none(value):
    """Return the value, with None for nan, which is no JSON."""
    return None if isinstance(value, float) and np.isnan(value) else value


def render(records: Iterable[dict]) -> str:
    """Return the table in Markdown: kinds by verdicts, and the share that is right."""
    records = list(records)
    head = " | ".join(VERDICTS)
    lines = [
        f"| kind | problems | {head} | right when product | right |",
        f"|---|---|{'---|' * len(VERDICTS)}---|---|",
    ]
    for kind in (*KINDS, "irreducible"):
        members = [one for one in records if one["kind"] == kind]
        if members:
            lines.append(_row(kind, members))
    lines.append(_row("all", records))
    note = f"Under {', '.join(VERDICTS)}: said, number of factors right, solved."
    return "\n".join([*lines, "", note, *_shares(records)]) + "\n"


def _row(kind: str, members: Sequence[dict]) -> str:
    product = _saying(members, "product")
    cells = [
        kind,
        f"{len(members)}",
        *(_counts(_saying(members, verdict)) for verdict in VERDICTS),
        f"{_count(product, 'right')} of {len(product)}" if product else "-",
        f"{_count(members, 'right') / len(members):.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def _counts(said: Sequence[dict]) -> str:
    if not said:
        return "-"
    return f"{len(said)}, {_count(said, 'number_right')}, {_count(said, 'solved')}"


def _shares(records: Sequence[dict]) -> Iterator[str]:
    """Yield a sentence on the share of each verdict that is right."""
    for verdict in VERDICTS:
        said = _saying(records, verdict)
        if said:
            right = _count(said, "right")
            low, high = wilson_interval(right, len(said))
            yield (
                f'Right when "{verdict}": {right / len(said):.1%} '
                f"({right} of {len(said)}; 95 % interval {low:.1%} to {high:.1%})."
            )
    errors = [one for one in records if one["verdict"] not in VERDICTS]
    if errors:
        seeds = ", ".join(str(one["seed"]) for one in errors)
        yield f"Fits that failed: {len(errors)}, problems {seeds}."


def curves(
    records: Sequence[dict], *, settings: CalibrationSettings = CalibrationSettings()
) -> dict[str, list[plots.Rate]]:
    """Return, for each verdict, the share that is right in bins of the confidence."""
    found = {}
    for verdict in VERDICTS:
        said = sorted(_saying(records, verdict), key=lambda one: one["confidence"])
        n_bins = min(settings.n_bins, len(said) // settings.least_in_bin)
        if n_bins:
            bins = np.array_split(np.arange(len(said)), n_bins)
            found[verdict] = [_rate([said[i] for i in members]) for members in bins]
    return found


def _rate(members: Sequence[dict]) -> plots.Rate:
    right = _count(members, "right")
    low, high = wilson_interval(right, len(members))
    confidence = float(np.mean([one["confidence"] for one in members]))
    return plots.Rate(confidence, right / len(members), low, high)


def diagram(
    records: Sequence[dict], *, settings: CalibrationSettings = CalibrationSettings()
) -> dict[str, bytes]:
    """Return the reliability diagram as the bytes of picture files, by suffix."""
    with plots.style():
        figure = plots.new_figure(3.6, 3.2)
        plots.reliability(figure.subplots(), curves(records, settings=settings))
        return plots.picture(figure)


def _saying(records: Iterable[dict], verdict: str) -> list[dict]:
    return [one for one in records if one["verdict"] == verdict]


def _count(records: Iterable[dict], key: str) -> int:
    return sum(one[key] for one in records)
