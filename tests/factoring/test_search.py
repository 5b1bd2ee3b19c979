"""Which models are tried, how their candidates are measured, and which of them is taken."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse.linalg import ArpackError

from manifactor import ManifoldFactorizer, SampleWarning, datasets, kinds
from manifactor._support.errors import NothingFoundError, Warned
from manifactor.datasets.shapes import revolution
from manifactor.factorize import _chosen, agreement_of, rated, search
from manifactor.judging import verdict as verdict_module
from manifactor.judging.candidate import likeliest, measured
from manifactor.judging.evidence import verdict_of
from manifactor.judging.measures import places
from manifactor.judging.measures.density import clusters_of_factors, evenness
from manifactor.judging.table import CRITERIA, MEASURES, SENSES
from manifactor.kinds import MODELS, Peeled, by_blocks
from manifactor.models.sums.independence import Directions
from manifactor.models.sums.sheets import Sheet
from manifactor.models.sums.summands import Sum, Summand
from manifactor.operators.pipeline import diffuse
from manifactor.scores import score

from .candidates import candidate, even_facts, facts_on, graph_of
from .places import JUDGE, interval, sphere

FACTS = even_facts()
FAILS = candidate(FACTS, JUDGE["skew"](0.2))
ONE = candidate(FACTS, JUDGE["blocks"](1), n_factors=0)


def verdict(chosen):
    return verdict_of(chosen.tests, len(chosen.factors), chosen.sense)


def failed(chosen):
    return [test.name for test in chosen.failed]


# Which candidate is taken.


def test_the_likeliest_candidate_is_taken_whatever_its_model():
    sure = candidate(FACTS, JUDGE["filling"](0.05), sense="sum", probability=0.9)
    best, choices = _chosen(FACTS, [replace(FAILS, probability=0.6), sure])
    assert best is sure
    assert "geometry 60%, sum 90%" in choices["sense"].why


def test_of_nearly_equal_candidates_the_one_that_says_more_is_taken():
    other = candidate(FACTS, sense="separable", probability=0.97)
    whole = candidate(FACTS, JUDGE["skew"](0.2), probability=0.92)
    assert likeliest([other, whole]) is whole
    assert likeliest([other, replace(whole, probability=0.85)]) is other
    # Coordinates that separate say how lengths change, if they do.
    bent = candidate(FACTS, JUDGE["modulation in data"](0.5), probability=0.98)
    assert likeliest([bent, other]) is other
    # Tests explain, they decide nothing.
    assert whole.verdict == "product"
    assert replace(whole, probability=0.6).verdict == "partial"


def test_where_no_probability_is_known_the_verdict_decides_and_then_what_failed():
    fails, passes = (candidate(FACTS, *tests) for tests in ((JUDGE["skew"](0.2),), ()))
    wrong = candidate(FACTS, JUDGE["folds"](0.2))
    assert likeliest([fails, passes]) is passes
    assert likeliest([wrong, fails]) is fails
    assert likeliest([fails, replace(fails)]) is fails


def test_unlikely_factors_are_not_returned_unless_their_number_was_asked_for():
    unlikely = replace(FAILS, probability=0.2)
    best, _ = _chosen(FACTS, [unlikely])
    assert (verdict(best), failed(best)) == ("none", ["skew", "probability"])
    assert best.instead is unlikely
    assert verdict(_chosen(replace(FACTS, n_asked=2), [unlikely])[0]) == "partial"
    # The geometry says why there is one factor, where it has found one.
    other = candidate(FACTS, sense="sum", probability=0.3)
    tests = _chosen(FACTS, [replace(ONE, probability=0.0), other])[0].tests
    assert tests[:-1] == ONE.tests
    assert "`choose(1)`" in tests[-1].problem


def test_factors_that_another_model_shows_as_well_agree_and_are_right_together(monkeypatch):
    other = candidate(FACTS, sense="sum")
    other = replace(other, factors=other.factors[::-1])
    assert agreement_of([FAILS, other])[0, 1] > 0.9
    assert np.isnan(agreement_of([FAILS, ONE])).all()
    said = iter([0.6, 0.7, 0.9, 0.9])
    monkeypatch.setattr(verdict_module, "probability", lambda part, inputs: next(said))
    assert [each.probability for each in rated([FAILS, other], FACTS)] == [0.9, 0.9]


# Which models are tried.


def nothing(facts):
    raise NothingFoundError("nothing was found")


@pytest.fixture
def tried(monkeypatch):
    """Names of the models with candidates, if each of them finds what it is told to find."""

    def names(n_asked=None, **finds):
        facts = even_facts(n_asked)
        for name, row in MODELS.items():
            find = finds.get(name.replace(" ", "_"), nothing)

            def read(model, operator, facts, tried, find=find):
                made = find(facts) if callable(find) else find
                yield replace(made, facts=facts, model=model.name, sense=model.sense)

            row = replace(row, operator=kinds.as_they_are, read=read)
            monkeypatch.setitem(MODELS, name, row)
        return [each.model for each in search(facts)]

    return names


GOOD = candidate(FACTS, *(JUDGE[name](0.0) for name in ("leakage", "folds", "filling")))


def test_a_sure_product_of_lengths_ends_the_search(tried, monkeypatch):
    monkeypatch.setattr(verdict_module, "probability", lambda part, inputs: 0.95)
    assert tried(geometry=GOOD, sum=GOOD) == ["geometry"]
    monkeypatch.setattr(verdict_module, "probability", lambda part, inputs: 0.85)
    assert tried(geometry=GOOD, sum=GOOD) == ["geometry", "sum"]


def test_models_of_the_density_are_not_tried_on_even_samples_with_right_coordinates(tried):
    others = dict.fromkeys(["sum", "volume", "density", "separable"], FAILS)
    assert tried(geometry=FAILS, **others) == ["geometry", "sum", "separable"]
    # One factor may be several in units of the density.
    assert tried(geometry=ONE, **others) == ["geometry", "sum", "volume", "separable"]


def test_models_that_were_never_right_of_such_samples_are_not_tried(tried):
    others = dict.fromkeys(["sum", "volume", "density", "separable"], FAILS)
    clustered = replace(ONE, tests=(JUDGE["clusters"](4, sizes="4 clusters"),))
    assert tried(geometry=clustered, **others) == ["geometry", "sum"]
    # Whoever asks for several factors is shown what there is.
    assert "volume" in tried(2, geometry=clustered, **others)


def test_coordinates_of_a_twisted_product_are_not_said_to_separate(tried):
    twisted = candidate(FACTS, JUDGE["twist in data"](0.2))
    assert "separable" not in tried(geometry=ONE, sum=twisted, separable=GOOD)
    assert "separable" in tried(geometry=ONE, sum=ONE, separable=GOOD)


def test_only_a_model_that_shows_nothing_is_passed_over(tried):
    assert tried(geometry=FAILS) == ["geometry"]

    def broken(facts):
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        tried(geometry=FAILS, sum=broken)


@pytest.mark.parametrize(
    "error", [ArpackError(-9), np.linalg.LinAlgError("singular"), FloatingPointError("underflow")]
)
def test_a_model_that_cannot_be_solved_is_passed_over_and_listed(tried, error):
    def unsolved(facts):
        raise error

    assert tried(geometry=unsolved, sum=FAILS) == ["sum"]
    with pytest.raises(NothingFoundError, match="Remove columns that hardly change"):
        tried(**dict.fromkeys((name.replace(" ", "_") for name in MODELS), unsolved))


@pytest.mark.medium
def test_what_was_passed_over_is_listed_with_its_reason(monkeypatch):
    def unsolved(*_):
        raise ArpackError(-9)

    monkeypatch.setitem(MODELS, "geometry", replace(MODELS["geometry"], read=unsolved))
    X, _ = datasets.sample("torus", 400, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    tried = {each.model: each for each in fit.candidates_}
    assert (fit.evidence_.sense, fit.verdict_) == ("sum", "product")
    assert (tried["geometry"].n_factors, tried["sum"].why_not) == (0, "")
    assert tried["geometry"].why_not.startswith("ARPACK error -9")


def test_too_many_factors_asked_for_raise_an_error_with_the_number_found(tried):
    def two_at_most(facts):
        return nothing(facts) if facts.n_asked == 3 else FAILS

    with pytest.raises(NothingFoundError, match="Found only 2 of the 3 factors"):
        tried(3, geometry=two_at_most)


# What is measured.


def test_the_tests_of_places_pass_on_a_square_and_skew_has_slack_for_few_samples(rng):
    points = rng.uniform(size=(600, 2))
    operator = SimpleNamespace(**vars(FACTS.operator) | {"points": points})
    operator.graph = graph_of(600)
    square = replace(FAILS, operator=operator, factors=tuple(map(interval, points.T)))
    for row in MEASURES:
        if row.is_test and row.name in {
            "folds",
            "filling",
            "skew",
            "crossing",
            "modulation in data",
        }:
            assert row.judge(row.of(square, FACTS), n_samples=600).passed
    # .04 + 2.7 / sqrt(n)
    assert CRITERIA["skew"].judge(0.0, n_samples=600).limit == pytest.approx(0.1502, abs=1e-4)
    assert places.skew(square.placed).value < 0.15


@pytest.mark.medium
def test_copies_of_samples_change_nothing_that_is_measured_of_places(rng):
    points = rng.uniform(size=(600, 2))
    found = []
    for times in (1, 3):
        copied, graph = np.repeat(points, times, axis=0), graph_of(600 * times)
        graph.distinct = graph.distinct[::times]
        operator = SimpleNamespace(**vars(FACTS.operator) | {"points": copied, "graph": graph})
        square = replace(FAILS, operator=operator, factors=tuple(map(interval, copied.T)), rng=rng)
        names = {"folds", "filling", "crossing", "leakage", "hidden direction", "explained"}
        found.append([row.of(square, FACTS) for row in MEASURES if row.name in names])
        p = next(row.of(square, FACTS) for row in MEASURES if row.name == "independence")
        assert p > 0.01
    assert found[0] == found[1]


def test_every_sense_measures_places_and_says_what_it_means():
    for sense in SENSES:
        assert {row.name for row in MEASURES if sense in row.models} >= {"folds", "filling"}
        assert any(model.sense == sense for model in MODELS.values())


def some_sum(**numbers):
    sheet = Sheet("interval", *(np.ones((1, 1)),) * 2, *(np.ones((1, 1, 1)),) * 2)
    terms = [Summand(sheet, np.eye(1), v, 0.9) for v in (1.0, 0.5)]
    known = {"left": 0.02, "noise_left": True, "axes_error": 0.0} | numbers
    return Sum(Directions(np.zeros(1), np.eye(1)), tuple(terms), **known)


def of_sum(found, at, samples, rng):
    """A measured candidate of intervals with such places that add up to samples."""
    everyone = graph_of(len(at[0]))
    functions = np.cos(np.pi * np.outer(at[0], np.arange(9)))
    shown = {"points": samples, "graph": everyone, "spectrum": SimpleNamespace(functions=functions)}
    operator = SimpleNamespace(**vars(FACTS.operator) | shown)
    factors = tuple(map(interval, at))
    of_kinds = frozenset({"sum" if len(at) > 1 else "one term"})
    made = replace(FAILS, sense="sum", operator=operator, factors=factors, read=found, tests=())
    return measured(replace(made, kinds=of_kinds, rng=rng, strict=True))


@pytest.mark.medium
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
    at = rng.uniform(size=(2, 800))
    assert failed(of_sum(some_sum(), at, samples(*at), rng)) == names


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"left": 0.6}, "sum"),
        ({"left": 0.2, "noise_left": False}, "structured rest"),
        ({"axes_error": 0.3}, "axes"),
    ],
)
def test_each_number_of_a_sum_is_judged(rng, numbers, name):
    at = rng.uniform(size=(2, 400))
    assert name in failed(of_sum(some_sum(**numbers), at, at.T, rng))


def test_one_term_is_no_product(rng):
    at = rng.uniform(size=(1, 400))
    assert failed(of_sum(some_sum(), at, at.T, rng)) == ["terms"]


def test_clusters_are_told_with_their_factor_and_their_sizes(rng):
    even = interval(rng.uniform(size=1000))
    left, right = rng.uniform(0, 0.4, size=700), rng.uniform(0.6, 1, size=300)
    two = interval(np.concatenate([left, right]))
    assert clusters_of_factors([even, even]) == ""
    said = clusters_of_factors([even, two])
    assert "2 clusters, of 70 % and 30 % of the samples, along factor 2" in said


def test_more_samples_are_advised_only_where_samples_are_even(rng):
    for draw, words in [(rng.uniform, "About 700 samples"), (rng.normal, "may not help")]:
        facts = even_facts(density=evenness(draw(size=(1000, 2)), 2))
        look = SimpleNamespace(part=np.arange(350))
        read = SimpleNamespace(peeling=SimpleNamespace(looks=(look,)))
        few = candidate(facts, JUDGE["agreement"](0.1), read=read)
        (warned,) = kinds._with_doubts(few).warned
        assert words in warned.message
        assert warned.category is SampleWarning


@pytest.mark.parametrize(
    ("shares", "passed", "words"),
    [
        ([0.99, 0.95], True, ""),
        ([0.99, 0.8], False, "on factor 2 are uncertain: noise makes up 20%"),
        # Noise may move coordinates by more than they spread.
        ([-3.0, 0.8], False, "100% of their variance"),
    ],
)
def test_a_product_needs_places_that_are_little_noise(monkeypatch, shares, passed, words):
    monkeypatch.setattr(type(GOOD), "signal_shares", lambda _: shares)
    *_, test = measured(GOOD, {"noise"}).tests
    assert (test.name, test.passed) == ("reliability", passed)
    assert words in test.problem


# Factors whose lengths depend on the place on another factor.


def peeled(X):
    facts = facts_on(diffuse(X, rng=np.random.default_rng(0)), is_free=True)
    facts = replace(facts, rng=np.random.default_rng(0), streams={})
    (found,) = by_blocks(MODELS["geometry"], facts.operator, facts, ())
    return found


@pytest.mark.slow
def test_refused_factors_are_taken_if_nothing_but_their_lengths_is_wrong():
    X, truth = revolution("bulge", 3.0, 12.0)(1200, np.random.default_rng(0))
    bulge = peeled(X)
    assert score([factor.embedding for factor in bulge.factors], truth).solved
    assert {"product", "modulation in data"} <= set(failed(bulge))


@pytest.mark.slow
def test_refused_factors_are_not_taken_if_one_shrinks_to_a_point(monkeypatch):
    X = sphere(np.random.default_rng(0), 1000) * [1, 1, 2.5]
    found = peeled(X)
    assert not found.factors
    assert isinstance(found.read, Peeled)
    assert found.read.peeling.refused is not None
    # All else is right, so that it is the poles that refuse it.
    monkeypatch.setitem(CRITERIA, "poles", replace(CRITERIA["poles"], limit=np.inf))
    assert len(peeled(X).factors) == 2


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


# A sum some of whose terms have several factors.


def divided(inner, *tests):
    whole = candidate(FACTS, *tests, sense="sum")
    n_factors = 2 - len(inner) + sum(len(part.factors) for part in inner.values())
    factors = (whole.factors[0],) * n_factors
    of_terms = [test.of_term(k + 1) for k, part in inner.items() for test in part.tests]
    return replace(
        whole, raw=whole.factors, factors=factors, inner=inner, tests=(*tests, *of_terms)
    )


def test_the_verdict_on_all_factors_is_the_worse_one():
    good, bad = candidate(FACTS, JUDGE["folds"](0)), candidate(FACTS, JUDGE["filling"](0.05))
    assert verdict(divided({1: good})) == "product"
    assert verdict(divided({1: bad})) == "partial"
    assert verdict(divided({1: good}, JUDGE["independence"](0))) == "partial"
    (test,) = divided({1: bad}).failed
    assert (test.name, test.kind) == ("term 2: filling", "filling")
    assert test.problem.startswith("in term 2, some combinations of coordinates do not occur")


def test_leakage_inside_a_term_is_that_of_its_factors():
    three = candidate(FACTS, n_factors=3)
    found = divided({1: three})
    assert found.terms == ((1,), (2, 3, 4))
    np.testing.assert_array_equal(found.leakage[1:, 1:], three.leakage)
    assert set(found.leakage[0, 1:]) == {found.own_leakage[0, 1]}
    assert np.isnan(np.diag(found.leakage)).all()


@pytest.fixture
def asked_of_terms(monkeypatch):
    """Most factors that each term was to be divided into; each falls into two."""
    most_factors = []
    operator = SimpleNamespace(graph=graph_of(300), settled=lambda: None)
    inner = replace(candidate(FACTS), operator=operator)

    def part(points, facts, most, rng):
        most_factors.append(most)
        return inner

    monkeypatch.setattr(kinds, "_part_of_term", part)
    return most_factors


def sum_of_surfaces(count=1):
    """A sound sum of surfaces and an interval."""
    whole = candidate(FACTS, sense="sum", n_factors=count + 1)
    surface = {"topology": "other", "dimension": 2, "coordinate": None}
    factors = (*[replace(factor, **surface) for factor in whole.factors[1:]], whole.factors[0])
    return replace(whole, factors=factors, read=SimpleNamespace(points=lambda samples, _: samples))


@pytest.mark.parametrize(
    ("most", "expected", "n_factors"), [(6, [4, 3], 5), (5, [3, 2], 5), (4, [2], 4), (3, [], 3)]
)
def test_no_more_factors_are_made_than_asked_for(asked_of_terms, most, expected, n_factors):
    found = kinds._with_divided_terms(sum_of_surfaces(2), most, None)
    assert asked_of_terms == expected
    assert len(found.factors) == n_factors == len(found.leakage)


def test_only_surfaces_of_a_sum_with_right_places_are_looked_at(asked_of_terms):
    whole = sum_of_surfaces()
    curves = replace(whole, factors=(whole.factors[1],) * 2)
    alone = replace(whole, factors=whole.factors[:1])
    wrong = replace(whole, tests=(JUDGE["folds"](0.5),))
    for found in (curves, alone, wrong):
        assert kinds._with_divided_terms(found, 6, None).factors == found.factors
    assert asked_of_terms == []


def test_warnings_of_a_part_are_those_of_the_whole_only_if_it_is_taken(asked_of_terms):
    few = Warned("few", SampleWarning)
    found = kinds._with_divided_terms(replace(sum_of_surfaces(), warned=(few,)), 6, None)
    assert found.warned == (few,)
    assert [(each.term, each.n_factors) for each in found.placer.divided] == [(0, 2)]
