import pickle

import pytest

from manifactor import ManifoldFactorizer
from manifactor.views import plots


def labels(figure):
    return [(ax.get_title(), ax.get_xlabel()) for ax in figure.get_axes()]


@pytest.mark.slow
def test_the_overview_has_all_factors_and_what_they_were_found_by(torus):
    figure = torus.plot()
    assert labels(figure) == [
        ("factor 1: a circle", ""),
        ("factor 2: a circle", ""),
        ("", "eigenfunction"),
        ("", "factor"),
        ("", "factor 1, degrees"),
    ]
    assert figure.get_suptitle() == "product: 2 factors"
    # Notebooks without pyplot show it by this method.
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(figure)).get_axes()


def test_the_overview_is_drawn_on_the_caller_s_figure(torus):
    figure = plots.new_figure(8, 4)
    part = figure.subfigures(1, 2)[1]
    assert torus.plot(part) is part
    assert figure.get_axes()


def test_a_single_surface_is_drawn_to_scale_beside_the_curve_of_the_bandwidth(disk):
    figure = disk.plot()
    surface, *others = figure.get_axes()
    assert surface.get_aspect() == 1
    assert [ax.get_xlabel() for ax in others] == ["eigenfunction", "bandwidth"]


@pytest.mark.slow
def test_factors_of_a_sum_are_drawn_without_functions(sum_torus):
    figure = sum_torus.plot()
    below = [ax.get_xlabel() for ax in figure.get_axes()][2:]
    numbers = [f"coordinate on factor {number}, degrees" for number in (1, 2)]
    assert below == [*numbers, "factor 1, degrees"]


def test_nothing_is_drawn_before_the_fit():
    with pytest.raises(ValueError, match="not fitted yet"):
        ManifoldFactorizer().plot()
