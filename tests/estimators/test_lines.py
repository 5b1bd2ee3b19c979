"""Samples on a straight line: one column, or columns that are multiples of one."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from manifactor import ManifoldFactorizer

# Long tails are joined by weak links only.
pytestmark = pytest.mark.filterwarnings("ignore::manifactor.DisconnectedGraphWarning")

ALONG = {
    "even": lambda rng: np.linspace(0, 1, 300),
    "uniform": lambda rng: rng.uniform(size=300),
    "normal": lambda rng: rng.normal(size=1000),
    "exponential": lambda rng: rng.exponential(size=500),
}


@pytest.mark.parametrize(
    ("along", "direction"),
    [("even", [1]), ("uniform", [1, 2, 3]), ("normal", [1, 0]), ("exponential", [1])],
)
def test_a_line_is_an_interval(rng, along, direction):
    t = ALONG[along](rng)
    fit = ManifoldFactorizer(random_state=0).fit(t[:, None] * direction)
    (factor,) = fit.factors_
    assert (factor.topology, factor.dimension) == ("interval", 1)
    assert abs(spearmanr(factor.coordinate, t)[0]) > 0.99
    evidence = fit.evidence_
    assert evidence.verdict == evidence.answer == "one factor"
    assert evidence.reason == "the samples lie on a straight line"
    assert evidence.advice == ""


def test_gaps_of_a_line_are_told(rng):
    t = np.r_[rng.uniform(size=300), rng.uniform(1.5, 2.5, size=300)]
    fit = ManifoldFactorizer(n_neighbors=350, random_state=0).fit(t[:, None])
    assert fit.evidence_.reason.endswith(
        "straight line, and fall into 2 clusters, of 50 % and 50 % of the samples"
    )


def test_one_factor_of_a_line_is_an_interval_for_whoever_asks_for_it(rng):
    fit = ManifoldFactorizer(1, random_state=0).fit(rng.exponential(size=(500, 1)))
    assert fit.factors_[0].topology == "interval"
