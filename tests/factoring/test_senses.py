import warnings
from dataclasses import replace

import numpy as np
import pytest

from manifactor import Evidence, SampleWarning
from manifactor._support.errors import NothingFoundError, warn_caller
from manifactor.factoring import factorize as senses
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.factorize import SENSE_SEARCHES, find_in_all_senses, is_sound

from .places import JUDGE, interval


def two_factors(*tests):
    """A factorization of two intervals with the given tests; it has no diffusion."""
    factors = tuple(interval(t) for t in np.random.default_rng(0).uniform(size=(2, 9)))
    leakage = np.array([[np.nan, 0.1], [0.1, np.nan]])
    return Factorization(factors, Evidence(tests, leakage), None)


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


def test_one_factor_is_never_sound_and_only_a_sum_may_have_gaussian_factors():
    whole, gaussian = two_factors(), two_factors(JUDGE["identified"](2))
    assert is_sound(whole)
    assert not is_sound(Factorization(whole.factors[:1], Evidence(()), None))
    assert not is_sound(gaussian)
    # Which sum it is does not matter.
    assert is_sound(replace(gaussian, sum="a sum"))


def test_all_tests_of_coordinates_that_separate_must_be_passed():
    found = two_factors(JUDGE["filling"](0.05))
    web = replace(found, evidence=replace(found.evidence, sense="separable"))
    assert is_sound(found)
    assert not is_sound(web)


def nothing(*_, **__):
    raise NothingFoundError("nothing was found")


@pytest.fixture
def search(monkeypatch):
    """Search all senses of even samples, each of which finds what it is told to find."""
    monkeypatch.setattr(senses, "_may_try_others", lambda *_: True)
    monkeypatch.setattr(senses, "is_uneven", lambda *_: False)
    monkeypatch.setattr(senses, "density_of", lambda *_: None)

    def searched(*, n_asked=None, separable=nothing, **found):
        for sense, one in {**found, "separable": separable}.items():
            find = one if callable(one) else lambda *_, one=one, **__: one
            monkeypatch.setitem(SENSE_SEARCHES, sense, SENSE_SEARCHES[sense]._replace(find=find))
        return find_in_all_senses(None, n_asked, rng=None)

    return searched


def with_warning(found, words):
    def find(*_, **__):
        warn_caller(words, SampleWarning)
        return found

    return find


BAD = two_factors(JUDGE["leakage"](0.5))


@pytest.mark.parametrize(
    ("in_sum", "in_volume", "said"),
    [
        (BAD, BAD, ["few"]),
        (two_factors(), BAD, []),
        (with_warning(two_factors(JUDGE["folds"](0.5)), "few for a sum"), two_factors(), []),
        (BAD, with_warning(two_factors(), "few for volume"), ["few for volume"]),
    ],
)
def test_a_sense_warns_only_if_its_result_is_returned(search, in_sum, in_volume, said):
    with warnings.catch_warnings(record=True, action="always") as issued:
        found = search(geometry=with_warning(BAD, "few"), sum=in_sum, volume=in_volume)
    assert [str(each.message) for each in issued] == said
    assert found.evidence.verdict == ("partial" if said == ["few"] else "product")


def test_only_a_sense_that_shows_nothing_is_passed_over(search):
    found = search(geometry=BAD, sum=nothing, volume=nothing)
    assert found.evidence.verdict == "partial"

    def broken(*_, **__):
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        search(geometry=BAD, sum=broken)


def test_senses_are_tried_where_the_geometry_has_too_few_factors(search):
    found = search(geometry=nothing, sum=two_factors(), n_asked=2)
    assert found.evidence.verdict == "product"
    assert "geometry, sum" in found.choices["sense"].why


def test_coordinates_of_a_twisted_product_are_not_said_to_separate(search):
    separable = two_factors()
    separable = replace(separable, evidence=replace(separable.evidence, sense="separable"))
    twisted = two_factors(JUDGE["twist in data"](0.3))
    uneven = two_factors(JUDGE["modulation in data"](0.3))
    verdicts = [
        search(geometry=BAD, sum=found, volume=BAD, separable=separable).evidence.verdict
        for found in (twisted, uneven)
    ]
    assert verdicts == ["partial", "separable"]


@pytest.mark.parametrize(("asked", "tests"), [(3, ()), (2, (JUDGE["folds"](0.5),))])
def test_the_error_of_the_geometry_is_raised_if_every_sense_fails(search, asked, tests):
    other = two_factors(*tests)
    with pytest.raises(NothingFoundError, match="nothing was found"):
        search(geometry=nothing, sum=other, volume=other, n_asked=asked)
