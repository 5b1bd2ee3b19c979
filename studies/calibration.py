"""Reliability of the verdict: how often it is right on random problems."""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from manifactor import datasets
from manifactor._support.files import write_bytes
from manifactor.datasets.problems import KINDS, Problem
from manifactor.datasets.products import ring
from manifactor.estimators import ManifoldFactorizer
from manifactor.judging.evidence import Evidence
from manifactor.scores import score, wilson_interval
from manifactor.views import plots
from studies.charts import svg_file
from studies.pieces import of_seeds, seeds
from studies.records import VERDICTS, count, with_verdict
from studies.running import exit_code, new_files, parser, recorded

# First sentence of the report.
RIGHT = (
    "An answer is right if every factor of the problem was found, or both angles of a flat torus; "
    'on a problem with one factor, if the verdict is "none" or "one factor", or "separable" '
    'or "partial" and the coordinates in which the Laplacian separates were found.'
)


@dataclass(frozen=True)
class CalibrationSettings:
    """Settings of the calibration."""

    # Bins of a verdict's probability, with equally many problems each.
    n_bins: int = 8
    # The 95 % interval of a rate among fewer problems is up to .5 wide. A verdict that was given
    # less often has one bin.
    fewest_in_bin: int = 10
    # Inches: half the width of a page of text.
    picture_size: tuple[float, float] = (3.6, 3.2)


