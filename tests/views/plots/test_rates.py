from manifactor.views import plots


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
