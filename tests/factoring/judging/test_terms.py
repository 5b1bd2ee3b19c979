from dataclasses import replace

import numpy as np

from manifactor import Evidence
from manifactor.factoring.judging.criteria import criteria
from manifactor.factoring.judging.weighing import weigh_terms

JUDGE = {criterion.name: criterion.judge for criterion in criteria()}


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
    assert (
        "Factors 1 and 2 together are term 1 of the sum, which is a product of lengths "
        "by itself." in text
    )
    assert "predicts at most 12% of another" in text
    text = str(weigh_terms(of_sum(), {1: evidence(JUDGE["filling"](0.05))}))
    assert "Factors 2 and 3 together are term 2" in text
    assert "nearly a product of lengths" in text
