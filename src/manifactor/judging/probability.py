"""How often results are right of which such numbers were measured, as learnt from random problems.

Boosted trees lead from the numbers to log odds, which never rise with a shortcoming. The trees,
`judge.npz`, are made by `python -m studies.judgement`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
from scipy.special import expit, logit

from manifactor.judging.measure import Test
from manifactor.judging.table import CRITERIA, MEASURES, SENSES
from manifactor.statistics import Measurement

# Shortcomings are 1 at the limit of a test, and this where nothing could be worse.
LARGEST = 20.0
TOLD = {row.name for row in MEASURES if not row.is_test}
# What is said, at most, of samples unlike all that the trees were learnt from.
MOST_OF_UNLIKE = 0.9


@dataclass(frozen=True)
class Sampling:
    """What is known of the samples before any factor is found."""

    n_samples: int
    dimension: float
    spread: float  # of their density; nan where only distances are known
    n_columns: int = 0  # as prepared; 0 where only distances are known

    @property
    def is_uneven(self) -> bool:
        """Whether the density varies more than that of even samples."""
        return self.spread > CRITERIA["evenness"].limit

    @property
    def inputs(self) -> dict[str, float]:
        """How many samples there are, how uneven, in how many dimensions and columns."""
        return {
            "samples": np.log2(self.n_samples),
            "density": self.spread,
            "dimension": self.dimension,
            "columns": np.log2(self.n_columns) if self.n_columns else np.nan,
        }


@dataclass(frozen=True)
class Agreement:
    """How far the factors of other models agree with those of a result."""

    # R^2, matched, of each other model that shows as many factors; of those that show more, or
    # fewer, for as many as the fewer are
    r2: tuple[float, ...] = ()
    of_more: tuple[float, ...] = ()
    of_fewer: tuple[float, ...] = ()

    @property
    def inputs(self) -> dict[str, float]:
        """How far the best of them differ, and how many there are."""
        best = sorted(self.r2, reverse=True)
        names = "disagreement", "second disagreement"
        others = {"disagreement with more": self.of_more, "disagreement with fewer": self.of_fewer}
        return {
            **{name: 1 - r2 for name, r2 in zip(names, best, strict=False)},
            **{name: 1 - max(r2) for name, r2 in others.items() if r2},
            "other results": float(sum(map(len, (self.r2, self.of_more, self.of_fewer)))),
        }


def agreement(n_factors: int, others: Iterable[tuple[int, float]]) -> Agreement:
    """Return how far a result agrees with others, given how many factors they have, and the R^2."""
    known = [*others]
    return Agreement(
        tuple(r2 for count, r2 in known if count == n_factors),
        tuple(r2 for count, r2 in known if count > n_factors),
        tuple(r2 for count, r2 in known if count < n_factors),
    )


def shortcoming(test: Test) -> float:
    """Return how far a test is from the best value, in units in which its limit is 1.

    >>> leakage = CRITERIA["leakage"]
    >>> shortcoming(leakage.judge(0.0)), shortcoming(leakage.judge(leakage.limit))
    (0.0, 1.0)
    >>> shortcoming(CRITERIA["completeness"].judge(1.0))
    0.0
    """
    net, limit = test.net, test.limit
    if np.isnan(net):
        return LARGEST
    if test.kind == "independence":  # a p-value
        far = np.log(max(net, 1e-4)) / np.log(limit)
    elif test.at_least:
        best = 1.0 if limit < 1 else 2 * limit
        far = (best - net) / (best - limit)
    else:
        far = net / limit if limit > 0 else LARGEST * (net > 0)
    return float(np.clip(far, 0, LARGEST))


def shortcomings(tests: Iterable[Test]) -> dict[str, float]:
    """Return the shortcomings of tests by their kinds: the largest over the terms of a sum."""
    found: dict[str, float] = {}
    for test in tests:
        found[test.kind] = max(found.get(test.kind, 0.0), shortcoming(test))
    return found


def told(
    numbers: Mapping[str, Measurement], tests: Sequence[Test], sense: str, n_samples: int
) -> dict[str, float]:
    """Return what is measured beside the tests: as it is, or as the shortcoming of other senses."""
    names, own = {test.kind for test in tests}, dict[str, float]()
    for name, number in numbers.items():
        if name in TOLD and name in CRITERIA and name not in names:
            test = CRITERIA[name].judge(number, n_samples=n_samples, sense=sense)
            own[f"told {name}"] = shortcoming(test)
        elif name in TOLD and name not in CRITERIA:
            own[name] = number.value
    return own


def with_totals(inputs: Mapping[str, float]) -> dict[str, float]:
    """Return inputs with what their shortcomings add up to."""
    far = {name: value for name, value in inputs.items() if name in CRITERIA}
    return {
        **inputs,
        "failed tests": float(sum(value > 1 for value in far.values())),
        "tests near their limits": float(sum(value > 0.7 for value in far.values())),
        "wrong coordinates": float(
            sum(value > 1 and CRITERIA[name].coordinates == "wrong" for name, value in far.items())
        ),
        "largest shortcoming": max(far.values(), default=0.0),
        # One number that is far beyond its limit does not hide the others.
        "all shortcomings": float(sum(min(value, 3.0) for value in far.values())),
    }


def of_several(
    model: str,
    sense: str,
    tests: Sequence[Test],
    shapes: Sequence[tuple[str, int]],
    confidence: float,
    agreement: Agreement,
    sampling: Sampling,
    numbers: Mapping[str, Measurement],
) -> dict[str, float]:
    """Return what the probability of several factors follows from.

    `shapes` has the topology and the dimension of each factor, `confidence` is the least mean
    confidence of a factor, `numbers` are measured, whether tests of them or not.
    """
    topologies = [topology for topology, _ in shapes]
    over = sum(dimension for _, dimension in shapes) - sampling.dimension
    return {
        **with_totals(shortcomings(tests)),
        **told(numbers, tests, sense, sampling.n_samples),
        # Straight terms that leave nothing: any cloud in as many directions is such a sum, and only
        # independence tells.
        "straight terms": float(any(t.name == "sum" and t.value > 1 - 1e-6 for t in tests)),
        **sampling.inputs,
        **agreement.inputs,
        "more dimensions": max(over, 0.0),
        "fewer dimensions": max(-over, 0.0),
        "uncertainty of coordinates": 1 - confidence,
        "factors": float(len(shapes)),
        "surfaces": float(topologies.count("other")),
        "circles": float(topologies.count("circle")),
        **{f"sense {name}": float(sense == name) for name in SENSES},
        "pieces of samples": float(model == "pieces"),
    }


# What the likeliest division lacks says why there may be one factor.
OF_DIVISION = ("twist", "twist in data", "hidden direction", "failed tests", "wrong coordinates")


def of_one(
    curve: str,
    tests: Iterable[Test],
    right: float,
    true: float,
    division: Mapping[str, float],
    sampling: Sampling,
) -> dict[str, float]:
    """Return what the probability of one factor follows from.

    `curve` is "interval", "circle" or "", `tests` are those of all models that show one factor,
    `right` and `true` are the probabilities of the likeliest division into several factors, and
    `division` is what these follow from.
    """
    return {
        **shortcomings(tests),
        **sampling.inputs,
        **{f"division: {name}": division[name] for name in OF_DIVISION if name in division},
        "right division": right,
        "true division": true,
        "curve": float(bool(curve)),
        "circle": float(curve == "circle"),
    }


def of_factor(topology: str, of_all: float, leakage: float, confidence: float) -> dict[str, float]:
    """Return what the probability of one of several factors follows from.

    That all of them are right, the largest R^2 with another one, and the mean confidence of
    coordinates on it.
    """
    return {
        "all factors": logit(np.clip(of_all, 1e-6, 1 - 1e-6)),
        "own leakage": leakage,
        "uncertainty of coordinates": 1 - confidence,
        "surface": float(topology == "other"),
        "circle": float(topology == "circle"),
    }


@dataclass(frozen=True)
class Trees:
    """Boosted trees: a node asks whether an input is below a threshold; a leaf leads to itself.

    All arrays of nodes have shape (n_trees, n_nodes).
    """

    names: np.ndarray  # of the inputs
    usual: np.ndarray  # median input of right results
    lowest: np.ndarray  # of the inputs that were learnt from, but for a few
    highest: np.ndarray
    asked: np.ndarray  # number of the input that a node asks for
    threshold: np.ndarray
    missing_below: np.ndarray  # whether an input that is not known counts as below
    below: np.ndarray  # number of the next node
    above: np.ndarray
    odds: np.ndarray
    line: np.ndarray  # start, and slope: from the sum of odds to log odds of unseen families

    def row(self, inputs: Mapping[str, float]) -> np.ndarray:
        """Return inputs in the order of the trees; nan for those that are not known."""
        return np.array([inputs.get(name, np.nan) for name in self.names], float)

    def log_odds(self, rows: np.ndarray) -> np.ndarray:
        """Return the log odds of rows of inputs, (n, n_inputs)."""
        rows = np.atleast_2d(rows)
        trees = np.arange(len(self.asked))
        node = np.zeros((len(rows), len(trees)), int)
        while True:
            value = np.take_along_axis(rows, self.asked[trees, node], axis=1)
            is_below = value <= self.threshold[trees, node]
            is_below |= np.isnan(value) & self.missing_below[trees, node]
            further = np.where(is_below, self.below[trees, node], self.above[trees, node])
            if (further == node).all():
                break
            node = further
        return self.line[0] + self.line[1] * self.odds[trees, node].sum(axis=1)

    @cached_property
    def shortcomings(self) -> list[str]:
        """Names of the inputs that are tests."""
        return [str(name) for name in self.names if name in CRITERIA]


@cache
def trees_of(part: str) -> Trees:
    """Return the trees of a part: "right", "true", "one" or "factor"."""
    with np.load(str(files(__package__).joinpath("judge.npz")), allow_pickle=False) as stored:
        return Trees(*(stored[f"{part} {each.name}"] for each in fields(Trees)))


def probability(part: str, inputs: Mapping[str, float]) -> float:
    """Return how often results with such inputs are right."""
    trees = trees_of(part)
    said = float(expit(trees.log_odds(trees.row(inputs)))[0])
    return min(said, MOST_OF_UNLIKE) if is_unlike(part, inputs) else said


def is_unlike(part: str, inputs: Mapping[str, float]) -> bool:
    """Return whether samples are unlike those of the problems that the trees were learnt from."""
    trees = trees_of(part)
    row, asked = trees.row(inputs), np.isin(trees.names, ["samples", "dimension", "columns"])
    return bool(((row < trees.lowest) | (row > trees.highest))[asked].any())


def costs(part: str, inputs: Mapping[str, float], now: float) -> list[tuple[str, float]]:
    """Return the tests that cost a result most, and how probable it would be without each.

    At most three, which cost a fiftieth or more of what is said `now`.
    """
    trees = trees_of(part)
    row = trees.row(inputs)
    numbers = {name: number for number, name in enumerate(trees.names)}
    without = {}
    for name in trees.shortcomings:
        number = numbers[name]
        if row[number] > trees.usual[number]:
            mended = with_totals({**inputs, name: float(trees.usual[number])})
            without[name] = probability(part, mended)
    ordered = sorted(without.items(), key=lambda item: -item[1])
    return [(name, said) for name, said in ordered if said >= now + 0.02][:3]
