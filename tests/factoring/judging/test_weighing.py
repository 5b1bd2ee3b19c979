import numpy as np
import pytest

from manifactor import Evidence, ManifoldFactorizer, datasets
from manifactor.factoring.judging.criteria import criteria
from manifactor.factoring.judging.weighing import (
    judge_places,
    weigh_asked,
    weigh_no_groups,
    weigh_noise,
    weigh_sum,
)
from manifactor.factoring.sums.independence import Directions
from manifactor.factoring.sums.sheets import Sheet
from manifactor.factoring.sums.summands import Sum, Summand
from manifactor.factoring.triplets.search import Grouping

from ..places import interval

JUDGE = {criterion.name: criterion.judge for criterion in criteria()}
TWO_FACTORS = np.array([[np.nan, 0.1], [0.1, np.nan]])


def test_a_product_needs_places_that_are_little_noise():
    product = Evidence((JUDGE["leakage"](0.1),), TWO_FACTORS)
    reliable = weigh_noise(product, [0.99, 0.95])
    assert (reliable.verdict, reliable.reliability) == ("product", 0.95)
    assert "At least 95% of the variance" in str(reliable)
    doubtful = weigh_noise(product, [0.99, 0.8])
    assert (doubtful.verdict, doubtful.reliability) == ("partial", 0.8)
    assert doubtful.reason == "noise makes up 20% of the variance of places on factor 2"


def test_noise_is_one_more_reason_where_there_are_others():
    partial = Evidence((JUDGE["leakage"](0.4),), TWO_FACTORS)
    before, after = weigh_noise(partial, [-3.0, 0.8]).reason.split("; ")
    assert before == partial.reason
    assert after == "noise makes up 100% of the variance of places on factor 1"


def test_an_estimated_share_is_never_certain():
    product = Evidence((JUDGE["leakage"](0.1),), TWO_FACTORS)
    assert "At least 99% of the variance" in str(weigh_noise(product, [1.0, 1.0]))


def test_noise_says_nothing_of_one_factor():
    none = weigh_asked()
    assert weigh_noise(none, [0.5]) is none


def test_asking_for_one_factor_is_the_reason_for_one():
    evidence = weigh_asked()
    assert (evidence.verdict, evidence.reason) == ("none", "one factor was asked for")


def test_the_reason_for_no_groups_is_the_grouping_s():
    evidence = weigh_no_groups(Grouping(None, why_none="nothing adds up"))
    assert (evidence.verdict, evidence.reason) == ("none", "nothing adds up")


def some_sum(**numbers):
    sheet = Sheet("interval", *(np.ones((1, 1)),) * 2, *(np.ones((1, 1, 1)),) * 2)
    terms = [Summand(sheet, np.eye(1), v, 0.9) for v in (1.0, 0.5)]
    known = {"left": 0.02, "noise_left": True, "axes_error": 0.0} | numbers
    return Sum(Directions(np.zeros(1), np.eye(1)), tuple(terms), **known)


def test_a_sum_is_a_product_where_its_places_and_samples_are_those_of_one(rng):
    places = rng.uniform(size=(2, 800))
    factors = [interval(t) for t in places]
    of_places = judge_places(factors, places.T, sense="sum")
    evidence = weigh_sum(some_sum(), factors, agreed=0.99, of_places=of_places, rng=rng)
    assert evidence.verdict == "product"
    assert [test.name for test in of_places] == [
        "folds",
        "filling",
        "skew",
        "modulation in data",
        "identified",
    ]


@pytest.mark.parametrize(
    ("samples", "failed"),
    [
        # A parallelogram and a cone: functions of the places that add up, or nearly.
        (lambda t, u: np.column_stack([t + 0.5 * u, u]), "skew"),
        (
            lambda t, u: np.column_stack(
                [5 * t, (1 - 0.6 * t) * np.cos(3 * u), (1 - 0.6 * t) * np.sin(3 * u)]
            ),
            "modulation in data",
        ),
    ],
)
def test_a_sum_alone_never_proves_a_product(rng, samples, failed):
    places = rng.uniform(size=(2, 800))
    factors = [interval(t) for t in places]
    of_places = judge_places(factors, samples(*places), sense="sum")
    evidence = weigh_sum(some_sum(), factors, agreed=0.99, of_places=of_places, rng=rng)
    assert [test.name for test in evidence.failed] == [failed]


@pytest.mark.parametrize(
    ("numbers", "failed"),
    [
        ({"left": 0.6}, "sum"),
        ({"left": 0.2, "noise_left": False}, "structured rest"),
        ({"axes_error": 0.3}, "axes"),
    ],
)
def test_each_number_of_a_sum_is_judged(rng, numbers, failed):
    factors = [interval(t) for t in rng.uniform(size=(2, 800))]
    evidence = weigh_sum(some_sum(**numbers), factors, agreed=0.9, of_places=(), rng=rng)
    assert failed in [test.name for test in evidence.failed]


def test_one_term_is_no_product(rng):
    evidence = weigh_sum(
        some_sum(), [interval(rng.uniform(size=800))], agreed=0.9, of_places=(), rng=rng
    )
    assert (evidence.verdict, evidence.tests[0].name) == ("none", "terms")


@pytest.mark.slow
def test_triplets_are_tested_for_connection_number_completeness_and_leakage():
    X, _ = datasets.sample("torus", 1500, random_state=1)
    fit = ManifoldFactorizer(2, method="triplets", random_state=0).fit(X)
    names = [test.name for test in fit.evidence_.tests]
    assert names == ["connected", "groups", "completeness", "leakage"]
    assert fit.verdict_ == "product"
    assert "The cut that made the groups is" in str(fit.evidence_)


@pytest.mark.slow
def test_the_random_state_decides_no_verdict():
    # The noise of `undivided` in random halves lies on either side of its limit.
    X, _ = datasets.sample("sphere_interval", 1000, random_state=0)
    fits = [ManifoldFactorizer(sense="geometry", random_state=state).fit(X) for state in range(3)]
    noise = [[test.noise for test in fit.evidence_.tests] for fit in fits]
    np.testing.assert_allclose(noise[1:], [noise[0]] * 2, atol=1e-3)
