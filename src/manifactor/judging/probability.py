"""How often results with such tests are right, as learnt from random problems.

The log odds of a result are a sum over its shortcomings: each test adds what a table says of how
far it is from its limit, and never more where it is farther on the wrong side. The table,
`probability.json`, is made by `python -m studies.judgement`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from scipy.special import expit, logit

from manifactor.judging.measure import Test
from manifactor.judging.table import CRITERIA

# Shortcomings that the table has log odds at, which are interpolated between: 0 is as good as can
# be, 1 is at the limit of a test.
KNOTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
MOST = KNOTS[-1]


@dataclass(frozen=True)
class Sampling:
    """What is known of the samples before any factor is found."""

    n_samples: int
    dimension: float
    spread: float  # of their density; nan where only distances are known

    @property
    def is_known(self) -> bool:
        """Whether such samples are among those that the table was learnt from."""
        lowest, highest = _table()["dimension"]
        return self.n_samples >= _table()["samples"][0] and lowest <= self.dimension <= highest

    @property
    def is_uneven(self) -> bool:
        """Whether the density varies more than that of even samples."""
        return self.spread > CRITERIA["evenness"].limit

    @property
    def shortcomings(self) -> dict[str, float]:
        """How few and how uneven the samples are, in how many dimensions."""
        return {
            "few samples": np.log2(4000 / self.n_samples),
            "uneven": 0.0 if np.isnan(self.spread) else self.spread / CRITERIA["evenness"].limit,
            "dimensions of the data": self.dimension - 1,
        }


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
        return MOST
    if test.kind == "independence":  # a p-value
        far = np.log(max(net, 1e-4)) / np.log(limit)
    elif test.at_least:
        best = 1.0 if limit < 1 else 2 * limit
        far = (best - net) / (best - limit)
    else:
        far = net / limit if limit > 0 else MOST * (net > 0)
    return float(np.clip(far, 0, MOST))


def of_several(
    sense: str,
    tests: Iterable[Test],
    dimensions: Sequence[int],
    confidence: float,
    confirmed: float,
    sampling: Sampling,
) -> dict[str, float]:
    """Return the shortcomings of a result with several factors of such dimensions.

    From the least mean confidence of a factor, and the R^2 with the same factors in another sense,
    nan where no other sense was tried.
    """
    found: dict[str, float] = {}
    for test in tests:
        # A sum tells how well the axes of a Gaussian cloud are known, by a test of its own.
        if (sense, test.kind) == ("sum", "identified"):
            continue
        found[test.kind] = max(found.get(test.kind, 0.0), shortcoming(test))
        # Straight terms that leave nothing: any cloud in as many directions is such a sum, and only
        # independence tells.
        if test.name == "sum" and test.value > 1 - 1e-6:
            found["straight terms"] = 1.0
    alone = {"not in another sense": MOST * (1 - confirmed)}
    if np.isnan(confirmed):
        alone = {"no other sense": 1.0}
    over = (sum(dimensions) - sampling.dimension) / CRITERIA["dimensions"].limit
    return {
        **found,
        **sampling.shortcomings,
        "more dimensions": over,
        "fewer dimensions": -over,
        "uncertainty of coordinates": MOST * (1 - confidence),
        **alone,
    }


def kind_of_several(sense: str, count: int) -> str:
    """Return the kind of a result that its log odds start from.

    >>> kind_of_several("sum", 2), kind_of_several("sum", 4)
    ('sum', 'sum of three or more')
    """
    return sense if count == 2 else f"{sense} of three or more"


def kind_of_one(curve: str, tests: Sequence[Test]) -> str:
    """Return the kind of one factor: a curve, or the reason why it was not divided."""
    failed = [test.kind for test in tests if not test.passed]
    return "curve" if curve else (failed or [""])[-1]


def of_one(best: float, sampling: Sampling) -> dict[str, float]:
    """Return the shortcomings of one factor, beside a division of some probability."""
    return {"other result": MOST * best, **sampling.shortcomings}


def of_factor(of_all: float, leakage: float, confidence: float) -> dict[str, float]:
    """Return the shortcomings of one of several factors.

    From the probability that all of them are right, the largest R^2 with another one, and the mean
    confidence of coordinates on it.
    """
    odds = logit(np.clip(of_all, 1e-6, 1 - 1e-6))
    return {
        "result": MOST * (0.5 - odds / 10),
        "own leakage": leakage / CRITERIA["leakage"].limit,
        "uncertainty of coordinates": MOST * (1 - confidence),
    }


def probability(part: str, kind: str, shortcomings: Mapping[str, float]) -> float:
    """Return how often such results were right by a part of the table: several, one or factor."""
    return float(expit(log_odds(_table()[part], kind, shortcomings)))


def log_odds(table: Mapping, kind: str, shortcomings: Mapping[str, float]) -> float:
    """Return the log odds of a result by a part of a table."""
    known = table["log odds"]
    return table["kinds"].get(kind, 0.0) + sum(
        np.interp(far, KNOTS, known[name]) for name, far in shortcomings.items() if name in known
    )


@cache
def _table() -> dict:
    return json.loads(files(__package__).joinpath("probability.json").read_text())
