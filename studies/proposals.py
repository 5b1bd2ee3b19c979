"""What the fit says of random problems, and what is true: records that a judge is learnt from.

``python -m studies.proposals --problems 10000 --jobs 16 --minutes 20 --output FILE.jsonl.xz``
writes one line for each problem: what it is, everything that the models of the table propose, with
all that is measured of it, and whether that is right. The same command continues what has stopped.
"""

import json
import lzma
import os
import signal
import sys
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import TimeoutError as Late
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manifactor._support.files import write_bytes
from manifactor._support.stages import Stages
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.reading import read_samples
from manifactor.factorize import (
    agreement_of,
    as_one,
    as_whole,
    best_of,
    conclude,
    facts_of,
    is_sure,
    rated,
    search,
)
from manifactor.factors.factor import Factor
from manifactor.judging.candidate import Candidate, Facts, likeliest
from manifactor.judging.table import CRITERIA
from manifactor.kinds import MODELS, NOTHING
from manifactor.operators.operator import DiffusionSettings
from manifactor.samples import Samples
from manifactor.settings import FactoringSettings
from manifactor.statistics import Measurement, distinct_rows, leaves_noise
from studies import moving
from studies.labels import Truths
from studies.mixture import Problem, draw
from studies.running import exit_code

# Seconds of one core that a problem may take; other work on the machine changes nothing.
LIMIT = 60.0
# Models that add nothing where they would not be tried: of even samples the density changes
# nothing, and more functions are of use where a dimension is missing.
AS_BY_DEFAULT = {"one factor", "density", "more functions", "square roots"}
# The models that the default passes over are tried of one problem in so many: what is sure without
# them takes half of the time.
THOROUGH = 3
# Records that are compressed together.
N_TOGETHER = 40


def record(seed: int, *, family: str | None = None, limit: float = LIMIT) -> dict:
    """Return all that models propose for a random problem, and whether it is right.

    What fails or takes too long is recorded as an error, beside what was found before.
    """
    problem = draw(seed, family=family)
    found: dict[str, Any] = {"seed": seed, **_of_problem(problem), "errors": []}
    start, everything = time.process_time(), list[tuple[Candidate, bool]]()
    with warnings.catch_warnings(action="ignore"):
        truths = _of_distinct(problem)
        found["ceilings"] = rounded(truths.ceilings)
        try:
            with _limited(limit):
                _fit(truths, found, everything)
        # One failure must not lose the other problems, nor what was found before.
        except Exception as error:
            found["errors"].append(_said(error))
        found |= _of_candidates(everything, truths)
    return found | {"seconds in all": round(time.process_time() - start, 2)}


def moving_record(seed: int, *, limit: float = 4 * LIMIT) -> dict:
    """Return the same for a random moving problem, of what the fit tries by default."""
    problem = moving.draw(seed)
    found: dict[str, Any] = {
        "seed": seed,
        "family": problem.family,
        "member": problem.member,
        "moving": True,
        "conditions": {"noise": problem.noise, "n": len(problem.X), **problem.details},
        "n_columns": problem.X.shape[1],
        "true": [[t.shape[1] for t in problem.truth]],
        "errors": [],
    }
    start, told = time.process_time(), list[dict]()
    with warnings.catch_warnings(action="ignore"):
        try:
            with _limited(limit):
                found |= _fit_moves(problem, told)
        # One failure must not lose the other problems, nor what was found before.
        except Exception as error:
            found["errors"].append(_said(error))
    found["candidates"] = told
    return found | {"seconds in all": round(time.process_time() - start, 2)}


