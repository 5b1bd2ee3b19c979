import warnings
from dataclasses import replace

import numpy as np
import pytest

from manifactor import Evidence, SampleWarning
from manifactor._support.errors import NothingFoundError, warn_caller
from manifactor.factoring import factorize as senses
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factorize import FINDERS, TESTS_OF_PLACES, is_sound
from manifactor.factoring.judging.criteria import criteria
from manifactor.factoring.settings import SENSE_NAMES, FactoringSettings

from .places import interval

JUDGE = {criterion.name: criterion.judge for criterion in criteria()}


def two_factors(*tests):
    """A factorization of two intervals with the given tests; it has no diffusion."""
    factors = tuple(interval(t) for t in np.random.default_rng(0).uniform(size=(2, 9)))
    leakage = np.array([[np.nan, 0.1], [0.1, np.nan]])
    return Factorization(factors, Evidence(tests, leakage), None)


def test_every_sense_but_the_geometry_has_a_search_of_its_own():
    assert {"geometry", *FINDERS} == set(SENSE_NAMES)


def test_the_tests_of_places_are_criteria():
    assert set(JUDGE) >= TESTS_OF_PLACES


@pytest.mark.parametrize(
    ("name", "value", "sound"),
    [
        ("leakage", 0.5, False),
        ("folds", 0.5, False),
        ("identified", 2, False),
        # Right places of data that are no product.
        ("modulation in data", 0.9, True),
        ("skew", 0.2, True),
        ("filling", 0.05, True),
        # Too far from a product for any sense.
        ("skew", 0.5, False),
        ("filling", 0.2, False),
    ],
)
def test_a_failed_test_leaves_places_right_or_not(name, value, sound):
    test = JUDGE[name](value)
    assert not test.passed
    assert is_sound(two_factors(test)) is sound


def test_one_factor_is_never_sound():
    whole = two_factors()
    one = Factorization(whole.factors[:1], Evidence(()), None)
    assert is_sound(whole)
    assert not is_sound(one)


def test_only_a_sum_may_have_gaussian_factors():
    gaussian = two_factors(JUDGE["identified"](2))
    assert not is_sound(gaussian)
    # Which sum it is does not matter.
    assert is_sound(replace(gaussian, sum="a sum"))


@pytest.mark.parametrize("sound", [True, False])
def test_the_geometry_warns_only_if_its_result_is_returned(monkeypatch, sound):
    bad = two_factors(JUDGE["leakage"](0.5))

    def geometry(*_, **__):
        warn_caller("few samples", SampleWarning)
        return bad

    other = two_factors() if sound else bad
    monkeypatch.setattr(senses, "find_in_functions", geometry)
    monkeypatch.setattr(senses, "_may_try_others", lambda *_: True)
    monkeypatch.setattr(senses, "_is_uneven", lambda *_: False)
    monkeypatch.setattr(senses, "find_in_sense", lambda *_, **__: other)
    with warnings.catch_warnings(record=True, action="always") as issued:
        found = senses.find_in_all_senses(None, FactoringSettings(), rng=None)
    assert found.evidence.verdict == ("product" if sound else "partial")
    assert len(issued) == (0 if sound else 1)


@pytest.fixture
def geometry_fails(monkeypatch):
    """The geometry shows two factors that are wrong, so that other senses are tried."""
    bad = two_factors(JUDGE["leakage"](0.5))
    monkeypatch.setattr(senses, "find_in_functions", lambda *_, **__: bad)
    monkeypatch.setattr(senses, "_may_try_others", lambda *_: True)
    monkeypatch.setattr(senses, "_is_uneven", lambda *_: False)


def test_another_sense_warns_if_its_result_is_returned(monkeypatch, geometry_fails):
    def other(sense, *_, **__):
        warn_caller(f"few samples for {sense}", SampleWarning)
        return two_factors() if sense == "volume" else two_factors(JUDGE["folds"](0.5))

    monkeypatch.setattr(senses, "find_in_sense", other)
    with warnings.catch_warnings(record=True, action="always") as issued:
        senses.find_in_all_senses(None, FactoringSettings(), rng=None)
    assert [str(each.message) for each in issued] == ["few samples for volume"]


def test_only_a_sense_that_shows_nothing_is_passed_over(monkeypatch, geometry_fails):
    def nothing(*_, **__):
        raise NothingFoundError("nothing")

    monkeypatch.setattr(senses, "find_in_sense", nothing)
    found = senses.find_in_all_senses(None, FactoringSettings(), rng=None)
    assert found.evidence.verdict == "partial"

    def broken(*_, **__):
        raise ValueError("a defect")

    monkeypatch.setattr(senses, "find_in_sense", broken)
    with pytest.raises(ValueError, match="a defect"):
        senses.find_in_all_senses(None, FactoringSettings(), rng=None)


@pytest.fixture
def geometry_shows_nothing(monkeypatch):
    """The geometry has fewer factors than were asked for, with any functions."""

    def nothing(*_, **__):
        raise NothingFoundError("error of the geometry")

    monkeypatch.setattr(senses, "find_in_functions", nothing)
    monkeypatch.setattr(senses, "_may_try_others", lambda *_: True)
    monkeypatch.setattr(senses, "_is_uneven", lambda *_: False)


def test_senses_are_tried_where_the_geometry_has_too_few_factors(
    monkeypatch, geometry_shows_nothing
):
    def only_a_sum(sense, *_, **__):
        assert sense == "sum"
        return two_factors()

    monkeypatch.setattr(senses, "find_in_sense", only_a_sum)
    found = senses.find_in_all_senses(None, FactoringSettings(n_factors=2), rng=None)
    assert found.evidence.verdict == "product"
    assert "of the senses geometry, sum" in found.choices["sense"].why


@pytest.mark.parametrize(("asked", "tests"), [(3, ()), (2, (JUDGE["folds"](0.5),))])
def test_the_error_of_the_geometry_is_raised_if_every_sense_fails(
    monkeypatch, geometry_shows_nothing, asked, tests
):
    monkeypatch.setattr(senses, "find_in_sense", lambda *_, **__: two_factors(*tests))
    settings = FactoringSettings(n_factors=asked)
    with pytest.raises(NothingFoundError, match="error of the geometry"):
        senses.find_in_all_senses(None, settings, rng=None)
