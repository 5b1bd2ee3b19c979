"""Tables about a run."""

from dataclasses import replace

import numpy as np

from manifactor import ManifoldFactorizer
from manifactor._support.parameters import Choice
from manifactor.factoring.judging.criteria import Criterion
from manifactor.spectral.preparation import Preparation
from manifactor.views import words
from manifactor.views.report import templates
from manifactor.views.words import RunTable


def test_text_is_escaped_and_squares_are_raised_on_the_page():
    parts = templates().get_template("parts.html").module
    html = parts.table(RunTable("R^2", ("a", "b"), [("<i>", "R^2 & more")], marked=[0]))
    assert '<tr class="marked"><th scope="row">&lt;i&gt;</th>' in html
    assert "<td>R² &amp; more</td>" in html
    assert "<caption>R²</caption>" in html
    assert parts.table(RunTable("Sizes", ("what", "size"), [])).strip() == ""


def test_paths_are_never_broken_in_text():
    path = "/a-very-long/path-with-hyphens/and more"
    text = RunTable("Files", ("what", "value"), [("input", path)]).as_text(24)
    assert "/a-very-long/path-with-hyphens/and\n" in text


def test_tests_show_noise_where_it_is_measured_and_failed_ones_come_first(torus):
    share = Criterion(
        "share", 0.2, at_most=True, meaning="what is shared", problem="{value:.0%} is shared"
    )
    count = Criterion("count", 200, meaning="samples", problem="{value:.0f} are too few")
    judged = (share.judge(0.01234, 0.005), count.judge(1500), share.judge(np.nan))
    evidence = replace(torus.evidence_, tests=judged)
    fit = ManifoldFactorizer()
    fit.factorization_ = replace(torus.factorization_, evidence=evidence)
    table = words.tests_table({}, fit)
    assert table.rows == [
        ("share", "failed", "not measured", "at most 0.2", "what is shared"),
        ("share", "passed", "0.012 (noise 0.005)", "at most 0.2", "what is shared"),
        ("count", "passed", "1,500", "at least 200", "samples"),
    ]
    assert table.marked == [0]


def test_what_the_caller_set_is_told_from_what_was_chosen(torus):
    why = {name: why for name, _, why in words.choices_table({}, torus).rows}
    assert why["factors"] == "set by the caller"
    assert why["neighbours"] not in ("", "set by the caller")
    assert all(why.values())


def test_a_run_s_record_has_the_choices_that_the_fit_does_not_know(torus):
    record = {"choices": {"samples fitted": {"value": None, "why": "all"}}}
    assert words.choices_table(record, torus).rows == [("samples fitted", "none", "all")]


def test_a_preparation_is_shown_in_words(torus):
    prepared = Choice(Preparation(np.zeros(5), np.eye(5, 2), "why"), "noise")
    choices = {**torus.diffusion_.choices, "preparation": prepared}
    diffusion = replace(torus.diffusion_, choices=choices)
    fit = ManifoldFactorizer()
    fit.factorization_ = replace(torus.factorization_, diffusion=diffusion)
    values = {name: value for name, value, _ in words.choices_table({}, fit).rows}
    assert values["preparation"] == "2 principal components"


def test_leakage_has_no_numbers_on_its_diagonal(torus):
    rows = words.leakage_table(torus).rows
    assert [row[0] for row in rows] == ["factor 1", "factor 2"]
    assert rows[0][1] == rows[1][2] == ""
    assert rows[0][2] == f"{torus.evidence_.leakage[0, 1]:.2f}"


def test_confounders_are_ordered_by_property_and_factor():
    found = [
        {"name": name, "factor": factor, "r2": 0.8, "p": 0.01, "meaning": ""}
        for name in ("defocus", "half set")
        for factor in (1, 0)
    ]
    table = words.confounders_table({"confounders": found[:-1]})
    assert table.header == ("property", "factor 1", "the rest")
    assert table.rows == [
        ("defocus", "0.80 (p 0.01)", "0.80 (p 0.01)"),
        ("half set", "0.80 (p 0.01)", ""),
    ]
