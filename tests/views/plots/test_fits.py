from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.factoring.factor import angles, owners
from manifactor.views import plots


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


def test_gradients_of_different_factors_are_orthogonal():
    # More samples than the shared fit has: its gradients are noisier.
    X, _ = datasets.sample("torus", 1500, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    found = angles(fit.spectrum_, [factor.coefficients[:, :4] for factor in fit.factors_])
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-9)
    assert found[:4, 4:].max() < 0.1
    assert found[0, 1] > 0.3  # a cosine and a sine of one circle


def test_the_spectrum_s_picture_shows_every_function_but_the_constant_once(ax, torus):
    plots.spectrum(ax, torus)
    assert sum(len(line.get_xdata()) for line in ax.lines) == torus.n_functions_ - 1


def test_few_pure_functions_are_seen_among_many(ax, torus):
    plots.spectrum(ax, torus)
    *pure, others = ax.lines
    assert all(line.zorder > others.zorder for line in pure)
    # The lowest tenth of the functions takes up much of the width.
    ax.figure.canvas.draw()
    tenth = ax.transData.transform([(torus.n_functions_ / 10, 1)])
    assert ax.transAxes.inverted().transform(tenth)[0, 0] > 0.4


def test_an_eigenvalue_of_0_is_drawn(ax, torus):
    spectrum = torus.spectrum_
    lowest = np.where(np.arange(len(spectrum.eigenvalues)) < 2, 0, spectrum.eigenvalues)
    fit = SimpleNamespace(spectrum_=replace(spectrum, eigenvalues=lowest), factors_=torus.factors_)
    plots.spectrum(ax, fit)
    drawn = np.concatenate([line.get_ydata() for line in ax.lines])
    assert drawn.min() > 0
    assert ax.get_yscale() == "log"


def test_a_joint_histogram_counts_every_sample(ax, torus):
    plots.joint(ax, torus, 0, 1)
    assert ax.collections[0].get_array().sum() == 600


@pytest.mark.slow
def test_factors_of_a_sum_have_no_functions_of_the_spectrum(ax, sum_torus):
    assert (owners(sum_torus.spectrum_, sum_torus.factors_) == -1).all()
    assert "no eigenfunctions" in plots.angles(ax, sum_torus).texts[0].get_text()


@pytest.mark.parametrize("draw", [plots.coordinate, lambda *given: plots.joint(*given, 0)])
def test_a_factor_without_a_single_coordinate_says_so(ax, disk, draw):
    assert "single coordinate" in draw(ax, disk, 0).texts[0].get_text()
