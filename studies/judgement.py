"""How often results are right, learnt from records of random problems: the judge of the package.

``python -m studies.judgement --records studies/problems.jsonl.xz`` reads what `studies.proposals`
has written and makes boosted trees, whose arrays are `judge.npz` of `manifactor.judging`, and a
report on problems of families that the trees were not learnt from. Records of moving samples give
a part "dynamics", which is checked, and not used by the package yet.
"""

import io
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from manifactor._support.files import write_bytes
from manifactor.judging.measure import Test
from manifactor.judging.probability import Sampling, Trees, agreement, of_factor, of_one, of_several
from manifactor.judging.table import CRITERIA
from manifactor.statistics import Measurement
from studies.calibration import diagram
from studies.proposals import read
from studies.running import exit_code

# Families are left out in so many groups.
N_FOLDS = 8
# Trees of each part, and the leaves of a tree.
N_TREES, N_LEAVES = 200, 8
# Shortcomings beside the tests: more of them never make a result likelier.
FALLING = {
    "straight terms",
    "disagreement",
    "second disagreement",
    "more dimensions",
    "fewer dimensions",
    "uncertainty of coordinates",
    "right division",
    "true division",
    "own leakage",
    "failed tests",
    "tests near their limits",
    "wrong coordinates",
    "largest shortcoming",
    "all shortcomings",
    "distance correlation",
    "noise",
}
RISING = {"all factors", "curve"}


@dataclass(frozen=True)
class Example:
    """A result, what is known of it, and whether it is right."""

    problem: int  # number of its record
    family: str
    inputs: Mapping[str, float]
    right: bool
    weight: float = 1.0
    verdict: str = ""


