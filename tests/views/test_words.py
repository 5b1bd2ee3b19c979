"""Sentences about a run, and its report as plain text."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from manifactor import Evidence
from manifactor._support.parameters import Choice
from manifactor.judging.measure import Measure
from manifactor.judging.table import CRITERIA
from manifactor.samples.preparation import Preparation
from manifactor.views import words
from manifactor.views.report import templates
from manifactor.views.sections import Table

JUDGE = {name: criterion.judge for name, criterion in CRITERIA.items()}
SIZE = Measure(
    "size", 10, meaning="samples", problem="{value:.0f} are few: raise `fit_samples`, not `gain`"
)


def changed(fit, **parts):
    """The same fit with another part."""
    other = copy(fit)
    other.factorization_ = replace(fit.factorization_, **parts)
    return other


def with_tests(fit, *tests):
    """The same fit with these tests only."""
    return changed(fit, evidence=replace(fit.evidence_, tests=tests))


def said(fit, *about, **record):
    """What is said of a fit about these."""
    return words.sentences(words.describe(record, fit), *about)


def table(fit, about, **record):
    """The first table about something."""
    return words.describe(record, fit)[about].tables[0]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (20, "Two independent factors were found: two circles."),
        (3, "Two factors were found, two circles, but this is not sure: 3 are few."),
    ],
)
def test_the_verdict_has_the_shapes_of_the_fit_counted(torus, value, sentence):
    assert said(with_tests(torus, SIZE.judge(value)), "verdict")[0] == sentence


@pytest.mark.medium
def test_what_does_not_separate_is_not_judged_as_a_product(annulus):
    one = Evidence((JUDGE["commutator"](0.5, n_samples=1000),), sense="separable")
    verdict = said(changed(annulus, evidence=one, factors=annulus.factors_[:1]), "verdict")
    assert verdict[0].startswith("No independent factors were found, as no coordinates separate;")
    assert "product" not in " ".join(verdict)


def test_failed_tests_are_counted_and_their_problems_told_with_options(torus):
    passed = with_tests(torus, SIZE.judge(20), SIZE.judge(30))
    assert said(passed, "evidence")[0].startswith("All 2 tests were passed.")
    (failed,) = said(with_tests(torus, SIZE.judge(20), SIZE.judge(3)), "evidence")
    assert failed.startswith("1 of 2 tests failed: 3 are few: raise --fit-samples, not `gain`.")


def test_a_warning_takes_the_place_of_advice_to_use_the_coordinates(torus):
    found = {"name": "defocus", "factor": 1, "r2": 0.9, "p": 0.01, "meaning": "it is defocus"}
    assert "Use the coordinates" in said(torus, "verdict")[-1]
    advice = said(torus, "verdict", confounders=[found])[-1]
    assert advice.startswith("What to do: Read the warnings")


def test_samples_that_were_placed_only_are_told_from_fitted_ones(torus):
    assert said(torus, "samples") == ["600 samples, all of them fitted."]
    (placed,) = said(torus, "samples", n_samples=2000)
    assert placed.startswith("2,000 samples: 600 were fitted")


def test_a_property_that_explains_a_factor_is_a_warning(torus):
    found = {"name": "defocus", "factor": 1, "r2": 0.9, "p": 0.01, "meaning": ""}
    (text,) = said(torus, "properties", confounders=[found])
    assert text.startswith("No known property of the particles (defocus)")
    bad = {**found, "meaning": "factor 1 is defocus"}
    both = said(torus, "warnings", "properties", confounders=[found, bad])
    assert both == 2 * ["Warning: factor 1 is defocus."]


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


# Tables.


def test_the_text_names_the_columns_that_each_factor_moves(torus):
    names = list("abcdefgh")[: torus.n_features_in_]
    text = words.report_text(
        {"columns": {"names": names, "numbers": None, "total": 4, "scale": None}}, torus
    )
    assert str(torus.loadings(column_names=names)) in text.replace("\n", " ")
    assert "moves" not in words.report_text({}, torus)


def test_text_is_escaped_and_squares_are_raised_on_the_page():
    parts = templates().get_template("parts.html").module
    html = parts.table(Table("R^2", ("a", "b"), [("<i>", "R^2 & more")], tests=[SIZE.judge(3)]))
    assert '<tr class="marked"><th scope="row">&lt;i&gt;</th>' in html
    assert "<td>R² &amp; more</td>" in html
    assert "<caption>R²</caption>" in html
    assert parts.table(Table("Sizes", ("what", "size"), [])).strip() == ""


def test_paths_are_never_broken_in_text():
    path = "/a-very-long/path-with-hyphens/and more"
    text = Table("Files", ("what", "value"), [("input", path)]).as_text(24)
    assert "/a-very-long/path-with-hyphens/and\n" in text


def test_tests_show_noise_where_it_is_measured_and_failed_ones_come_first(torus):
    share = Measure("share", 0.2, at_most=True, meaning="what is shared", problem="")
    judged = (share.judge(0.01234, 0.005), SIZE.judge(1500), share.judge(np.nan))
    assert table(with_tests(torus, *judged), "evidence").rows == [
        ("share", "failed", "not measured", "at most 0.2", "what is shared"),
        ("share", "passed", "0.012 (noise 0.005)", "at most 0.2", "what is shared"),
        ("size", "passed", "1,500", "at least 10", "samples"),
    ]


def test_what_the_caller_set_is_told_from_what_was_chosen(torus):
    why = {name: why for name, _, why in table(torus, "choices").rows}
    assert why["factors"] == "set by the caller"
    assert why["neighbours"] not in ("", "set by the caller")
    assert all(why.values())
    # A run's record has choices that the fit does not know.
    choices = {"samples fitted": {"value": None, "why": "all"}}
    assert table(torus, "choices", choices=choices).rows == [("samples fitted", "none", "all")]


def test_a_preparation_is_shown_in_words(torus):
    prepared = Choice(Preparation(np.zeros(5), np.eye(5, 2), "why"), "noise")
    choices = {**torus.diffusion_.choices, "preparation": prepared}
    fit = changed(torus, diffusion=replace(torus.diffusion_, choices=choices))
    values = {name: value for name, value, _ in table(fit, "choices").rows}
    assert values["preparation"] == "2 principal components"


def test_numbers_have_the_digits_that_people_read():
    assert [words._number(x) for x in (3000, 0.0891, 0.00024)] == ["3,000", "0.089", "0.0002"]
    assert [words.value_in_words(x) for x in (None, 8.975116, 83)] == ["none", "8.975", "83"]