def record(seed: int) -> dict:
    """Fit a random problem and return the verdict, its tests and the score."""
    problem = datasets.random_problem(seed)
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        try:
            said = _answer(problem, seed)
        # One failure must not lose the other problems.
        except Exception as error:
            said = {"verdict": f"error: {error}", "probability": None}
    return {
        "seed": seed,
        "kind": problem.kind,
        "product": problem.product,
        "factors": len(problem.truth),
        "separable": bool(problem.coordinates),
        "description": problem.description,
        # A fit that failed has no score.
        "number_right": False,
        "solved": False,
        "right": False,
        **said,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _answer(problem: Problem, seed: int) -> dict:
    """Return the verdict, its probability and its tests, and the score."""
    # One thread: there is a process for each core already.
    fit = ManifoldFactorizer(random_state=seed, n_jobs=1).fit(problem.X)
    evidence = fit.evidence_
    embeddings = _embeddings(fit)
    found = score(embeddings, problem.truth)
    right = found.solved
    if len(problem.truth) == 1:
        # There is nothing to be split: the verdict is the answer, unless coordinates separate.
        separated = any(score(embeddings, each).solved for each in problem.coordinates)
        right = fit.verdict_ in ("none", "one factor") or (
            fit.verdict_ in ("separable", "partial") and separated
        )
    return {
        "verdict": fit.verdict_,
        "probability": _or_none(round(evidence.probability, 4)),
        "number_right": found.number_right,
        "solved": found.solved,
        "right": right,
        "own": round(found.worst, 4),
        "leak": round(found.leak, 4),
        "reason": evidence.reason,
        "tests": _tests(evidence),
    }


def _embeddings(fit: ManifoldFactorizer) -> list[np.ndarray]:
    """Return where samples lie on every factor, or by both angles of a flat torus."""
    symmetries = fit.evidence_.symmetries
    if fit.verdict_ == "none" and symmetries is not None and symmetries.angles is not None:
        return [ring(angle) for angle in symmetries.angles.T]
    return [factor.embedding for factor in fit.factors_]


def _tests(evidence: Evidence) -> list[dict]:
    """Return the numbers of all tests, from which a probability can be made anew."""
    kept = ("name", "value", "noise", "limit", "at_least", "passed")
    tests = [asdict(test) for test in evidence.tests]
    return [{key: _or_none(test[key]) for key in kept} for test in tests]


def _or_none(value):
    """Return the value, with None for nan, which is no JSON."""
    return None if isinstance(value, float) and np.isnan(value) else value


def render(records: Iterable[dict]) -> str:
    """Return the report in Markdown.

    First the share of each verdict that is right, then that of problems wrongly called "product",
    then a table of kinds of problems by verdicts.
    """
    records = list(records)
    shares = [f"- {share}" for share in _shares(records)]
    return "\n".join([RIGHT, "", *shares, "", *_table(records)]) + "\n"


def _shares(records: Sequence[dict]) -> Iterator[str]:
    """Yield a sentence on each verdict, on false products and on fits that failed."""
    for verdict in VERDICTS:
        given = with_verdict(records, verdict)
        if given:
            share = _share(count(given, "right"), len(given))
            yield f'Right when the verdict is "{verdict}": {share}.'
    no_products = [one for one in records if not one["product"]]
    if no_products:
        share = _share(len(with_verdict(no_products, "product")), len(no_products))
        yield f'Problems that are no product, but called "product": {share}.'
    failed = [one for one in records if one["verdict"] not in VERDICTS]
    if failed:
        seeds = ", ".join(str(one["seed"]) for one in failed)
        yield f"Fits that failed: {len(failed)}, problems {seeds}."


def _share(part: int, total: int) -> str:
    low, high = wilson_interval(part, total)
    return f"{part / total:.1%} ({part} of {total}; 95 % interval {low:.1%} to {high:.1%})"


def _table(records: Sequence[dict]) -> Iterator[str]:
    """Yield the lines of the table: a row for each kind, then one for all."""
    heads = [
        "kind",
        "problems",
        "right",
        *(f'right of "{verdict}"' for verdict in VERDICTS),
        'no product, but called "product"',
    ]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for kind in (*KINDS, "irreducible"):
        members = [one for one in records if one["kind"] == kind]
        if members:
            yield _row(kind, members)
    yield _row("all", records)


def _row(kind: str, members: Sequence[dict]) -> str:
    no_products = [one for one in members if not one["product"]]
    wrong = f"{len(with_verdict(no_products, 'product'))} of {len(no_products)}"
    cells = [
        kind,
        f"{len(members)}",
        f"{count(members, 'right') / len(members):.0%}",
        *(_right_of(with_verdict(members, verdict)) for verdict in VERDICTS),
        # Most kinds have none.
        wrong if no_products else "-",
    ]
    return f"| {' | '.join(cells)} |"


def _right_of(given: Sequence[dict]) -> str:
    return f"{count(given, 'right')} of {len(given)}" if given else "-"


def curves(
    records: Sequence[dict], *, settings: CalibrationSettings = CalibrationSettings()
) -> dict[str, list[plots.Rate]]:
    """Return the share that is right in bins of the probability, for each verdict given.

    >>> answer = {"verdict": "none", "probability": 0.5, "right": True}
    >>> (rate,) = curves([answer, answer])["none"]
    >>> f"{rate.rate:.2f} ({rate.low:.2f} to {rate.high:.2f})"
    '1.00 (0.34 to 1.00)'
    """
    found = {}
    for verdict in VERDICTS:
        # Outside of the range of its table, a probability is not known.
        given = [one for one in with_verdict(records, verdict) if one["probability"] is not None]
        given = sorted(given, key=lambda one: one["probability"])
        n_bins = min(settings.n_bins, len(given) // settings.fewest_in_bin)
        if given:
            bins = np.array_split(np.arange(len(given)), max(n_bins, 1))
            found[verdict] = [_rate([given[i] for i in members]) for members in bins]
    return found


def _rate(members: Sequence[dict]) -> plots.Rate:
    right = count(members, "right")
    low, high = wilson_interval(right, len(members))
    probability = float(np.mean([one["probability"] for one in members]))
    return plots.Rate(probability, right / len(members), low, high)


def diagram(
    records: Sequence[dict], *, settings: CalibrationSettings = CalibrationSettings()
) -> dict[str, bytes]:
    """Return the reliability diagram as the content of picture files, by suffix.

    The .svg file has colours for light and for dark screens. There are no files if no problem has a
    verdict.
    """
    rates = curves(records, settings=settings)
    if not rates:
        return {}
    with plots.style():
        pixels = plots.picture(_figure(rates, settings))[".png"]
    with plots.style(plots.PAGE):
        drawn = plots.svg(_figure(rates, settings), "reliability")
    return {".svg": svg_file(drawn), ".png": pixels}


def _figure(rates: dict[str, list[plots.Rate]], settings: CalibrationSettings):
    figure = plots.new_figure(*settings.picture_size)
    plots.reliability(figure.subplots(), rates)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Measure how often each verdict on random problems is right."""
    grammar = parser(__doc__.partition("\n")[0])
    grammar.add_argument("--problems", type=int, metavar="N", help="2000, or 20 with --quick")
    options = grammar.parse_args(argv)
    # About 1000 of 2000 are called "product", so that a rate of 99 % is known to .6 %.
    n_problems = options.problems or (20 if options.quick else 2000)
    files = new_files(options, "calibration", ".jsonl", ".md", ".svg", ".png")
    study = partial(of_seeds, record, n_problems)
    with recorded(
        files[".jsonl"], seeds(n_problems), study, overwrite=options.overwrite
    ) as records:
        report = render(records)
        print(report)
        # The table first: drawing may fail, and it needs no picture.
        write_bytes(files[".md"], report.encode())
        pictures = diagram(records)
        for suffix, content in pictures.items():
            write_bytes(files[suffix], content)
        if pictures:
            drawn = f"\n![Share of right answers over probability]({files['.svg'].name})\n"
            write_bytes(files[".md"], f"{report}{drawn}".encode())


if __name__ == "__main__":
    sys.exit(exit_code(main))
