import numpy as np
import pytest

from manifactor.views import plots


@pytest.mark.parametrize(
    ("n", "drawn"), [(10, 10), (10_000, 10_000), (10_001, 5_001), (20_000, 10_000)]
)
def test_a_cloud_shows_every_sample_or_every_so_many(ax, n, drawn):
    plots.points(ax, np.zeros((n, 2)), np.arange(n))
    assert len(ax.collections[0].get_offsets()) == plots.drawn(n) == drawn


def test_fewer_points_are_drawn_if_the_settings_say_so(ax):
    few = plots.PlotSettings(most_points=4)
    plots.points(ax, np.zeros((10, 2)), np.arange(10), settings=few)
    assert len(ax.collections[0].get_offsets()) == plots.drawn(10, settings=few) == 4


def test_a_function_has_its_zero_in_the_middle_of_the_colours(ax):
    plots.function(ax, np.zeros((3, 2)), np.array([-1.0, 0.0, 3.0]))
    low, high = ax.collections[0].get_clim()
    assert low == -high < 0


def test_numbers_in_a_matrix_are_light_on_dark_cells(ax):
    plots.matrix(ax, np.array([[0.1, 0.9]]), numbers=True)
    assert [text.get_text() for text in ax.texts] == ["0.10", "0.90"]
    assert [text.get_color() for text in ax.texts] == ["#111111", "#fefefe"]


def test_rates_are_drawn_over_their_confidence(ax):
    rates = [plots.Rate(0.2, 0.5, 0.3, 0.7), plots.Rate(0.8, 1.0, 0.9, 1.0)]
    plots.reliability(ax, {"product": rates})
    _, names = ax.get_legend_handles_labels()
    assert "product" in names
    x, y = ax.containers[0].lines[0].get_data()
    assert list(x) == [0.2, 0.8]
    assert list(y) == [0.5, 1.0]


def test_without_rates_the_drawing_says_so(ax):
    plots.reliability(ax, {})
    assert ax.texts[0].get_text() == "too few answers to draw"