def _fit_moves(problem: moving.Moving, told: list[dict]) -> dict:
    given = {"metric": None, "times": None, "trajectories": False, "bursts": None, "pairs": None}
    drawn = problem.fitted if {"times", "pairs"} & set(problem.known) else "auto"
    if drawn != "auto":
        drawn = min(drawn, len(problem.X) - 1)
    own = ManifoldFactorizer(n_jobs=1, random_state=0)
    samples = read_samples(
        own, problem.X, {**given, "lag": None, **problem.known}, None, None, drawn
    )
    facts = facts_of(samples, DiffusionSettings(n_jobs=1), FactoringSettings(), Stages())
    tried = search(facts)
    truths = dict[int, Truths]()

    def truths_of(samples: Samples | None) -> Truths:
        # Pairs are of other samples.
        assert samples is not None
        if id(samples) not in truths:
            rows = np.arange(len(problem.X)) if samples.rows is None else samples.rows
            truths[id(samples)] = Truths(problem.X[rows], [tuple(t[rows] for t in problem.truth)])
        return truths[id(samples)]

    for each in tried:
        alike = [other for other in tried if other.facts is each.facts and other is not each]
        agreed = [agreement_of([each, other])[0, 1] for other in alike]
        sampling, own_truths = each.facts.sampling, truths_of(each.facts.drawn)
        told.append(
            {
                **_of_candidate(each, own_truths),
                "by default": True,
                "ceilings": rounded(own_truths.ceilings),
                "n_distinct": sampling.n_samples,
                "prepared": sampling.n_columns,
                "dimension": rounded(sampling.dimension),
                "spread": rounded(sampling.spread),
                "others": [
                    [len(other.factors), rounded(r2)]
                    for other, r2 in zip(alike, agreed, strict=True)
                    if not np.isnan(r2)
                ],
            }
        )
    result = conclude(facts, tried)
    embeddings = [factor.embedding for factor in result.factors]
    return {
        "verdict": result.evidence.verdict,
        "n_factors": len(embeddings),
        "answer": result.evidence.answer,
        "curve": result.evidence.curve,
        "label": truths_of(result.drawn).label(embeddings).name,
        "label of told": truths_of(result.drawn).label(embeddings, only_told=True).name,
    }


def _of_distinct(problem: Problem) -> Truths:
    """Return the samples that the estimator fits, with their truths: without copies of rows."""
    rows, _ = distinct_rows(problem.X)
    if len(rows) < CRITERIA["samples"].limit:
        rows = np.arange(len(problem.X))
    truths = [tuple(t[rows] for t in truth) for truth in problem.truths]
    return Truths(problem.X[rows], truths)


def _of_problem(problem: Problem) -> dict:
    return {
        "family": problem.family,
        "member": problem.member,
        "is_product": problem.is_product,
        "conditions": asdict(problem.conditions),
        "n": len(problem.X),
        "n_columns": problem.X.shape[1],
        "true": [[t.shape[1] for t in truth] for truth in problem.truths],
    }


def _fit(truths: Truths, found: dict, everything: list[tuple[Candidate, bool]]) -> None:
    """Fit samples as the estimator does by default, and let all other models propose, too.

    Candidates are added to `everything` as they come, with whether the default tries their model.
    """
    start = time.process_time()
    facts = facts_of(Samples(truths.X), DiffusionSettings(n_jobs=1), FactoringSettings(), Stages())
    sampling = facts.sampling
    found |= {
        "n_distinct": sampling.n_samples,
        "prepared": 0 if facts.operator.points is None else facts.operator.points.shape[1],
        "dimension": rounded(sampling.dimension),
        "spread": rounded(sampling.spread),
        "columns that are none": facts.columns,
        "is_free": facts.is_free,
        "seconds of models": {},
        "passed over": {},
    }
    tried: list[Candidate] = []
    is_thorough = found["seed"] % THOROUGH == 0
    spent, is_over = time.process_time() - start, False
    for name, model in MODELS.items():
        if model.of != "samples" and name != "one factor":
            continue
        begun = time.process_time()
        by_default = not is_over and bool(model.worth_trying(facts, tried))
        if not by_default and not (facts.is_free and is_thorough and name not in AS_BY_DEFAULT):
            continue
        try:
            operator = model.operator(facts, tried)
            candidates = (
                [*model.read(model, operator, facts, tried)] if operator is not None else []
            )
        except TimeoutError:
            raise
        except NOTHING as error:
            found["passed over"][name] = str(error)[:300]
            candidates = []
        # As above: the other models go on.
        except Exception as error:
            found["errors"].append({"model": name, **_said(error)})
            candidates = []
        everything += [(each, by_default) for each in candidates]
        found["seconds of models"][name] = round(time.process_time() - begun, 2)
        if by_default:
            if candidates:
                tried = rated([*tried, best_of(candidates, facts)], facts)
                is_over = is_sure(tried[-1])
            spent += time.process_time() - begun
    begun = time.process_time()
    result = facts.conclude(facts, tried)
    found["seconds"] = round(spent + time.process_time() - begun, 2)
    evidence = result.evidence
    embeddings = [factor.embedding for factor in result.factors]
    found |= {
        "verdict": evidence.verdict,
        "sense": evidence.sense,
        "probability": rounded(evidence.probability),
        "n_factors": len(embeddings),
        "answer": evidence.answer,
        "curve": evidence.curve,
        "label": truths.label(embeddings).name,
        "label of told": truths.label(embeddings, only_told=True).name,
        "whole": _of_whole(as_whole(as_one(tried, likeliest(tried)))[0], facts, truths),
    }


