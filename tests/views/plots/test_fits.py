import re

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.factoring.ownership import angles, owners

plots = pytest.importorskip("manifactor.views.plots")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def torus():
    X, _ = datasets.sample("torus", 2500, random_state=0)
    return ManifoldFactorizer(random_state=0).fit(X)


@pytest.fixture
def ax():
    return plots.new_figure(3, 3).subplots()


@pytest.mark.parametrize(
    "draw",
    [
        plots.spectrum,
        plots.angles,
        plots.bandwidth,
        lambda ax, fit: plots.embedding(ax, fit, 0),
        lambda ax, fit: plots.coordinate(ax, fit, 1),
        lambda ax, fit: plots.joint(ax, fit, 0, 1),
        lambda ax, fit: plots.confidence(ax, fit, 0),
        lambda ax, fit: plots.averages(ax, np.zeros((3, 8, 8)), labels=["a", "b", "c"]),
    ],
)
def test_pictures_are_drawn_on_the_caller_s_axes(ax, torus, draw):
    with plots.style():
        assert draw(ax, torus) is ax
        ax.figure.draw_without_rendering()
    assert ax.has_data()


def test_the_lowest_functions_belong_to_factors_and_products_to_none(torus):
    owner = owners(torus.spectrum_, torus.factors_)
    assert owner[0] == -1  # the constant
    assert sorted(owner[1:5]) == [0, 0, 1, 1]
    both = sum(torus.factors_[f].eigenvalues[0] for f in (0, 1))
    product = np.abs(torus.spectrum_.eigenvalues - both).argmin()
    assert owner[product] == -1


def test_gradients_of_different_factors_are_orthogonal(torus):
    blocks = [factor.coefficients[:, :4] for factor in torus.factors_]
    found = angles(torus.spectrum_, blocks)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-9)
    assert found[:4, 4:].max() < 0.1
    assert found[0, 1] > 0.3  # a cosine and a sine of one circle


def test_the_spectrum_s_picture_shows_every_function_but_the_constant_once(ax, torus):
    plots.spectrum(ax, torus)
    assert sum(len(line.get_xdata()) for line in ax.lines) == torus.n_functions_ - 1


def test_a_joint_histogram_counts_every_sample(ax, torus):
    plots.joint(ax, torus, 0, 1)
    assert ax.collections[0].get_array().sum() == 2500


def test_factors_of_a_sum_have_no_functions_of_the_spectrum(ax, torus):
    X, _ = datasets.sample("torus", 800, random_state=0)
    fit = ManifoldFactorizer(method="deflation", random_state=0).fit(X)
    assert (owners(fit.spectrum_, fit.factors_) == -1).all()
    assert "no functions" in plots.angles(ax, fit).texts[0].get_text()


def test_a_factor_without_a_single_coordinate_says_so():
    X, _ = datasets.sample("sphere_interval", 2500, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    sphere = next(
        f for f, factor in enumerate(fit.factors_) if factor.coordinate is None
    )
    ax = plots.coordinate(plots.new_figure(3, 3).subplots(), fit, sphere)
    assert "no single coordinate" in ax.texts[0].get_text()
    ax = plots.joint(plots.new_figure(3, 3).subplots(), fit, 0, 1)
    assert "single coordinate" in ax.texts[0].get_text()


def test_a_drawing_for_a_page_shares_no_names_with_another_and_is_the_same_each_time(
    torus,
):
    def drawing(name):
        with plots.style(plots.PAGE):
            figure = plots.new_figure(3, 3)
            plots.embedding(figure.subplots(), torus, 0)
            figure.axes[0].plot([0, 1], [0, 1], color="black")
            return plots.svg(figure, name)

    one, other = drawing("one"), drawing("other")
    names = re.findall(r' id="([^"]+)"', one)
    assert names
    assert not set(names) & set(re.findall(r' id="([^"]+)"', other))
    assert one == drawing("one")
    assert one.startswith("<svg viewBox=")
    for gone in (
        "<?xml",
        "DOCTYPE",
        "metadata",
        "xmlns",
        "<style",
        "#000000",
        plots.INK,
    ):
        assert gone not in one
    assert one.count("data:image/png;base64,") == 1  # the cloud


@pytest.mark.parametrize(
    ("n", "drawn"), [(10, 10), (10_000, 10_000), (10_001, 5_001), (20_000, 10_000)]
)
def test_clouds_show_so_many_of_the_samples(ax, n, drawn):
    plots.points(ax, np.zeros((n, 2)), np.arange(n))
    assert len(ax.collections[0].get_offsets()) == plots.drawn(n) == drawn
