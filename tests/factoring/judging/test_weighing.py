from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor import Evidence, ManifoldFactorizer, SampleWarning, datasets
from manifactor.factoring.judging.criteria import CRITERIA, SENSES
from manifactor.factoring.measures.density import evenness
from manifactor.factoring.methods import (
    clusters_of_factors,
    judge_places,
    warn_of_few_samples,
    weigh_noise,
    weigh_sum,
    weigh_terms,
)
from manifactor.factoring.sums.independence import Directions
from manifactor.factoring.sums.sheets import Sheet
from manifactor.factoring.sums.summands import Sum, Summand

from ..places import interval

JUDGE = {name: criterion.judge for name, criterion in CRITERIA.items()}
TWO_FACTORS = np.array([[np.nan, 0.1], [0.1, np.nan]])


def test_a_product_needs_places_that_are_little_noise():
    product = Evidence((JUDGE["leakage"](0.1),), TWO_FACTORS)
    reliable = weigh_noise(product, [0.99, 0.95])
    assert (reliable.verdict, reliable.reliability) == ("product", 0.95)
    assert "At least 95% of the variance" in str(reliable)
    doubtful = weigh_noise(product, [0.99, 0.8])
    assert (doubtful.verdict, doubtful.reliability) == ("partial", 0.8)
    assert "20% of the variance of the coordinates on factor 2" in doubtful.reason
    # Noise may move coordinates by more than they spread; an estimated share is never certain.
    assert "100% of the variance" in weigh_noise(product, [-3.0, 0.8]).reason
    assert "At least 99% of the variance" in str(weigh_noise(product, [1.0, 1.0]))


def some_sum(**numbers):
    sheet = Sheet("interval", *(np.ones((1, 1)),) * 2, *(np.ones((1, 1, 1)),) * 2)
    terms = [Summand(sheet, np.eye(1), v, 0.9) for v in (1.0, 0.5)]
    known = {"left": 0.02, "noise_left": True, "axes_error": 0.0} | numbers
    return Sum(Directions(np.zeros(1), np.eye(1)), tuple(terms), **known)


def weighed(found, places, samples, rng):
    """Evidence on intervals with such places that add up to samples."""
    everyone = SimpleNamespace(outliers=np.zeros(len(places[0]), dtype=bool))
    diffusion = SimpleNamespace(points=samples, graph=everyone)
    factors = [interval(t) for t in places]
    return weigh_sum(found, factors, diffusion, agreed=0.99, rng=rng)


def failed(evidence):
    return [test.name for test in evidence.failed]


def test_a_sum_is_a_product_where_its_places_and_samples_are_those_of_one(rng):
    places = rng.uniform(size=(2, 800))
    evidence = weighed(some_sum(), places, places.T, rng)
    assert (evidence.verdict, evidence.sense) == ("product", "sum")


@pytest.mark.parametrize(
    ("samples", "name"),
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
def test_a_sum_alone_never_proves_a_product(rng, samples, name):
    places = rng.uniform(size=(2, 800))
    assert failed(weighed(some_sum(), places, samples(*places), rng)) == [name]


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"left": 0.6}, "sum"),
        ({"left": 0.2, "noise_left": False}, "structured rest"),
        ({"axes_error": 0.3}, "axes"),
    ],
)
def test_each_number_of_a_sum_is_judged(rng, numbers, name):
    assert name in failed(weighed(some_sum(**numbers), rng.uniform(size=(2, 800)), None, rng))


def test_one_term_is_no_product(rng):
    evidence = weighed(some_sum(), rng.uniform(size=(1, 800)), None, rng)
    assert (evidence.verdict, failed(evidence)) == ("none", ["terms"])


TESTS_OF_PLACES = {
    "geometry": ["folds", "filling", "skew", "crossing", "modulation in data", "identified"],
    "density": ["folds", "filling", "skew", "crossing", "modulation in data", "identified"],
    "volume": ["folds", "filling", "skew", "crossing", "poles", "identified"],
    "sum": ["folds", "filling", "skew", "modulation in data", "identified"],
}