def _of_whole(found: Sequence[Factor], facts: Facts, truths: Truths) -> dict:
    """What the samples are as one factor, and whether they are: a curve may be all of them."""
    (whole,) = found
    label, points = truths.label([whole.embedding]), facts.operator.points
    is_curve = whole.topology != "other" and points is not None
    return {
        "topology": whole.topology,
        "dimension": whole.dimension,
        "is a curve": is_curve and leaves_noise(whole.embedding, points),
        "r2": rounded(label.r2[0]),
        # By any alternative, whether there is one truth, and whether this one factor tells it.
        "is one": any(len(truth) == 1 for truth in truths.alternatives),
        "is right": label.name == "right",
    }


def _of_candidates(everything: Sequence[tuple[Candidate, bool]], truths: Truths) -> dict:
    """Everything that is known of candidates, and how far they agree: R^2 of factors, matched."""
    candidates = [each for each, _ in everything]
    told = [
        {"by default": by_default, **_of_candidate(each, truths)} for each, by_default in everything
    ]
    return {"candidates": told, "agreement": rounded(agreement_of(candidates))}


def _of_candidate(candidate: Candidate, truths: Truths) -> dict:
    factors = candidate.factors
    embeddings = [factor.embedding for factor in factors]
    found: dict[str, Any] = {
        "model": candidate.model,
        "sense": candidate.sense,
        "kinds": sorted(candidate.kinds),
        "strict": candidate.strict,
        "functions": len(candidate.operator.distinct.eigenvalues),
        "n_factors": len(factors),
        "dimensions": [factor.dimension for factor in factors],
        "topologies": [factor.topology for factor in factors],
        "confidences": rounded([factor.confidence.mean() for factor in factors]),
        "verdict": candidate.verdict,
        "tests": [
            [
                test.name,
                *(rounded(each) for each in (test.value, test.noise, test.limit)),
                bool(test.passed),
                bool(test.at_least),
            ]
            for test in candidate.tests
        ],
        "numbers": {
            name: [rounded(number.value), rounded(number.noise)]
            for name, number in candidate.numbers.items()
            if isinstance(number, Measurement)
        },
    }
    if len(factors) < 2:
        return found
    label = truths.label(embeddings)
    return found | {
        "leakage": rounded(candidate.leakage),
        "null": rounded(candidate.null),
        "label": label.name,
        "label of told": truths.label(embeddings, only_told=True).name,
        "truth": label.alternative,
        "r2": rounded(label.r2),
        "right": list(label.right),
    }


def rounded(values: Any) -> Any:
    """Return numbers with five digits, None for those that JSON has not."""
    if isinstance(values, list | tuple) or np.ndim(values):
        return [rounded(value) for value in values]
    return float(f"{values:.5g}") if np.isfinite(values) else None


