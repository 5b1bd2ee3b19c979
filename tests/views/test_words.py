"""Sentences about a run, and its report as plain text."""

from dataclasses import replace

import pytest

from manifactor import Evidence, ManifoldFactorizer
from manifactor.factoring.judging.criteria import CRITERIA, Criterion
from manifactor.views import words

JUDGE = {name: criterion.judge for name, criterion in CRITERIA.items()}
SIZE = Criterion("size", 10, meaning="samples", problem="{value:.0f} are few: raise `n_samples`")


def with_tests(fit, *tests):
    """The same fit with these tests only."""
    evidence = replace(fit.evidence_, tests=tests)
    other = ManifoldFactorizer()
    other.factorization_ = replace(fit.factorization_, evidence=evidence)
    return other


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (20, "A product of two independent factors: two circles."),
        (3, "Two factors were found, two circles, but not every test of a product was passed."),
    ],
)
def test_the_verdict_is_one_sentence_with_shapes_counted(torus, value, sentence):
    fit = with_tests(torus, SIZE.judge(value))
    assert words.verdict_sentence({}, fit) == sentence
    assert words.shapes_in_words(fit.factors_[:1]) == "a circle"


@pytest.mark.parametrize(
    ("name", "words_of_it"),
    [
        ("blocks", "No product was found: the data have one factor, a circle."),
        ("further product", "several directions, but are no product"),
        ("samples", "It cannot be told whether the data are a product"),
    ],
)
def test_three_answers_stand_in_place_of_none(torus, name, words_of_it):
    evidence = Evidence((JUDGE[name](0),))
    fit = ManifoldFactorizer()
    fit.factorization_ = replace(
        torus.factorization_, evidence=evidence, factors=torus.factors_[:1]
    )
    assert words_of_it in words.verdict_sentence({}, fit)
    assert f"What to do: {evidence.advice}" in str(evidence)


def test_failed_tests_are_counted_and_their_problems_told(torus):
    passed = with_tests(torus, SIZE.judge(20), SIZE.judge(30))
    assert words.tests_sentence({}, passed) == "All 2 tests were passed."
    failed = with_tests(torus, SIZE.judge(20), SIZE.judge(3))
    assert words.tests_sentence({}, failed) == (
        "1 of 2 tests failed: 3 are few: raise --n-samples."
    )


def test_parameters_are_named_as_the_options_of_the_command(torus):
    assert "raise --n-samples" in words.evidence({}, with_tests(torus, SIZE.judge(3)))


def test_samples_that_were_placed_only_are_told_from_fitted_ones(torus):
    assert words.samples_sentence({}, torus) == "600 samples, all of them fitted."
    assert words.samples_sentence({"n_samples": 2000}, torus) == (
        "2,000 samples: 600 were fitted, the others placed beside them."
    )


def test_a_property_that_explains_a_factor_is_a_warning():
    found = {"name": "defocus", "factor": 1, "r2": 0.9, "p": 0.01, "meaning": ""}
    assert words.about_particles({"confounders": [found]}) == [
        "No known property of the particles (defocus) explains a factor."
    ]
    bad = {**found, "meaning": "factor 1 is defocus"}
    assert words.about_particles({"confounders": [found, bad]}) == ["Warning: factor 1 is defocus."]


def test_the_text_has_every_test_every_choice_and_every_stage(torus):
    text = words.report_text({"seed": 3}, torus)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    for test in torus.evidence_.tests:
        (line,) = [line for line in lines if line.startswith(f"  {test.name}  ")]
        assert ("passed" in line) == test.passed
        assert test.rule in line
    for name in torus.choices_:
        assert any(line.startswith(f"  {name}  ") for line in lines)
    for stage in torus.timings_:
        assert f"\n  {stage}  " in text
    assert text.isascii()  # terminals may know nothing else


def test_a_single_factor_has_a_text_without_leakage(disk):
    assert "Leakage" not in words.report_text({}, disk)
