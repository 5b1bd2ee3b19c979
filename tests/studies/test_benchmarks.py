"""Benchmarks of other methods and of sensitivity: what they change, count, refuse and replace."""

import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import FastICA

from manifactor.factoring.judging.criteria import CRITERIA
from manifactor.spectral import neighbors, preparation
from studies.accuracy import Case


def imported(name, monkeypatch):
    """A benchmark, with what it sets when it is imported undone after the test."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    for module in (name, "record"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return import_module(name)


@pytest.fixture
def peers(monkeypatch):
    return imported("peers_on_data", monkeypatch)


@pytest.fixture
def sensitivity(monkeypatch):
    return imported("sensitivity", monkeypatch)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("above\n<!-- peers -->\nold\n<!-- /peers -->\nbelow\n")
    return path


def refusal(peers, capsys, *argv):
    with pytest.raises(SystemExit) as ended:
        peers.chosen(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_columns_are_divided_as_they_explain_the_true_factors_best(peers):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    line = rng.uniform(size=(200, 1))
    columns = np.column_stack([circle[:, 1], line, rng.normal(size=200), circle[:, 0]])
    first, second = peers.best_division(columns, [circle, line])
    np.testing.assert_array_equal(first, circle[:, ::-1])
    np.testing.assert_array_equal(second, line)
    with pytest.raises(ValueError, match=r"at least as many .* factors, 3; got 2"):
        peers.best_division(columns[:, :2], [circle, line])


def test_a_method_that_did_not_converge_is_marked_in_its_row(peers, monkeypatch):
    def stopped(X, sizes, seed):
        return FastICA(sum(sizes), max_iter=1, random_state=seed).fit_transform(X)

    def loud(X, sizes, seed):
        warnings.warn("about the data", stacklevel=2)
        return X

    methods = {"stopped": stopped, "loud": loud}
    monkeypatch.setattr(peers, "METHODS", methods)
    X = np.random.default_rng(0).uniform(size=(100, 2))
    truth = [X[:, :1], X[:, 1:]]
    results = {name: [peers.result(name, X, truth, 0)] for name in methods}
    row = peers.row("square", "stopped", results["stopped"])
    assert row.startswith("| square | stopped (1 of 1 did not converge) | ")
    row = peers.row("square", "loud", results["loud"])
    assert row.startswith("| square | loud | ")


def test_umap_is_left_out_only_if_nobody_named_it(peers, monkeypatch, capsys):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert "UMAP" not in peers.chosen([]).methods
    message = refusal(peers, capsys, "--methods", "PCA + FastICA", "UMAP")
    assert "UMAP needs umap-learn" in message


def test_a_page_gets_all_rows_or_none(peers, monkeypatch, capsys, page):
    monkeypatch.setattr(peers, "find_spec", lambda name: object())
    arguments = peers.chosen(["--page", str(page)])
    assert arguments.methods == list(peers.METHODS)
    assert arguments.data == list(peers.DATA)
    for part in (["--data", "torus"], ["--methods", "UMAP"]):
        message = refusal(peers, capsys, "--page", str(page), *part)
        assert "--page needs all data and methods" in message
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    message = refusal(peers, capsys, "--page", str(page))
    assert "UMAP needs umap-learn" in message


def test_a_page_without_marks_is_refused_before_anything_is_measured(peers, capsys, page):
    for text in ("no marks", "<!-- peers -->", "<!-- /peers --> <!-- peers -->"):
        page.write_text(text)
        message = refusal(peers, capsys, "--page", str(page))
        assert "must have the marks <!-- peers --> and <!-- /peers -->" in message
    message = refusal(peers, capsys, "--page", str(page.with_name("absent.md")))
    assert "No such file" in message


def test_the_table_between_the_marks_is_replaced(peers, page):
    text = peers.with_table(page.read_text(), ["new"])
    assert text == "above\n<!-- peers -->\nnew\n<!-- /peers -->\nbelow\n"


def variation(sensitivity, module, name, new):
    return sensitivity.Variation(module, name, 1.0, "x1.5", new)


def test_numbers_of_modules_and_limits_of_criteria_are_changed_both_ways(sensitivity):
    found = {(one.setting, one.direction): one.new for one in sensitivity.variations()}
    assert found["spectral.preparation.MOST_COLUMNS", "x1.5"] == 1500
    assert found["spectral.preparation.MOST_COLUMNS", "/1.5"] == 667
    name, limit = "completeness", CRITERIA["completeness"].limit
    assert found[f"CRITERIA.{name}", "/1.5"] == pytest.approx(limit / 1.5)
    # What a module only imports is not listed a second time.
    assert not any(setting.endswith("pipeline.MOST_COLUMNS") for setting, _ in found)


@pytest.mark.parametrize(
    ("value", "factor", "expected"),
    [(3, 1.5, 4), (1, 1 / 1.5, 1), (0.9, 1.5, 1.0), (2.0, 1.5, 3.0), (0, 1.5, 0)],
)
def test_counts_are_rounded_and_shares_stay_below_one(sensitivity, value, factor, expected):
    assert sensitivity.scaled(value, factor) == expected


def test_a_number_is_changed_wherever_it_is_used_and_then_restored(sensitivity):
    from manifactor.estimators import diffusion_map

    module, old = "manifactor.spectral.preparation", preparation.MOST_COLUMNS
    with sensitivity.changed(variation(sensitivity, module, "MOST_COLUMNS", 5)):
        assert preparation.MOST_COLUMNS == diffusion_map.MOST_COLUMNS == 5
    assert preparation.MOST_COLUMNS == diffusion_map.MOST_COLUMNS == old
    limit = CRITERIA["completeness"].limit
    with sensitivity.changed(variation(sensitivity, "CRITERIA", "completeness", 0.1)):
        assert CRITERIA["completeness"].limit == 0.1
    assert CRITERIA["completeness"].limit == limit


@pytest.mark.slow
def test_what_a_number_does_is_counted_and_an_error_is_an_answer(sensitivity):
    pairs = [(Case("cheap", "square", n=400), 0)]
    before = [sensitivity.outcome(*pair) for pair in pairs]
    assert before == [(True, "product")]
    strict = variation(sensitivity, "CRITERIA", "agreement", 5.0)
    record = sensitivity.compared(strict, before, sensitivity.outcomes(pairs, strict))
    assert (record["gained"], record["lost"], record["verdicts"]) == (0, 0, 1)
    wrong = variation(sensitivity, "manifactor.spectral.neighbors", "APPROXIMATE_ABOVE", "many")
    record = sensitivity.compared(wrong, before, sensitivity.outcomes(pairs, wrong))
    assert (record["lost"], record["errors"]) == (1, 1)
    assert neighbors.APPROXIMATE_ABOVE == 50_000


def test_the_loudest_number_comes_first_in_the_table(sensitivity):
    quiet, loud = (
        sensitivity.compared(
            variation(sensitivity, "CRITERIA", name, 2.0), [(True, "product")], after
        )
        for name, after in (("a", [(True, "product")]), ("b", [(False, "none")]))
    )
    lines = sensitivity.table([quiet, loud]).splitlines()
    assert lines[2] == "| CRITERIA.b | 1 | +0 -1 | 1 | - | - |"
    assert lines[-1] == "Without effect: 1 of 2 settings."
