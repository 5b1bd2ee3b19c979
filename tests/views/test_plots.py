"""Drawings of fits and arrays, the files they become, and what a notebook shows."""

import pickle
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn import config_context

from manifactor import ManifoldFactorizer
from manifactor.factors.factor import owners
from manifactor.judging.evidence import Warp
from manifactor.runs.folder import read_run
from manifactor.views import plots
from manifactor.views.notebook import result_html


def test_a_function_has_its_zero_in_the_middle_of_the_colours(ax):
    plots.function(ax, np.zeros((3, 2)), np.array([-1.0, 0.0, 3.0]))
    low, high = ax.collections[0].get_clim()
    assert low == -high < 0


@pytest.fixture
def pyplot():
    """The state of pyplot, without figures before and after a test."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    pyplot.close("all")
    with pyplot.ion():
        yield pyplot
    pyplot.close("all")


# Fits.


@pytest.mark.slow
def test_pictures_are_drawn_on_the_caller_s_axes(torus):
    draws = [
        plots.spectrum,
        plots.angles,
        plots.bandwidth,
        lambda ax, fit: plots.embedding(ax, fit, 0),
        lambda ax, fit: plots.coordinate(ax, fit, 1),
        lambda ax, fit: plots.joint(ax, fit, 0, 1),
        lambda ax, fit: plots.confidence(ax, fit, 0),
        lambda ax, fit: plots.averages(ax, np.zeros((3, 8, 8)), labels=["a", "b", "c"]),
    ]
    with plots.style():
        figure = plots.new_figure(8, 4)
        for draw, ax in zip(draws, figure.subplots(2, 4).flat, strict=True):
            assert draw(ax, torus) is ax
            assert ax.has_data()
        figure.draw_without_rendering()


@pytest.mark.medium
def test_the_lowest_functions_belong_to_factors_and_products_to_none(torus):
    owner = owners(torus.spectrum_, torus.factorization_.coefficients)
    assert owner[0] == -1  # the constant
    assert sorted(owner[1:5]) == [0, 0, 1, 1]
    both = sum(torus.factors_[f].eigenvalues[0] for f in (0, 1))
    product = np.abs(torus.spectrum_.eigenvalues - both).argmin()
    assert owner[product] == -1


@pytest.mark.parametrize("draw", [plots.coordinate, lambda *given: plots.joint(*given, 0)])
def test_a_factor_without_a_single_coordinate_says_so(ax, disk, draw):
    assert "single coordinate" in draw(ax, disk, 0).texts[0].get_text()


@pytest.mark.medium
def test_lengths_of_a_product_or_of_both_coordinates_are_no_curve(ax, torus, annulus):
    with pytest.raises(ValueError, match="'product'"):
        plots.warp(ax, torus)
    both = SimpleNamespace(verdict_="separable", evidence_=SimpleNamespace(warp=Warp(None)))
    with pytest.raises(ValueError, match="on both"):
        plots.warp(ax, both)
    solid = SimpleNamespace(evidence_=SimpleNamespace(warp=None), factors_=[None] * 3)
    solid.verdict_ = "separable"
    with pytest.raises(ValueError, match="two factors to show"):
        plots.warp(ax, solid)


@pytest.mark.medium
def test_a_flat_torus_is_drawn_in_its_cell(ax, hexagonal_run, annulus):
    _, fit = read_run(hexagonal_run)
    plots.torus(ax, fit)
    corners = ax.lines[0].get_xydata()
    first, second = corners[1] - corners[0], corners[3] - corners[0]
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    angle = fit.evidence_.symmetries.lattice_angle
    assert np.degrees(np.arccos(cosine)) == pytest.approx(angle)
    # Distances in the cell are those in the data; a shear would change them.
    xy, X = ax.collections[0].get_offsets(), fit.diffusion_.points
    near = np.linalg.norm(xy - np.mean(corners[:4], axis=0), axis=1) < 0.15
    assert np.corrcoef(pdist(xy[near]), pdist(X[near]))[0, 1] > 0.9
    with pytest.raises(ValueError, match="flat torus"):
        plots.torus(ax, annulus)


# Which columns each factor moves.


@pytest.mark.medium
def test_bars_of_a_column_are_its_shares_and_curves_are_drawn_along_each_factor(torus):
    found = torus.loadings(column_names=["a", "b", "c", "d"])
    bars, *curves = plots.loadings(torus).get_axes()
    names = [found.columns.index("abcd"[int(t.get_text()[-1])]) for t in bars.get_yticklabels()]
    widths = [[bar.get_width() for bar in part] for part in bars.containers]
    assert np.transpose(widths)[:, :2] == pytest.approx(found.shares[names])
    assert [ax.get_xlim() for ax in curves] == [(0, 360), (0, 360)]
    assert [len(ax.lines) for ax in curves] == [2, 2]
    lengths = [np.ptp(line.get_ydata()) for ax in curves for line in ax.lines]
    ends = [line.get_xydata()[[0, -1]] for ax in curves for line in ax.lines]
    assert all(np.allclose(each[1] - each[0], (360, 0)) for each in ends)  # closed
    # From the least to the greatest cosine, in standard deviations of a cosine.
    assert lengths == pytest.approx([2 * np.sqrt(2)] * 4, rel=0.1)


def test_a_surface_has_bars_and_no_curve(disk, ax):
    assert "no single coordinate" in plots.curves(ax, disk, 0).texts[0].get_text()
    (bars,) = plots.loadings(disk).get_axes()
    assert len(bars.containers[0]) == 2


# All of a fit in one figure.


def panels(figure):
    """Axes of a figure without the scales of colours."""
    return [ax for ax in figure.get_axes() if ax.get_label() != "<colorbar>"]


def test_the_overview_has_all_factors_and_what_they_were_found_by(torus, pyplot):
    figure = torus.plot()
    assert pyplot.get_fignums() == [figure.number]
    assert pyplot.rcParams["interactive"]  # as the fixture has it
    shown = [ax.get_title() or ax.get_xlabel() for ax in panels(figure)]
    assert shown[:2] == ["factor 1: a circle", "factor 2: a circle"]
    assert shown[2:] == ["eigenfunction", "factor", "factor 1, degrees"]
    assert re.fullmatch("product(, .. %)?: 2 factors", figure.get_suptitle())
    assert pickle.loads(pickle.dumps(figure)).get_axes()


@pytest.mark.medium
def test_factors_of_a_sum_are_drawn_without_functions(ax, sum_torus, pyplot):
    assert (owners(sum_torus.spectrum_, sum_torus.factorization_.coefficients) == -1).all()
    assert "no eigenfunctions" in plots.angles(ax, sum_torus).texts[0].get_text()
    below = [ax.get_xlabel() for ax in panels(sum_torus.plot())][2:]
    numbers = [f"coordinate on factor {number}, degrees" for number in (1, 2)]
    assert below == [*numbers, "factor 1, degrees"]


def test_before_the_fit_nothing_is_drawn_but_scikit_learn_s_own_diagram():
    with pytest.raises(ValueError, match="not fitted yet"):
        ManifoldFactorizer().plot()
    html = ManifoldFactorizer()._repr_html_()
    assert "sk-top-container" in html
    assert "<strong>product" not in html


# Files.


@pytest.mark.medium
def test_a_drawing_for_a_page_shares_no_names_with_another_and_is_the_same_each_time(torus):
    def drawing(name):
        with plots.style(plots.PAGE):
            figure = plots.new_figure(3, 3)
            plots.embedding(figure.subplots(), torus, 0)
            figure.axes[0].plot([0, 1], [0, 1], color="black")
            figure.axes[0].plot([0, 1], [1, 0], color=plots.CATEGORIES[0])
            return plots.svg(figure, name)

    one, other = drawing("one"), drawing("other")
    names = re.findall(r' id="([^"]+)"', one)
    assert names
    assert not set(names) & set(re.findall(r' id="([^"]+)"', other))
    assert one == drawing("one")
    assert one.startswith("<svg viewBox=")
    for gone in ("<?xml", "DOCTYPE", "metadata", "xmlns", "<style", "#000000", plots.INK):
        assert gone not in one
    assert one.count("data:image/png;base64,") == 2  # the cloud and its scale
    # Ink and colours are those of the page, light or dark.
    assert "currentColor" in one
    assert "var(--category-" in one


# Notebooks.


def drawings(html):
    found = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    return [ElementTree.fromstring(svg) for svg in found]


def test_a_notebook_shows_verdict_and_factors_above_the_diagram(torus):
    html = torus._repr_mimebundle_()["text/html"]
    assert torus._repr_html_().startswith(result_html(torus))
    assert html.index("<strong>product") < html.index("two circles")
    assert html.index("Factor 2: a circle") < html.index("sk-top-container")
    names = [drawing.get("aria-label") for drawing in drawings(result_html(torus))]
    assert names == ["Factor 1: a circle", "Factor 2: a circle"]


def test_whoever_asked_scikit_learn_for_text_gets_no_html(torus):
    with config_context(display="text"):
        assert list(torus._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(torus, "_repr_html_")


def test_reasons_and_advice_are_shown_unless_it_is_a_product(torus):
    *others, sure = torus.evidence_.tests
    tests = (*others, replace(sure, passed=False, problem="<b> is & wrong"))
    fit = ManifoldFactorizer()
    evidence = replace(torus.evidence_, tests=tests)
    fit.factorization_ = replace(torus.factorization_, evidence=evidence)
    html = result_html(fit)
    assert "<strong>partial" in html
    assert "&lt;b&gt; is &amp; wrong." in html
    assert evidence.advice[:20] in html
    # The statistics are there, and folded.
    assert html.partition("<details>")[2].startswith("<summary>Details</summary>1 of ")


def test_no_drawing_package_is_needed(torus, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<svg" in torus._repr_html_()
