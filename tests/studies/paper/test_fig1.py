import numpy as np
import pytest

from manifactor import datasets
from studies.paper.fig1 import Fig1Settings, cosines, fig1, lowest_modes


def test_modes_of_the_rectangle_are_in_the_order_of_its_exact_eigenvalues():
    exact = datasets.exact_eigenvalues("rectangle", 13)[1:]
    waves = lowest_modes(12) / np.array(Fig1Settings.sides)
    np.testing.assert_allclose(np.pi**2 * (waves**2).sum(axis=1), exact)


def test_the_cosine_of_a_function_with_itself_is_one_under_any_weights(rng):
    functions, weights = rng.normal(size=(50, 3)), rng.uniform(size=50)
    assert cosines(functions, -2 * functions, weights) == pytest.approx([-1] * 3)


@pytest.mark.slow
def test_computed_functions_stand_beside_the_analytic_ones(small, lab):
    section = fig1(small, lab, recipe=Fig1Settings(n_shown=5))
    assert min(section.numbers["cosine"][:2]) > 0.9
    assert len(section.tables[0].rows) == 5
    assert len(section.pictures[0].figure.axes) == 10
    assert "The 5 lowest Neumann" in section.pictures[0].caption