def sampling_in(record: dict) -> Sampling:
    """Return what a record says of the samples."""
    return Sampling(
        record["n_distinct"],
        _number(record["dimension"]),
        _number(record["spread"]),
        record["prepared"],
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def tests_of(candidate: dict) -> list[Test]:
    """Return the tests of a recorded candidate."""
    return [
        Test(name, _number(value), _number(noise), limit, passed, "", at_least)
        for name, value, noise, limit, passed, at_least in candidate["tests"]
    ]


# What a result is compared with: results of the models that a fit tries, of all, or of none.


def contexts(record: dict) -> Iterator[tuple[str, list[int]]]:
    """Yield names of contexts and the numbers of the candidates of several factors in each."""
    several = [k for k, each in enumerate(record["candidates"]) if each["n_factors"] > 1]
    default = [k for k in several if record["candidates"][k]["by default"]]
    yield "default", default
    if default != several:
        yield "all", several
    yield "alone", several


def several_of(
    records: Sequence[dict], label: str = "right", only: str = ""
) -> list[tuple[Example, dict]]:
    """Return the examples of several factors, each with its candidate, in one context or in all.

    With `label="coarse"`, divisions that are true but not finished count as right, too.
    """
    examples = []
    right = ("right", "coarse")[: 1 + (label == "coarse")]
    for number, record in enumerate(records):
        if not record.get("n_distinct"):
            continue
        for context, members in contexts(record):
            if only not in ("", context):
                continue
            for k in members:
                candidate = record["candidates"][k]
                beside = members if context != "alone" else []
                inputs = _inputs_of_several(record, k, beside)
                is_right = candidate["label of told"] in right
                # The same candidate is in up to three contexts.
                weight = 0.5 if context == "alone" else 1.0
                own = Example(number, record["family"], inputs, is_right, weight, "")
                examples.append((own, candidate))
    return examples


def _inputs_of_several(record: dict, k: int, beside: Sequence[int]) -> dict[str, float]:
    candidate = record["candidates"][k]
    best: dict[str, tuple[int, float]] = {}
    for other in beside:
        own, r2 = record["candidates"][other], record["agreement"][k][other]
        if own["model"] == candidate["model"] or r2 is None:
            continue
        # A result with as many factors says more.
        found = own["n_factors"], r2
        best[own["model"]] = max(
            (found, best.get(own["model"], found)),
            key=lambda each: (each[0] == candidate["n_factors"], each[1]),
        )
    return _inputs(candidate, [*best.values()], sampling_in(record))


def _inputs(
    candidate: dict, others: Sequence[tuple[int, float]], sampling: Sampling
) -> dict[str, float]:
    return of_several(
        candidate["model"],
        candidate["sense"],
        tests_of(candidate),
        [*zip(candidate["topologies"], candidate["dimensions"], strict=True)],
        min(candidate["confidences"]),
        agreement(candidate["n_factors"], others),
        sampling,
        {name: Measurement(*map(_number, each)) for name, each in candidate["numbers"].items()},
    )


def moving_of(records: Sequence[dict]) -> list[Example]:
    """Return the examples of several factors of moving samples."""
    examples = []
    for number, record in enumerate(records):
        for candidate in record["candidates"]:
            if candidate["n_factors"] < 2:
                continue
            inputs = _inputs(candidate, candidate["others"], sampling_in(candidate))
            is_right = candidate["label of told"] == "right"
            examples.append(Example(number, record["family"], inputs, is_right))
    return examples


def ones_of(
    records: Sequence[dict],
    best: Mapping[int, tuple[float, Example, dict]],
    true: Mapping[int, float],
) -> list[Example]:
    """Return the examples of one factor, beside the best division of each problem."""
    examples = []
    for number, record in enumerate(records):
        whole = record.get("whole")
        if whole is None:
            continue
        curve = whole["topology"] if whole["is a curve"] else ""
        undivided = [c for c in record["candidates"] if c["n_factors"] < 2 and c["by default"]]
        tests = [test for candidate in undivided for test in tests_of(candidate)]
        right, division = (0.0, {})
        if number in best:
            right, division = best[number][0], best[number][1].inputs
        known = right, true.get(number, 0.0), division
        inputs = of_one(curve, tests, *known, sampling_in(record))
        is_right = whole["is one"] and (whole["is right"] or not curve)
        verdict = "one factor" if curve else "none"
        examples.append(Example(number, record["family"], inputs, is_right, verdict=verdict))
    return examples


def factors_of(several: Sequence[tuple[Example, dict]], probabilities: np.ndarray) -> list[Example]:
    """Return the examples of single factors, beside the probability of all."""
    examples = []
    for (whole, candidate), of_all in zip(several, probabilities, strict=True):
        leaks = np.array(candidate["leakage"], float)
        own = np.fmax(np.nanmax(leaks, axis=0), np.nanmax(leaks, axis=1))
        rows = zip(
            candidate["topologies"], own, candidate["confidences"], candidate["right"], strict=True
        )
        for topology, leak, sure, is_right in rows:
            inputs = of_factor(topology, of_all, leak, sure)
            examples.append(replace(whole, inputs=inputs, right=is_right))
    return examples


# Learning.


def learn(examples: Sequence[Example]) -> Trees:
    """Return trees that lead from inputs to log odds, which fall with every shortcoming."""
    names = sorted({name for each in examples for name in each.inputs})
    rows = np.array([[each.inputs.get(name, np.nan) for name in names] for each in examples])
    # An input that none of them has would have no thresholds.
    rows[:, np.isnan(rows).all(axis=0)] = 0.0
    right = np.array([each.right for each in examples])
    falling = {*CRITERIA, *FALLING} if "curve" not in names else FALLING
    monotone = [(name in RISING) - (name.removeprefix("told ") in falling) for name in names]
    model = HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=N_TREES,
        max_leaf_nodes=N_LEAVES,
        min_samples_leaf=20,
        l2_regularization=2.0,
        # Fewer inputs to choose from make trees that differ, as many measures tell the same.
        max_features=0.3,
        monotonic_cst=monotone,
        early_stopping=False,
        random_state=0,
    )
    with threadpool_limits(1):  # small trees: threads would wait for each other
        model.fit(rows, right, sample_weight=[each.weight for each in examples])
    nodes = [tree.nodes for (tree,) in model._predictors]
    shape = len(nodes), max(map(len, nodes))
    arrays = {name: np.zeros(shape, kind) for name, kind in NODES.items()}
    for t, tree in enumerate(nodes):
        own, leaf = np.arange(len(tree)), tree["is_leaf"].astype(bool)
        arrays["asked"][t, own] = tree["feature_idx"]
        arrays["threshold"][t, own] = tree["num_threshold"]
        arrays["missing_below"][t, own] = tree["missing_go_to_left"]
        arrays["below"][t, own] = np.where(leaf, own, tree["left"])
        arrays["above"][t, own] = np.where(leaf, own, tree["right"])
        arrays["odds"][t, own] = np.where(leaf, tree["value"], 0.0)
    usual = np.nan_to_num([_quantile(column, 0.5) for column in rows[right].T])
    ends = [[_quantile(column, q) for column in rows.T] for q in (0.005, 0.995)]
    line = np.array([float(np.ravel(model._baseline_prediction)[0]), 1.0])
    return Trees(np.array(names), usual, *np.array(ends), **arrays, line=line)


