"""The benchmark of other methods: what it divides, counts, refuses and replaces."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import FastICA

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    # The benchmark sets these when it is imported; other tests must not inherit them.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    for name in ("peers_on_data", "record"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import peers_on_data

    return peers_on_data


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("above\n<!-- peers -->\nold\n<!-- /peers -->\nbelow\n")
    return path


def without_umap(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "find_spec", lambda name: None)


def refusal(benchmark, capsys, *argv):
    with pytest.raises(SystemExit) as ended:
        benchmark.chosen(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_columns_are_divided_as_they_explain_the_true_factors_best(benchmark):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    line = rng.uniform(size=(200, 1))
    columns = np.column_stack([circle[:, 1], line, rng.normal(size=200), circle[:, 0]])
    first, second = benchmark.best_division(columns, [circle, line])
    np.testing.assert_array_equal(first, circle[:, ::-1])
    np.testing.assert_array_equal(second, line)


def test_fewer_columns_than_the_truth_has_are_refused(benchmark):
    truth = [np.zeros((9, 2)), np.zeros((9, 1))]
    with pytest.raises(ValueError, match=r"at least as many .* factors, 3; got 2"):
        benchmark.best_division(np.zeros((9, 2)), truth)


def test_a_method_that_did_not_converge_is_marked_in_its_row(benchmark, monkeypatch):
    def stopped(X, sizes, seed):
        return FastICA(sum(sizes), max_iter=1, random_state=seed).fit_transform(X)

    def loud(X, sizes, seed):
        warnings.warn("about the data", stacklevel=2)
        return X

    methods = {"stopped": stopped, "loud": loud}
    monkeypatch.setattr(benchmark, "METHODS", methods)
    X = np.random.default_rng(0).uniform(size=(100, 2))
    truth = [X[:, :1], X[:, 1:]]
    results = {name: [benchmark.result(name, X, truth, 0)] for name in methods}
    row = benchmark.row("square", "stopped", results["stopped"])
    assert row.startswith("| square | stopped (1 of 1 did not converge) | ")
    row = benchmark.row("square", "loud", results["loud"])
    assert row.startswith("| square | loud | ")


def test_umap_is_left_out_only_if_nobody_named_it(benchmark, monkeypatch, capsys):
    without_umap(benchmark, monkeypatch)
    assert "UMAP" not in benchmark.chosen([]).methods
    message = refusal(benchmark, capsys, "--methods", "PCA + FastICA", "UMAP")
    assert "UMAP needs umap-learn" in message


def test_a_page_gets_all_rows_or_none(benchmark, monkeypatch, capsys, page):
    monkeypatch.setattr(benchmark, "find_spec", lambda name: object())
    arguments = benchmark.chosen(["--page", str(page)])
    assert arguments.methods == list(benchmark.METHODS)
    assert arguments.data == list(benchmark.DATA)
    for part in (["--data", "torus"], ["--methods", "UMAP"]):
        message = refusal(benchmark, capsys, "--page", str(page), *part)
        assert "--page needs all data and methods" in message
    without_umap(benchmark, monkeypatch)
    message = refusal(benchmark, capsys, "--page", str(page))
    assert "UMAP needs umap-learn" in message


def test_a_page_without_marks_is_refused_before_anything_is_measured(benchmark, capsys, page):
    for text in ("no marks", "<!-- peers -->", "<!-- /peers --> <!-- peers -->"):
        page.write_text(text)
        message = refusal(benchmark, capsys, "--page", str(page))
        assert "must have the marks <!-- peers --> and <!-- /peers -->" in message
    message = refusal(benchmark, capsys, "--page", str(page.with_name("absent.md")))
    assert "No such file" in message


def test_the_table_between_the_marks_is_replaced(benchmark, page):
    text = benchmark.with_table(page.read_text(), ["new"])
    assert text == "above\n<!-- peers -->\nnew\n<!-- /peers -->\nbelow\n"