@pytest.mark.parametrize("sense", SENSES)
def test_right_places_on_a_square_pass_the_tests_of_every_sense(rng, sense):
    places = rng.uniform(size=(2, 600))
    tests = judge_places([interval(t) for t in places], places.T, sense=sense)
    assert [test.name for test in tests] == TESTS_OF_PLACES[sense]
    assert all(test.passed for test in tests)
    # .04 + 2.7 / sqrt(n)
    assert tests[2].limit == pytest.approx(0.1502, abs=1e-4)


def test_clusters_are_told_with_their_factor_and_their_sizes(rng):
    even = interval(rng.uniform(size=1000))
    left, right = rng.uniform(0, 0.4, size=700), rng.uniform(0.6, 1, size=300)
    two = interval(np.concatenate([left, right]))
    assert clusters_of_factors([even, even]) == ""
    said = clusters_of_factors([even, two])
    assert "2 clusters, of 70 % and 30 % of the samples, along factor 2" in said


def test_more_samples_are_advised_only_where_samples_are_even(rng):
    even = evenness(rng.uniform(size=(1000, 2)), 2)
    uneven = evenness(rng.normal(size=(1000, 2)), 2)
    with pytest.warns(SampleWarning, match="About 700 samples"):
        warn_of_few_samples(700, "few", even)
    with pytest.warns(SampleWarning, match="may not help"):
        warn_of_few_samples(700, "few", uneven)


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
    fits = [ManifoldFactorizer(sense="geometry", random_state=state).fit(X) for state in range(2)]
    one, other = ([test.noise for test in fit.evidence_.tests] for fit in fits)
    np.testing.assert_allclose(one, other, atol=1e-3)


# A sum some of whose terms have several factors.


def evidence(*tests, leakage=0.1, sense="geometry"):
    """Evidence on two factors."""
    between = np.where(np.eye(2), np.nan, leakage)
    return Evidence(tests, between, dependence=0.5, sense=sense)


def of_sum(*tests):
    return evidence(JUDGE["leakage"](0.05), *tests, leakage=0.05, sense="sum")


def test_the_verdict_on_all_factors_is_the_worse_one():
    good, bad = evidence(JUDGE["folds"](0)), evidence(JUDGE["filling"](0.05))
    assert weigh_terms(of_sum(), {1: good}).verdict == "product"
    assert weigh_terms(of_sum(), {1: bad}).verdict == "partial"
    failed = of_sum(JUDGE["independence"](0))
    assert weigh_terms(failed, {1: good}).verdict == "partial"


def test_tests_of_a_term_are_named_after_it():
    found = weigh_terms(of_sum(JUDGE["filling"](0)), {1: evidence(JUDGE["filling"](1))})
    (failed,) = found.failed
    assert (failed.name, failed.kind) == ("term 2: filling", "filling")
    assert found.reason.startswith("in term 2, the samples do not fill the product")
    assert found.value("filling") == 0
    assert "not every combination" in found.advice


def test_leakage_inside_a_term_is_that_of_its_factors():
    three = Evidence((), np.where(np.eye(3), np.nan, 0.3))
    found = weigh_terms(of_sum(), {1: three})
    assert found.terms == ((1,), (2, 3, 4))
    np.testing.assert_array_equal(found.leakage[1:, 1:], three.leakage)
    assert set(found.leakage[0, 1:]) == set(found.leakage[1:, 0]) == {0.05}
    assert np.isnan(np.diag(found.leakage)).all()


def test_what_was_not_measured_does_not_count():
    inside = replace(evidence(), null=0.2, dependence=0.001)
    found = weigh_terms(of_sum(), {0: inside})
    assert (found.null, found.dependence) == (0.2, 0.001)


def test_prose_says_which_factors_are_one_term():
    text = str(weigh_terms(of_sum(), {0: evidence(JUDGE["leakage"](0.12))}))
    assert "each term moves the samples by a function of its own" in text
    assert "Factors 1 and 2 together are term 1 of the sum, which is a product" in text
    assert "predicts at most 12% of another" in text
    text = str(weigh_terms(of_sum(), {1: evidence(JUDGE["filling"](0.05))}))
    assert "Factors 2 and 3 together are term 2" in text
    assert "nearly a product of lengths" in text