def _quantile(values: np.ndarray, q: float) -> float:
    """Return a quantile of the values that are known; 0 if none are."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, q)) if len(known) else 0.0


NODES: dict[str, type] = {
    "asked": np.int16,
    "threshold": np.float64,
    "missing_below": np.bool_,
    "below": np.int16,
    "above": np.int16,
    "odds": np.float32,
}


def predicted(trees: Trees, examples: Sequence[Example]) -> np.ndarray:
    """Return the log odds of examples."""
    return trees.log_odds(np.array([trees.row(each.inputs) for each in examples]))


def folds_of(examples: Sequence[Example], whole: str) -> np.ndarray:
    """Return the group of each example: families, or problems, are left out as a whole."""
    wholes = sorted({getattr(each, whole) for each in examples})
    order = np.random.default_rng(0).permutation(len(wholes))
    number = {wholes[k]: place % N_FOLDS for place, k in enumerate(order)}
    return np.array([number[getattr(each, whole)] for each in examples])


def left_out(examples: Sequence[Example], whole: str) -> np.ndarray:
    """Return the log odds of each example by trees learnt without its family, or its problem."""
    folds, odds = folds_of(examples, whole), np.zeros(len(examples))
    for fold in np.unique(folds):
        inside = [each for each, own in zip(examples, folds, strict=True) if own != fold]
        outside = [each for each, own in zip(examples, folds, strict=True) if own == fold]
        odds[folds == fold] = predicted(learn(inside), outside)
    return odds


def line_of(odds: np.ndarray, examples: Sequence[Example]) -> np.ndarray:
    """Return start and slope by which log odds of families that were left out are calibrated."""
    right = np.array([each.right for each in examples], float)
    weights = np.array([each.weight for each in examples])

    def loss(line: np.ndarray) -> float:
        values = line[0] + line[1] * odds
        return float(weights @ (np.logaddexp(0, values) - right * values) / weights.sum())

    return minimize(loss, np.array([0.0, 1.0]), method="Nelder-Mead").x


@dataclass(frozen=True)
class Part:
    """Trees of all examples, and the probabilities by trees without the family of each example."""

    trees: Trees
    probabilities: np.ndarray


def part_of(examples: Sequence[Example], whole: str = "family") -> Part:
    """Learn from examples; what is said of families, or of problems, left out is calibrated."""
    odds, trees = left_out(examples, whole), learn(examples)
    start, slope = line_of(odds, examples)
    line = np.array([start + slope * trees.line[0], slope])
    return Part(replace(trees, line=line), expit(start + slope * odds))


@dataclass(frozen=True)
class Judge:
    """The parts of the judge, and what fits by it would have returned, families left out."""

    parts: dict[str, Trees]
    results: list[tuple[float, Example]]
    in_hand: list[tuple[bool, bool]]  # whether a right candidate was there, and was returned


def judge_of(records: Sequence[dict]) -> Judge:
    """Learn the judge from records, and check it."""
    moving = [record for record in records if record.get("moving")]
    records = [record for record in records if not record.get("moving")]
    several = several_of(records)
    examples = [each for each, _ in several]
    coarse = [each for each, _ in several_of(records, "coarse")]
    right, true = part_of(examples), part_of(coarse)
    # What a fit would return: of candidates in the context of the default, or of all.
    last = _in_last_context(records, several)
    best: dict[int, tuple[float, Example, dict]] = {}
    highest_true: dict[int, float] = {}
    for k in last:
        own, said = examples[k], float(right.probabilities[k])
        if own.problem not in best or said > best[own.problem][0]:
            best[own.problem] = said, own, several[k][1]
        highest_true[own.problem] = max(
            highest_true.get(own.problem, 0.0), float(true.probabilities[k])
        )
    highest = {number: said for number, (said, *_) in best.items()}
    ones = ones_of(records, best, highest_true)
    # Hardly any two families of one factor are alike: single curves are one of them.
    one = part_of(ones, "problem")
    factor = part_of(factors_of(several, right.probabilities))
    results, in_hand = [], []
    right_problems = {examples[k].problem for k in last if examples[k].right}
    returned_right = set()
    for own, said in zip(ones, one.probabilities, strict=True):
        if highest.get(own.problem, 0.0) < CRITERIA["probability"].limit:
            results.append((float(said), own))
    for said, own, candidate in best.values():
        if said >= CRITERIA["probability"].limit:
            whole = "separable" if candidate["sense"] == "separable" else "product"
            verdict = whole if said >= CRITERIA["certainty"].limit else "partial"
            results.append((said, replace(own, verdict=verdict)))
            if own.right:
                returned_right.add(own.problem)
    in_hand = [(True, number in returned_right) for number in sorted(right_problems)]
    parts = {"right": right, "true": true, "one": one, "factor": factor}
    if moving:
        parts["dynamics"], of_moves = _of_moving(moving)
        results += of_moves
    return Judge({name: part.trees for name, part in parts.items()}, results, in_hand)


def _of_moving(records: Sequence[dict]) -> tuple[Part, list[tuple[float, Example]]]:
    """Return the part of moving samples, and what fits by it would have returned."""
    examples = moving_of(records)
    part = part_of(examples)
    best: dict[int, tuple[float, Example]] = {}
    for own, said in zip(examples, part.probabilities, strict=True):
        if said > best.get(own.problem, (0.0,))[0]:
            best[own.problem] = float(said), own
    returned = [each for each in best.values() if each[0] >= CRITERIA["probability"].limit]
    return part, [(said, replace(own, verdict="dynamics")) for said, own in returned]


def _in_last_context(records: Sequence[dict], several: Sequence[tuple[Example, dict]]) -> list[int]:
    """Numbers of the examples that a fit compares: by default, those of the models it tries."""
    found, number = [], 0
    for record in records:
        if not record.get("n_distinct"):
            continue
        for context, members in contexts(record):
            if context == "default":
                found += range(number, number + len(members))
            number += len(members)
    assert number == len(several)
    return found


# The report.


def calibration_error(probabilities: np.ndarray, right: np.ndarray, *, n_bins: int = 10) -> float:
    """Return the mean distance of the probability from the rate, in bins of equally many results.

    >>> calibration_error(np.full(4, 0.5), np.array([0, 1, 0, 1]), n_bins=1)
    0.0
    """
    bins = np.array_split(np.argsort(probabilities, kind="stable"), n_bins)
    off = [len(rows) * abs(probabilities[rows].mean() - right[rows].mean()) for rows in bins]
    return float(sum(off) / len(right))


def render(judge: Judge, n_problems: int) -> str:
    """Return the check of the judge as Markdown: by verdict, and each family by itself."""
    said = np.array([each for each, _ in judge.results])
    right = np.array([own.right for _, own in judge.results], float)
    verdict = np.array([own.verdict for _, own in judge.results])
    family = np.array([own.family for _, own in judge.results])
    several = np.isin(verdict, ("product", "separable", "partial"))
    one = np.isin(verdict, ("one factor", "none"))
    rows = {name: verdict == name for name in dict.fromkeys(sorted(set(verdict)))}
    rows |= {"several factors": several, "one, or none": one}
    sure = said >= CRITERIA["certainty"].limit
    groups = {"several": several, "one, or none": one, "dynamics": verdict == "dynamics"}
    rows |= {f"{name}, 90 %": group & sure for name, group in groups.items()}
    rows |= {f"family {name}": family == name for name in sorted(set(family))}
    rows["all"] = np.full(len(said), True)
    refused = sum(not returned for _, returned in judge.in_hand)
    lines = [
        f"Learnt from {n_problems} problems. Every result has the probability by trees that were "
        "learnt without its family, or, of one factor, without it.",
        "",
        f"Of {len(judge.in_hand)} problems with a right division in hand, {refused} were refused.",
        "",
        "| | results | right | mean probability | Brier score | calibration error |",
        "|---|---|---|---|---|---|",
    ]
    for name, own in rows.items():
        if own.any():
            p, was = said[own], right[own]
            error = calibration_error(p, was, n_bins=min(10, max(1, own.sum() // 10)))
            lines.append(
                f"| {name} | {own.sum()} | {was.mean():.1%} | {p.mean():.1%} "
                f"| {np.mean((p - was) ** 2):.3f} | {error:.3f} |"
            )
    return "\n".join(lines) + "\n"


def packed(parts: Mapping[str, Trees]) -> bytes:
    """Return the arrays of all parts as the content of a file."""
    arrays = {
        f"{part} {each.name}": value
        for part, trees in parts.items()
        for each, value in zip(fields(Trees), astuple(trees), strict=True)
    }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def main(argv: Sequence[str] | None = None) -> None:
    """Learn how often results are right, and check it."""
    grammar = ArgumentParser(description=__doc__.partition("\n")[0])
    grammar.add_argument("--records", nargs="+", type=Path, metavar="FILE", required=True)
    grammar.add_argument("--out", type=Path, default=Path(), metavar="FOLDER")
    options = grammar.parse_args(argv)
    records = [record for path in options.records for record in read(path)]
    judge = judge_of(records)
    report = render(judge, len(records))
    print(report)
    write_bytes(options.out / "judge.npz", packed(judge.parts))
    write_bytes(options.out / "judge.md", report.encode())
    answers = [
        {"verdict": own.verdict, "probability": said, "right": own.right}
        for said, own in judge.results
    ]
    write_bytes(options.out / "judge.svg", diagram(answers)[".svg"])


if __name__ == "__main__":
    sys.exit(exit_code(main))
