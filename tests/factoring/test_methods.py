"""What each search finds, and how it weighs that."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor import Evidence, ManifoldFactorizer, SampleWarning, datasets, methods
from manifactor.datasets.shapes import revolution
from manifactor.judging.measures.density import evenness
from manifactor.judging.table import CRITERIA, SENSES
from manifactor.methods import (
    clusters_of_factors,
    find_in_functions,
    judge_places,
    warn_of_few_samples,
    weigh_noise,
    weigh_peeled,
    weigh_sum,
    weigh_terms,
)
from manifactor.models.sums.independence import Directions
from manifactor.models.sums.sheets import Sheet
from manifactor.models.sums.summands import Sum, Summand
from manifactor.operators.pipeline import diffuse
from manifactor.scores import score

from .places import JUDGE, interval, sphere


def failed(evidence):
    return [test.name for test in evidence.failed]


# Factors whose lengths depend on the place on another factor.


def spheroid(n_samples, axis):
    return sphere(np.random.default_rng(0), n_samples) * [1, 1, axis]


@pytest.fixture
def search(monkeypatch):
    """Find factors of samples; weigh what was peeled again, with another limit of one test."""
    peelings = []

    def remembered(peeled, *more, **how):
        peelings.append(peeled)
        return weigh_peeled(peeled, *more, **how)

    def found(X):
        monkeypatch.setattr(methods, "weigh_peeled", remembered)
        diffusion = diffuse(X, rng=np.random.default_rng(0))
        result = find_in_functions(diffusion, None, grow=False, rng=np.random.default_rng(0))
        assert peelings[0].peeling.refused is not None
        return result

    def again(name, limit):
        monkeypatch.setitem(CRITERIA, name, replace(CRITERIA[name], limit=limit))
        return weigh_peeled(peelings[0], None, rng=np.random.default_rng(0))

    return found, again


@pytest.mark.slow
def test_refused_factors_are_taken_if_nothing_but_their_lengths_is_wrong(search):
    found, again = search
    X, truth = revolution("bulge", 3.0, 12.0)(1200, np.random.default_rng(0))
    bulge = found(X)
    assert bulge.evidence.verdict == "partial"
    assert score([factor.embedding for factor in bulge.factors], truth).solved
    assert {"product", "modulation in data"} <= set(failed(bulge.evidence))
    # Any share of folded samples is too large, so that another test fails.
    assert not again("folds", -1.0).factors


@pytest.mark.slow
def test_refused_factors_are_not_taken_if_one_shrinks_to_a_point(search):
    found, again = search
    assert not found(spheroid(1000, 2.5)).factors
    # All else is right, so that it is the poles that refuse it.
    assert len(again("poles", np.inf).factors) == 2


@pytest.mark.slow
def test_a_spheroid_is_no_product_where_lengths_are_measured_in_samples():
    fit = ManifoldFactorizer(sense="volume", random_state=0).fit(spheroid(800, 2))
    assert fit.verdict_ != "product"
    assert "poles" in failed(fit.evidence_)


@pytest.mark.slow
def test_the_random_state_decides_no_verdict_and_surfaces_have_no_coordinate():
    # The noise of `undivided` in random halves lies on either side of its limit.
    X, _ = datasets.sample("sphere_interval", 1000, random_state=0)
    fit, other = (ManifoldFactorizer(sense="geometry", random_state=s).fit(X) for s in range(2))
    noises = [[test.noise for test in each.evidence_.tests] for each in (fit, other)]
    np.testing.assert_allclose(*noises, atol=1e-3)
    for factor, placed in zip(fit.factors_, fit.locate(X[:50]), strict=True):
        assert placed.embedding.shape == (50, factor.embedding.shape[1])
        assert (placed.coordinate is None) == (factor.topology == "other")


# Sums.


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
    return weigh_sum(found, factors, diffusion, rng=rng)


@pytest.mark.parametrize(
    ("samples", "names"),
    [
        (lambda t, u: np.column_stack([t, u]), []),
        # A parallelogram and a cone: functions of the places that add up, or nearly.
        (lambda t, u: np.column_stack([t + 0.5 * u, u]), ["skew"]),
        (
            lambda t, u: np.column_stack(
                [5 * t, (1 - 0.6 * t) * np.cos(3 * u), (1 - 0.6 * t) * np.sin(3 * u)]
            ),
            ["modulation in data"],
        ),
    ],
)
def test_a_sum_alone_never_proves_a_product(rng, samples, names):
    places = rng.uniform(size=(2, 800))
    evidence = weighed(some_sum(), places, samples(*places), rng)
    assert (failed(evidence), evidence.sense) == (names, "sum")


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"left": 0.6}, "sum"),
        ({"left": 0.2, "noise_left": False}, "structured rest"),
        ({"axes_error": 0.3}, "axes"),
    ],
)
def test_each_number_of_a_sum_is_judged(rng, numbers, name):
    assert name in failed(weighed(some_sum(**numbers), rng.uniform(size=(2, 400)), None, rng))


def test_one_term_is_no_product(rng):
    evidence = weighed(some_sum(), rng.uniform(size=(1, 400)), None, rng)
    assert (evidence.verdict, failed(evidence)) == ("none", ["terms"])


# What all searches share.

OF_LENGTHS = ["folds", "filling", "skew", "crossing", "modulation in data", "identified"]
TESTS_OF_PLACES = {
    "geometry": OF_LENGTHS,
    "density": OF_LENGTHS,
    "volume": ["folds", "filling", "skew", "crossing", "poles", "identified"],
    "sum": ["folds", "filling", "skew", "modulation in data", "identified"],
    "separable": ["folds", "filling", "skew", "crossing", "seams", "identified"],
    "dynamics": ["folds", "filling"],
}


@pytest.mark.parametrize("sense", SENSES)
def test_right_places_on_a_square_pass_the_tests_of_every_sense(rng, sense):
    places = rng.uniform(size=(2, 600))
    tests = judge_places([interval(t) for t in places], places.T, sense=sense)
    assert [test.name for test in tests] == TESTS_OF_PLACES[sense]
    assert all(test.passed for test in tests)
    # .04 + 2.7 / sqrt(n)
    assert all(
        test.limit == pytest.approx(0.1502, abs=1e-4) for test in tests if test.name == "skew"
    )


def test_clusters_are_told_with_their_factor_and_their_sizes(rng):
    even = interval(rng.uniform(size=1000))
    left, right = rng.uniform(0, 0.4, size=700), rng.uniform(0.6, 1, size=300)
    two = interval(np.concatenate([left, right]))
    assert clusters_of_factors([even, even]) == ""
    said = clusters_of_factors([even, two])
    assert "2 clusters, of 70 % and 30 % of the samples, along factor 2" in said


def test_more_samples_are_advised_only_where_samples_are_even(rng):
    for samples, words in [(rng.uniform, "About 700 samples"), (rng.normal, "may not help")]:
        with pytest.warns(SampleWarning, match=words):
            warn_of_few_samples(700, "few", evenness(samples(size=(1000, 2)), 2))


def test_a_product_needs_places_that_are_little_noise():
    two_factors = np.array([[np.nan, 0.1], [0.1, np.nan]])
    product = Evidence((JUDGE["leakage"](0.1),), two_factors)
    reliable = weigh_noise(product, [0.99, 0.95])
    assert (reliable.verdict, reliable.reliability) == ("product", 0.95)
    assert "At least 95% of the variance" in reliable.explanation
    doubtful = weigh_noise(product, [0.99, 0.8])
    assert (doubtful.verdict, doubtful.reliability) == ("partial", 0.8)
    assert "on factor 2 are uncertain: noise makes up 20%" in doubtful.reason
    # Noise may move coordinates by more than they spread; an estimated share is never certain.
    assert "100% of their variance" in weigh_noise(product, [-3.0, 0.8]).reason
    assert "At least 99% of the variance" in weigh_noise(product, [1.0, 1.0]).explanation


# A sum some of whose terms have several factors.


def evidence(*tests, leakage=0.1, **more):
    """Evidence on two factors."""
    between = np.where(np.eye(2), np.nan, leakage)
    return Evidence(tests, between, **{"dependence": 0.5} | more)


def of_sum(*tests):
    return evidence(JUDGE["leakage"](0.05), *tests, leakage=0.05, sense="sum")


def test_the_verdict_on_all_factors_is_the_worse_one():
    good, bad = evidence(JUDGE["folds"](0)), evidence(JUDGE["filling"](0.05))
    assert weigh_terms(of_sum(), {1: good}).verdict == "product"
    assert weigh_terms(of_sum(), {1: bad}).verdict == "partial"
    assert weigh_terms(of_sum(JUDGE["independence"](0)), {1: good}).verdict == "partial"
    # What was not measured does not count.
    found = weigh_terms(of_sum(), {0: evidence(null=0.2, dependence=0.001)})
    assert (found.null, found.dependence) == (0.2, 0.001)


def test_tests_of_a_term_are_named_after_it():
    found = weigh_terms(of_sum(JUDGE["filling"](0)), {1: evidence(JUDGE["filling"](1))})
    (test,) = found.failed
    assert (test.name, test.kind) == ("term 2: filling", "filling")
    assert found.reason.startswith("in term 2, some combinations of coordinates do not occur")
    assert found.value("filling") == 0
    assert "not every combination" in found.advice


def test_leakage_inside_a_term_is_that_of_its_factors():
    three = Evidence((), np.where(np.eye(3), np.nan, 0.3))
    found = weigh_terms(of_sum(), {1: three})
    assert found.terms == ((1,), (2, 3, 4))
    np.testing.assert_array_equal(found.leakage[1:, 1:], three.leakage)
    assert set(found.leakage[0, 1:]) == set(found.leakage[1:, 0]) == {0.05}
    assert np.isnan(np.diag(found.leakage)).all()


def test_prose_says_which_factors_are_one_term():
    text = weigh_terms(of_sum(), {0: evidence(JUDGE["leakage"](0.12))}).explanation
    assert "Factors 1 and 2 together are term 1 of the sum, which is a product" in text
    assert "predicts at most 12% of another" in text
    text = weigh_terms(of_sum(), {1: evidence(JUDGE["filling"](0.05))}).explanation
    assert "Factors 2 and 3 together are term 2" in text
    assert "nearly a product by itself" in text
