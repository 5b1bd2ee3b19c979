"""The map of the sphere of viewing directions."""

import numpy as np
from matplotlib.path import Path

from manifactor.cryoem.directions import sphere_cells
from manifactor.cryoem.maps import _mollweide, _outlines


def test_cells_have_equal_areas_on_the_map_and_their_middles_inside():
    cells = sphere_cells(12)
    outlines = _outlines(cells, np.arange(len(cells)))
    x, y = np.moveaxis(outlines, -1, 0)
    areas = np.abs((x * np.roll(y, 1, axis=1) - y * np.roll(x, 1, axis=1)).sum(axis=1)) / 2
    # The map of the unit sphere has its area, 4 pi.
    np.testing.assert_allclose(areas, 4 * np.pi / len(cells), rtol=0.02)
    x, y, z = cells.centres.T
    middles = _mollweide(np.degrees(np.arctan2(y, x)), z)
    assert all(map(lambda outline, middle: Path(outline).contains_point(middle), outlines, middles))
