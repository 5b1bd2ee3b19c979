"""How often results with given tests are right: the probability that a fit prints.

Every sense proposes its factors of every problem of a wide mixture; the tests of each proposal and
whether it is right are recorded. A monotone model of the records is the table of
`manifactor.judging.probability`. It is checked on members of the families that it was not
learnt from.
"""

import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from manifactor._support.files import write_bytes
from manifactor._support.stages import Stages
from manifactor.estimators import DiffusionMap
from manifactor.factorize import confirmations, facts_of, search
from manifactor.judging.candidate import NEARLY, Candidate, Facts
from manifactor.judging.evidence import VERDICTS, verdict_of
from manifactor.judging.measure import Test
from manifactor.judging.probability import (
    KNOTS,
    Sampling,
    kind_of_several,
    log_odds,
    of_factor,
    of_one,
    of_several,
)
from manifactor.judging.table import CRITERIA
from manifactor.kinds import MODELS, always, whole_factor
from manifactor.operators.operator import DiffusionSettings, Operator
from manifactor.samples import Samples
from manifactor.scores import score
from manifactor.settings import FactoringSettings
from studies.calibration import diagram
from studies.mixture import Problem, draw
from studies.pieces import of_seeds, seeds
from studies.running import exit_code, new_files, parser, recorded

# Groups of members that are left out in turn.
N_FOLDS = 5
# Strength of the prior that shortcomings do not matter.
SHRINKAGE = 3.0


