import numpy as np
import pytest
from matplotlib.path import Path

from manifactor.cryoem.directions import sphere_cells
from manifactor.views import plots
from manifactor.views.plots import _mollweide, _outlines


def area(polygon):
    x, y = polygon.T
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


def test_cells_have_equal_areas_on_the_map():
    cells = sphere_cells(12)
    outlines = _outlines(cells, np.arange(len(cells)))
    # The map of the unit sphere has its area, 4 pi.
    np.testing.assert_allclose(
        [area(outline) for outline in outlines], 4 * np.pi / len(cells), rtol=0.02
    )


def test_the_middle_of_a_cell_lies_in_its_outline():
    cells = sphere_cells(12)
    x, y, z = cells.centres.T
    middles = _mollweide(np.degrees(np.arctan2(y, x)), z)
    outlines = _outlines(cells, np.arange(len(cells)))
    assert all(map(lambda outline, middle: Path(outline).contains_point(middle), outlines, middles))


def test_the_equator_is_straight_and_the_poles_are_points():
    places = _mollweide(np.array([-180.0, 0, 90, 50]), np.array([0.0, 0, 0, 1]))
    reach = 2 * np.sqrt(2)
    expected = [[-reach, 0], [0, 0], [reach / 2, 0], [0, np.sqrt(2)]]
    np.testing.assert_allclose(places, expected, atol=1e-4)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_empty_cells_are_not_drawn_and_marks_are_numbered(suffix):
    cells = sphere_cells(6)
    values = np.zeros(len(cells), dtype=int)
    values[3] = 7
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(4, 2)
        ax = plots.sphere(figure.subplots(), cells, values, marks=[np.array([0.0, 1, 0])])
        assert len(ax.collections[0].get_paths()) == 1
        assert [text.get_text() for text in ax.texts] == ["1"]
        assert len(plots.clear_picture(figure, suffix)) > 1000
