import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

from sklearn import config_context

from manifactor import ManifoldFactorizer
from manifactor.views.notebook import result_html


def drawings(html):
    found = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    return [ElementTree.fromstring(svg) for svg in found]


def test_a_notebook_shows_verdict_and_factors_above_the_diagram(torus):
    html = torus._repr_mimebundle_()["text/html"]
    assert torus._repr_html_().startswith(result_html(torus))
    start = html.index("<strong>product</strong>")
    assert start < html.index("A product of two independent factors: two circles.")
    assert html.index("Factor 2: a circle") < html.index("sk-top-container")
    names = [drawing.get("aria-label") for drawing in drawings(result_html(torus))]
    assert names == ["Factor 1: a circle", "Factor 2: a circle"]


def test_before_the_fit_the_diagram_is_scikit_learn_s_own():
    html = ManifoldFactorizer()._repr_html_()
    assert "sk-top-container" in html
    assert "<strong>product" not in html


def test_whoever_asked_scikit_learn_for_text_gets_no_html(torus):
    with config_context(display="text"):
        assert list(torus._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(torus, "_repr_html_")


def test_reasons_and_advice_are_shown_unless_it_is_a_product(torus):
    (failed, *others) = torus.evidence_.tests
    tests = (replace(failed, passed=False, problem="<b> is & wrong"), *others)
    fit = ManifoldFactorizer()
    evidence = replace(torus.evidence_, tests=tests)
    fit.factorization_ = replace(torus.factorization_, evidence=evidence)
    html = result_html(fit)
    assert "<strong>partial</strong>" in html
    assert "&lt;b&gt; is &amp; wrong." in html
    assert evidence.advice[:20] in html


def test_bars_of_a_circle_lie_outside_of_its_hole_and_inside_of_the_drawing(torus):
    (path, hole) = next(iter(drawings(result_html(torus))))
    radius = float(hole.get("r"))
    outline = path.get("d").partition("z")[0]
    corners = [tuple(map(float, each.split())) for each in outline[1:].split("L")]
    for x, y in corners:
        assert radius - 0.2 <= ((x - 56) ** 2 + (y - 56) ** 2) ** 0.5 <= 52.2


def test_a_surface_is_a_small_cloud(disk):
    html = result_html(disk)
    (cloud,) = drawings(html)
    points = cloud[0].get("d").count("h0")
    assert 300 <= points <= 400
    assert len(html) < 10_000


def test_no_drawing_package_is_needed(torus, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<svg" in torus._repr_html_()
