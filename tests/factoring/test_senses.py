from dataclasses import replace

import numpy as np
import pytest

from manifactor import Evidence, SampleWarning
from manifactor import factorize as senses
from manifactor._support.errors import NothingFoundError, warn_caller
from manifactor.factorization import Factorization
from manifactor.factorize import SENSE_SEARCHES, Proposal, choose, confirmations, propose
from manifactor.judging.probability import Sampling

from .places import JUDGE, interval


def two_factors(*tests, sense="geometry"):
    """A factorization of two intervals with the given tests; it has no diffusion."""
    factors = tuple(interval(t) for t in np.random.default_rng(0).uniform(size=(2, 300)))
    leakage = np.array([[np.nan, 0.1], [0.1, np.nan]])
    return Factorization(factors, Evidence(tests, leakage, sense=sense), None)


ONE = Factorization((), Evidence((JUDGE["blocks"](1),)), None)
FAILS = two_factors(JUDGE["skew"](0.2))


def proposal(found, probability, sense="geometry"):
    return Proposal(sense, found, [], probability)


def test_the_likeliest_proposal_is_chosen_whatever_its_sense():
    few, sure = two_factors(JUDGE["skew"](0.2)), two_factors(JUDGE["filling"](0.05))
    chosen = choose([proposal(few, 0.6), proposal(sure, 0.9, "sum")], None)
    assert chosen.factors is sure.factors
    assert "geometry 60%, sum 90%" in chosen.choices["sense"].why


def test_of_nearly_equal_proposals_one_that_passes_all_tests_is_chosen():
    whole = two_factors(sense="separable")
    chosen = choose([proposal(FAILS, 0.95), proposal(whole, 0.9, "separable")], None)
    assert chosen.evidence.verdict == "separable"
    chosen = choose([proposal(FAILS, 0.95), proposal(whole, 0.7, "separable")], None)
    assert chosen.evidence.verdict == "partial"
    # An unlikely result never takes the place of a likely one.
    chosen = choose([proposal(FAILS, 0.45), proposal(whole, 0.35, "separable")], None)
    assert chosen.evidence.verdict == "partial"


def test_unlikely_factors_are_not_returned_unless_their_number_was_asked_for():
    unlikely = [proposal(FAILS, 0.2)]
    assert choose(unlikely, None).evidence.verdict == "none"
    assert choose(unlikely, None).evidence.fails("probability")
    assert choose(unlikely, 2).evidence.verdict == "partial"
    # The geometry says why there is one factor, where it has found one.
    chosen = choose([proposal(ONE, 0.0), proposal(FAILS, 0.3, "sum")], None)
    assert chosen.evidence.reason == ONE.evidence.reason


def nothing(*_, **__):
    raise NothingFoundError("nothing was found")


@pytest.fixture
def proposed(monkeypatch):
    """What the senses propose of even samples, each of which finds what it is told to find."""

    def proposals(geometry, *, n_asked=None, **found):
        find = {sense: _find(nothing) for sense in SENSE_SEARCHES}
        find |= {sense: _find(each) for sense, each in found.items()}
        for sense, each in find.items():
            monkeypatch.setitem(SENSE_SEARCHES, sense, each)
        monkeypatch.setattr(senses.methods, "find_in_functions", _find(geometry))
        return propose(None, n_asked, Sampling(1000, 2.0, 0.1), rng=np.random.default_rng(0))

    return proposals


def _find(found):
    return found if callable(found) else lambda *_, **__: found


def test_a_product_of_lengths_ends_the_search(proposed):
    assert [each.sense for each in proposed(two_factors(), sum=two_factors(sense="sum"))] == [
        "geometry"
    ]


def test_senses_of_the_density_are_not_tried_on_even_samples_with_right_coordinates(proposed):
    others = dict.fromkeys(["sum", "volume", "density", "separable"], FAILS)
    assert [e.sense for e in proposed(FAILS, **others)] == ["geometry", "sum", "separable"]
    # One factor may be several in units of the density.
    tried = [each.sense for each in proposed(ONE, **others)]
    assert tried == ["geometry", "sum", "volume", "separable"]


def test_coordinates_of_a_twisted_product_are_not_said_to_separate(proposed):
    twisted = two_factors(JUDGE["twist in data"](0.2), sense="sum")
    separable = two_factors(sense="separable")
    assert "separable" not in [e.sense for e in proposed(ONE, sum=twisted, separable=separable)]
    assert "separable" in [e.sense for e in proposed(ONE, sum=ONE, separable=separable)]


def test_only_a_sense_that_shows_nothing_is_passed_over(proposed):
    assert [each.sense for each in proposed(FAILS, sum=nothing)] == ["geometry"]

    def broken(*_, **__):
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        proposed(FAILS, sum=broken)


def test_a_sense_warns_only_if_its_result_is_returned(proposed, recwarn):
    def warns(*_, **__):
        warn_caller("few for a sum", SampleWarning)
        return two_factors(sense="sum")

    proposals = proposed(FAILS, sum=warns)
    assert not recwarn.list
    choose([replace(each, probability=float(each.sense == "sum")) for each in proposals], None)
    assert [str(each.message) for each in recwarn.list] == ["few for a sum"]


def test_too_many_factors_asked_for_raise_an_error_with_the_number_found(proposed):
    def two_at_most(_, n_asked, **__):
        return nothing() if n_asked == 3 else FAILS

    with pytest.raises(NothingFoundError, match="Found only 2 of the 3 factors"):
        proposed(two_at_most, n_asked=3)


def test_factors_that_another_sense_shows_as_well_are_confirmed():
    one, other = two_factors(), two_factors(sense="sum")
    same, turned = confirmations([one, replace(other, factors=other.factors[::-1])])
    assert same == turned > 0.9
    assert confirmations([one, ONE]) == [0.0, 0.0]
    assert np.isnan(confirmations([one])).all()