def _said(error: Exception) -> dict:
    return {"error": type(error).__name__, "message": str(error)[:300]}


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError inside the context after so many seconds; in the main thread only."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"the problem took more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, late)
    # Again and again, as code that is interrupted may catch the first error.
    signal.setitimer(signal.ITIMER_PROF, seconds, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# Many problems, in a file.


def read(path: Path) -> list[dict]:
    """Return the records of a file, but for a last one that was not written as a whole."""
    lines, unpacker, rest = [], lzma.LZMADecompressor(), path.read_bytes()
    while rest:
        try:
            text = unpacker.decompress(rest)
        except lzma.LZMAError:
            break
        if not unpacker.eof:
            break
        lines += text.decode().splitlines()
        rest, unpacker = unpacker.unused_data, lzma.LZMADecompressor()
    return [json.loads(line) for line in lines]


def write(path: Path, records: Sequence[dict], *, append: bool = False) -> None:
    """Write records, compressed, behind those that the file has."""
    packed = lzma.compress("".join(f"{json.dumps(each)}\n" for each in records).encode())
    if not append:
        write_bytes(path, packed)
        return
    with path.open("ab") as file:
        file.write(packed)


def _start(cores: Any) -> None:
    """Leave one core to a worker, and the interrupt to its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    core = cores.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def records_of(
    seeds: Sequence[int], *, jobs: int, minutes: float, work: Callable[[int], dict] = record
) -> Iterator[dict]:
    """Yield records as they are done; after so many minutes, no more."""
    end, context = time.monotonic() + 60 * minutes, get_context("spawn")
    own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    cores = context.SimpleQueue()
    for number in range(4 * jobs):  # a worker that was killed is replaced
        cores.put(own[number % len(own)])
    with context.Pool(jobs, _start, (cores,)) as pool:
        done = pool.imap_unordered(work, seeds)
        while (left := end - time.monotonic()) > 0:
            try:
                yield done.next(timeout=left)
            except (StopIteration, Late):
                return


def table(records: Sequence[dict]) -> str:
    """Return how many divisions of each family are right, coarse and wrong, as Markdown.

    Beside the verdicts: what the default fit returned, where it returned several factors.
    """
    lines = [
        "| family | problems | seconds | errors | right | coarse | wrong | in hand "
        "| returned | right |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for family in [*sorted({each["family"] for each in records}), "all"]:
        own = [each for each in records if family in (each["family"], "all")]
        labels = [c["label"] for each in own for c in each["candidates"] if "label" in c]
        hand = sum(any(c.get("label") == "right" for c in each["candidates"]) for each in own)
        returned = [each["label"] for each in own if each.get("n_factors", 0) > 1]
        seconds = np.mean([each["seconds in all"] for each in own])
        counts = " | ".join(str(labels.count(name)) for name in ("right", "coarse", "wrong"))
        errors = sum(bool(each["errors"]) for each in own)
        lines.append(
            f"| {family} | {len(own)} | {seconds:.1f} | {errors} | {counts} | {hand} "
            f"| {len(returned)} | {returned.count('right')} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Record what the fit says of random problems."""
    grammar = ArgumentParser(description=__doc__.partition("\n")[0])
    grammar.add_argument("--problems", type=int, default=10_000, metavar="N")
    grammar.add_argument("--first", type=int, default=0, metavar="SEED")
    grammar.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    grammar.add_argument("--minutes", type=float, default=20.0)
    grammar.add_argument("--moving", action="store_true", help="problems of samples that move")
    grammar.add_argument("--output", type=Path, required=True, metavar="FILE.jsonl.xz")
    options = grammar.parse_args(argv)
    known = read(options.output) if options.output.exists() else []
    write(options.output, known)
    missing = set(range(options.first, options.first + options.problems))
    missing -= {each["seed"] for each in known if bool(each.get("moving")) == options.moving}
    fresh: list[dict] = []
    work = moving_record if options.moving else record
    for each in records_of(sorted(missing), jobs=options.jobs, minutes=options.minutes, work=work):
        fresh.append(each)
        if len(fresh) % N_TOGETHER == 0:
            write(options.output, fresh[-N_TOGETHER:], append=True)
    last = len(fresh) % N_TOGETHER
    write(options.output, fresh[len(fresh) - last :], append=True)
    print(table([*known, *fresh]))


if __name__ == "__main__":
    sys.exit(exit_code(main))
