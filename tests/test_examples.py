"""The examples of the gallery run, draw, and import what every user has."""

import ast
import runpy
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
# And the data sets of the gallery, which lie beside the examples.
ALLOWED = {"manifactor", "numpy", "matplotlib", "sklearn", "data_sets"}
# Twice the 20 seconds of a core that an example may take: cores that are shared with
# other processes count more seconds for the same work.
MOST_CPU_SECONDS = 40


def by_name(path):
    return path.stem


@pytest.fixture
def data_sets(monkeypatch):
    """Return the data sets of the gallery; a script finds them in its own folder."""
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    return import_module("data_sets")


@pytest.fixture
def pyplot(monkeypatch):
    """Return pyplot without windows, and without figures before and after."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    plt.close("all")
    with matplotlib.rc_context():
        yield plt
    plt.close("all")


@pytest.mark.slow
@pytest.mark.gallery
@pytest.mark.parametrize("path", EXAMPLES, ids=by_name)
def test_an_example_runs_and_shows_text_and_figures(path, data_sets, pyplot, capsys):
    start = time.process_time()
    runpy.run_path(str(path), run_name="__main__")
    spent = time.process_time() - start
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert figure.axes
    assert capsys.readouterr().out.strip()
    assert spent < MOST_CPU_SECONDS


@pytest.mark.parametrize("path", EXAMPLES, ids=by_name)
def test_an_example_has_a_title_and_a_paragraph_and_imports_what_every_user_has(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    title, underline, empty, *paragraph = text.splitlines()
    assert title
    assert underline == "=" * len(title)
    assert not empty
    assert paragraph
    assert imported(path) <= ALLOWED


def imported(path):
    """Return the packages that a file imports, without the standard library."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names.append(node.module)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names


def test_a_hexagonal_grid_looks_the_same_after_a_turn_by_60_degrees(data_sets):
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(50, 2))
    # In phases, a turn by 60 degrees maps the waves a, b, a - b to b, b - a, -a.
    turned = np.column_stack([phases[:, 1], phases[:, 1] - phases[:, 0]])
    centre = np.zeros((1, 2))
    rates = data_sets.grid_rates(phases, centre)
    np.testing.assert_allclose(data_sets.grid_rates(turned, centre), rates)