def record(seed: int, *, family: str | None = None) -> dict:
    """Return the proposals of all senses for a random problem, with their tests and scores.

    A product in the geometry that is sure is the only proposal, as in a fit.
    """
    problem = draw(seed, family=family)
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        diffusion = DiffusionMap(n_functions=100, random_state=seed, n_jobs=1).fit(problem.X)
        found = diffusion.diffusion_
        proposed = _proposed(found, problem.X, seed)
        confirmed = confirmations(proposed)
        proposals = [
            _proposal(each, r2, problem)
            for each, r2 in zip(proposed, confirmed, strict=True)
            # What is not divided is told by the geometry alone.
            if each.factors or each.sense == "geometry"
        ]
    return {
        "seed": seed,
        "family": problem.family,
        "member": problem.member,
        "n": len(problem.X),
        "columns": problem.X.shape[1],
        "dimension": round(found.dimension, 3),
        "evenness": _rounded(proposed[0].facts.sampling.spread),
        "true": [truth.shape[1] for truth in problem.truth],
        "proposals": proposals,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _proposed(diffusion: Operator, X: np.ndarray, seed: int) -> list[Candidate]:
    """What each model proposes, and what the geometry proposes of more functions."""
    facts = facts_of(Samples(X), DiffusionSettings(), FactoringSettings(), Stages())
    facts = replace(facts, operator=diffusion, is_free=True, streams={})

    def is_worth_it(name: str) -> Callable[[Facts, Sequence[Candidate]], bool]:
        if name == "density":
            return lambda facts, tried: facts.sampling.is_uneven
        if name == "more functions":
            return lambda facts, tried: tried[0].fails("dimensions", "missing dimensions")
        return always

    names = ("geometry", "sum", "volume", "density", "separable", "more functions")
    names += ("ica", "ica of functions")
    rows = [replace(MODELS[name], worth_trying=is_worth_it(name)) for name in names]
    # Each model draws the same random numbers.
    facts.streams = {name: np.random.default_rng(seed) for name in names}
    return search(facts, rows)


def _proposal(proposed: Candidate, confirmed: float, problem: Problem) -> dict:
    factors = proposed.factors or whole_factor(proposed.operator)[0]
    embeddings = [factor.embedding for factor in factors]
    results = [score(embeddings, truth) for truth in problem.truths]
    result = max(results, key=lambda each: (each.solved, each.number_right, each.worst))
    best = result.r2.argmax(axis=0)
    return {
        "sense": proposed.sense,
        "verdict": verdict_of(proposed.tests, len(proposed.factors), proposed.sense),
        "functions": len(proposed.operator.distinct.eigenvalues),
        "topologies": [factor.topology for factor in factors],
        "dimensions": [factor.dimension for factor in factors],
        "confidences": [round(float(factor.confidence.mean()), 4) for factor in factors],
        "confirmed": _rounded(confirmed),
        "solved": result.solved,
        # A factor is right if it tells one true factor, and nothing of the others.
        "right": [
            bool(
                result.r2[true, j] >= 0.95 and np.delete(result.r2[:, j], true).max(initial=0) < 0.1
            )
            for j, true in enumerate(best)
        ],
        "worst": round(result.worst, 4),
        "leak": round(result.leak, 4),
        "leakage": _rounded(proposed.leakage),
        "null": _rounded(proposed.null),
        "tests": [
            [
                test.name,
                _rounded(test.value),
                _rounded(test.noise),
                _rounded(test.limit),
                test.passed,
            ]
            for test in proposed.tests
        ],
    }


def _rounded(values) -> float | list | None:
    """Numbers with six digits, None for nan, which is no JSON."""
    if np.ndim(values):
        return [_rounded(value) for value in values]
    return None if np.isnan(values) else float(f"{values:.6g}")


# The model: log odds that start from the kind of a result and fall with its shortcomings.


@dataclass(frozen=True)
class Example:
    """A result, its shortcomings, and whether it is right."""

    problem: int  # number of its record
    member: str
    verdict: str
    kind: str
    shortcomings: Mapping[str, float]
    right: bool


Table = dict[str, dict]


def sampling_in(record: dict) -> Sampling:
    """Return what a record says of the samples."""
    spread = record["evenness"]
    return Sampling(record["n"], record["dimension"], np.nan if spread is None else spread)


def _tests(proposal: dict) -> list[Test]:
    tests = []
    for name, value, noise, limit, passed in proposal["tests"]:
        numbers = (np.nan if number is None else number for number in (value, noise))
        test = Test(name, *numbers, limit, passed, "")
        tests.append(replace(test, at_least=not CRITERIA[test.kind].at_most))
    return tests


def of_proposals(records: Sequence[dict], *, alone: bool = False) -> list[tuple[Example, dict]]:
    """Return the examples of several factors, each with its proposal.

    Beside the other senses, or alone, as a fit in one sense has them.
    """
    return [
        (_example(number, record, {**proposal, "confirmed": None} if alone else proposal), proposal)
        for number, record in enumerate(records)
        for proposal in record["proposals"]
        if len(proposal["dimensions"]) > 1
    ]


def _example(number: int, record: dict, proposal: dict) -> Example:
    confirmed = np.nan if proposal["confirmed"] is None else proposal["confirmed"]
    shortcomings = of_several(
        proposal["sense"],
        _tests(proposal),
        proposal["dimensions"],
        min(proposal["confidences"]),
        confirmed,
        sampling_in(record),
    )
    kind = kind_of_several(proposal["sense"], len(proposal["dimensions"]))
    said = proposal["verdict"], kind, shortcomings, proposal["solved"]
    return Example(number, member_of(record), *said)


def member_of(record: dict) -> str:
    """Return the family and its member."""
    return f"{record['family']}: {record['member']}"


def of_undivided(records: Sequence[dict], likeliest: Mapping[int, float]) -> list[Example]:
    """Return the examples of one factor, beside the best division of each problem."""
    examples = []
    for number, record in enumerate(records):
        of_geometry = [each for each in record["proposals"] if each["sense"] == "geometry"]
        if not of_geometry:
            continue
        last = of_geometry[-1]
        kind = "probability"
        if len(last["dimensions"]) == 1:
            failed = [test[0] for test in last["tests"] if not test[4]]
            kind = failed[-1] if last["topologies"] == ["other"] else "curve"
        found = of_one(likeliest.get(number, 0.0), sampling_in(record))
        verdict = "one factor" if kind == "curve" else "none"
        right = len(record["true"]) == 1
        examples.append(Example(number, member_of(record), verdict, kind, found, right))
    return examples


def of_factors(proposals: Iterable[tuple[Example, dict]], right: Sequence[float]) -> list[Example]:
    """Return the examples of single factors, beside the probability of all."""
    examples = []
    for (whole, proposal), of_all in zip(proposals, right, strict=True):
        leaks = np.array(proposal["leakage"], float)
        own = np.fmax(np.nanmax(leaks, axis=0), np.nanmax(leaks, axis=1))
        each = zip(
            proposal["topologies"], own, proposal["confidences"], proposal["right"], strict=True
        )
        for topology, leak, sure, is_right in each:
            found = of_factor(of_all, leak, sure)
            examples.append(replace(whole, kind=topology, shortcomings=found, right=is_right))
    return examples


def design(examples: Sequence[Example], kinds: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Return one row for each example: its kind, and how far it is through each step of knots."""
    starts = np.array([[example.kind == kind for kind in kinds] for example in examples], float)
    far = np.array([[each.shortcomings.get(name, 0.0) for name in names] for each in examples])
    knots = np.array(KNOTS)
    steps = np.clip((far[:, :, None] - knots[:-1]) / np.diff(knots), 0, 1)
    return np.hstack([starts, steps.reshape(len(examples), -1)])


def fit(examples: Sequence[Example]) -> Table:
    """Return the kinds' log odds, and what shortcomings take off them, which is never negative."""
    kinds = sorted({each.kind for each in examples})
    names = sorted({name for each in examples for name in each.shortcomings})
    rows = design(examples, kinds, names)
    right = np.array([each.right for each in examples], float)
    prior = np.r_[np.full(len(kinds), 0.02), np.full(rows.shape[1] - len(kinds), SHRINKAGE)]

    def loss(odds: np.ndarray) -> tuple[float, np.ndarray]:
        values = rows @ odds
        fitted = np.logaddexp(0, values).sum() - right @ values + 0.5 * prior @ odds**2
        return fitted, rows.T @ (expit(values) - right) + prior * odds

    bounds = [(None, None)] * len(kinds) + [(None, 0.0)] * (len(prior) - len(kinds))
    odds = minimize(loss, np.zeros(len(prior)), jac=True, bounds=bounds, method="L-BFGS-B").x
    steps = odds[len(kinds) :].reshape(len(names), -1)
    curves = np.hstack([np.zeros((len(names), 1)), np.cumsum(steps, axis=1)])
    return {
        "kinds": dict(zip(kinds, odds.round(3).tolist(), strict=False)),
        "log odds": {
            name: curve
            for name, curve in zip(names, curves.round(3).tolist(), strict=True)
            if curve[-1] < 0
        },
    }


def predicted(table: Table, examples: Iterable[Example]) -> np.ndarray:
    """Return the probabilities of examples by a table."""
    return expit(np.array([log_odds(table, each.kind, each.shortcomings) for each in examples]))


def folds_of(examples: Sequence[Example]) -> np.ndarray:
    """Return the fold of each example: members of families are left out as a whole."""
    members = sorted({each.member for each in examples})
    number = {member: place % N_FOLDS for place, member in enumerate(members)}
    return np.array([number[each.member] for each in examples])


def left_out(examples: Sequence[Example]) -> np.ndarray:
    """Return the probability of each example by a table learnt without its member."""
    folds = folds_of(examples)
    right = np.zeros(len(examples))
    for fold in range(N_FOLDS):
        inside = [each for each, own in zip(examples, folds, strict=True) if own != fold]
        outside = [each for each, own in zip(examples, folds, strict=True) if own == fold]
        right[folds == fold] = predicted(fit(inside), outside)
    return right


@dataclass(frozen=True)
class Learnt:
    """The table, and the results that fits would have had, by tables without their members."""

    table: Table
    results: list[Example]
    probabilities: np.ndarray


def learn(records: Sequence[dict]) -> Learnt:
    """Learn the table from records, and check it."""
    several = of_proposals(records)
    wholes = [whole for whole, _ in several]
    alone = [whole for whole, _ in of_proposals(records, alone=True)]
    of_several_out = left_out([*wholes, *alone])[: len(wholes)]
    found: dict[int, list[tuple[float, Example]]] = defaultdict(list)
    for whole, right in zip(wholes, of_several_out, strict=True):
        found[whole.problem].append((float(right), whole))
    likeliest = {number: max(right for right, _ in each) for number, each in found.items()}
    ones = of_undivided(records, likeliest)
    of_ones_out = left_out(ones)
    returned = {number: chosen(each) for number, each in found.items()}
    for one, right in zip(ones, of_ones_out, strict=True):
        if likeliest.get(one.problem, 0.0) < CRITERIA["probability"].limit:
            returned[one.problem] = float(right), one
    dimensions = [record["dimension"] for record in records]
    table = {
        "problems": len(records),
        "samples": [min(r["n"] for r in records), max(r["n"] for r in records)],
        "dimension": [0.5, round(float(np.quantile(dimensions, 0.99)), 1)],
        "several": fit([*wholes, *alone]),
        "one": fit(ones),
        "factor": fit(of_factors(several, of_several_out)),
    }
    # Where it cannot be told, nothing is said.
    said = [(right, each) for right, each in returned.values() if not is_open(each.kind)]
    return Learnt(table, [each for _, each in said], np.array([right for right, _ in said]))


def chosen(found: Sequence[tuple[float, Example]]) -> tuple[float, Example]:
    """Return the division that a fit would choose, with its verdict; see `choose` of the package.

    It is the likeliest one, or one of a better verdict that is nearly as likely.
    """
    highest = max(right for right, _ in found)
    nearly = [each for each in found if each[0] >= highest - NEARLY]
    right, best = min(nearly, key=lambda each: (list(VERDICTS).index(each[1].verdict), -each[0]))
    if best.verdict == "product" and right < CRITERIA["certainty"].limit:
        best = replace(best, verdict="partial")
    return right, best


def is_open(kind: str) -> bool:
    """Return whether a result of this kind says that it cannot tell."""
    return kind in CRITERIA and CRITERIA[kind].answer == "cannot tell"


# The report.


def calibration_error(probabilities: np.ndarray, right: np.ndarray, *, n_bins: int = 10) -> float:
    """Return the mean distance of the probability from the rate, in bins of equally many results.

    >>> calibration_error(np.full(4, 0.5), np.array([0, 1, 0, 1]), n_bins=1)
    0.0
    """
    bins = np.array_split(np.argsort(probabilities, kind="stable"), n_bins)
    off = [len(rows) * abs(probabilities[rows].mean() - right[rows].mean()) for rows in bins]
    return float(sum(off) / len(right))


def render(learnt: Learnt) -> str:
    """Return the check of the table as Markdown: all results, and each family by itself."""
    right = np.array([each.right for each in learnt.results], float)
    family = np.array([each.member.partition(":")[0] for each in learnt.results])
    lines = [
        f"Learnt from {learnt.table['problems']} problems. The results of each member of a family "
        "have the probability by a table that was learnt without it.",
        "",
        "| family | results | right | mean probability | Brier score | calibration error |",
        "|---|---|---|---|---|---|",
    ]
    for name in [*sorted(set(family)), "all"]:
        rows = (family == name) | (name == "all")
        said, was = learnt.probabilities[rows], right[rows]
        brier = np.mean((said - was) ** 2)
        error = calibration_error(said, was, n_bins=10 if name == "all" else 4)
        lines.append(
            f"| {name} | {rows.sum()} | {was.mean():.0%} | {said.mean():.0%} | {brier:.3f} "
            f"| {error:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Learn how often results with given tests are right, and check it."""
    grammar = parser(__doc__.partition("\n")[0])
    grammar.add_argument("--problems", type=int, metavar="N", help="20000, or 40 with --quick")
    grammar.add_argument(
        "--records", nargs="+", type=Path, metavar="FILE", help="learn from these, fit nothing"
    )
    options = grammar.parse_args(argv)
    files = new_files(options, "judgement", ".jsonl", ".json", ".md", ".svg")
    if options.records:
        lines = [line for path in options.records for line in path.read_text().splitlines()]
        write(learn([json.loads(line) for line in lines]), files)
        return
    n_problems = options.problems or (40 if options.quick else 20_000)
    study = partial(of_seeds, record, n_problems)
    with recorded(
        files[".jsonl"], seeds(n_problems), study, overwrite=options.overwrite
    ) as records:
        write(learn(records), files)


def write(learnt: Learnt, files: Mapping[str, Path]) -> None:
    """Write the table, which is to be copied beside its module, the check and its picture."""
    report = render(learnt)
    print(report)
    write_bytes(files[".json"], (json.dumps(learnt.table, indent=1) + "\n").encode())
    write_bytes(files[".md"], report.encode())
    answers = [
        {"verdict": each.verdict, "probability": said, "right": each.right}
        for each, said in zip(learnt.results, learnt.probabilities, strict=True)
    ]
    write_bytes(files[".svg"], diagram(answers)[".svg"])


if __name__ == "__main__":
    sys.exit(exit_code(main))
