"""Mollweide's map of the sphere of viewing directions."""

from collections.abc import Sequence

import numpy as np

from manifactor._support.errors import extra
from manifactor.cryoem.directions import SphereCells
from manifactor.views.plots import LINE_MAP, MIDDLE, colour_bar, on_axes


@on_axes
def sphere(
    ax,
    cells: SphereCells,
    values: np.ndarray,
    *,
    label: str = "particles in a cell",
    marks: Sequence[np.ndarray] = (),
):
    """Draw one value for each cell on Mollweide's map of the sphere.

    Areas are right everywhere on this map, and lines of equal tilt are straight. Cells
    whose value is not above 0 stay empty.

    Parameters
    ----------
    label : str
        Of the scale of colours.
    marks : sequence of ndarray of shape (3,)
        Directions to number, from 1.
    """
    filled = np.flatnonzero(values > 0)
    look = {"cmap": LINE_MAP, "edgecolors": "face", "linewidths": 0.2}
    polygons = extra("matplotlib.collections").PolyCollection
    collection = polygons(_outlines(cells, filled), array=values[filled], **look)
    # Colours start at 0: the shade of a cell is its share of the fullest.
    collection.set_clim(0, max(float(np.max(values, initial=0)), 1e-12))
    ax.add_collection(collection)
    _draw_grid(ax)
    # An outline is seen on every colour.
    outline = extra("matplotlib.patheffects").withStroke(linewidth=1.8, foreground="#222222")
    look = {"fontsize": 8, "color": "#fefefe", "path_effects": [outline]}
    look |= {"ha": "center", "va": "center"}
    for number, (x, y, z) in enumerate(marks, start=1):
        ax.text(*_mollweide(np.degrees(np.arctan2(y, x)), z), str(number), **look)
    colour_bar(ax, collection, label)


def _mollweide(rot, height) -> np.ndarray:
    """Return places on the map, (..., 2), of degrees and of cosines of the tilt."""
    # The auxiliary angle t has 2 t + sin 2 t = pi cos(tilt), which a table inverts to 1e-8 of the
    # map's height.
    table = np.linspace(-np.pi / 2, np.pi / 2, 20_001)
    heights = (2 * table + np.sin(2 * table)) / np.pi
    auxiliary = np.interp(height, heights, table)
    x = 2 * np.sqrt(2) / np.pi * np.radians(rot) * np.cos(auxiliary)
    return np.stack(np.broadcast_arrays(x, np.sqrt(2) * np.sin(auxiliary)), axis=-1)


def _outlines(cells: SphereCells, chosen: np.ndarray) -> np.ndarray:
    """Return the outlines of cells on the map, (n_cells, n_corners, 2)."""
    ends = np.cumsum(cells.per_band)
    band = np.searchsorted(ends, chosen, side="right")
    count = cells.per_band[band]
    position = chosen - (ends[band] - count)
    sides = [-180 + 360 * (position + side) / count for side in (0, 1)]
    # Meridians are curved; parallels are straight, and need their ends only. Points are even in
    # tilt, as heights hardly change near the poles.
    n_points = 7
    bottom, top = np.arccos(cells.heights[band + 1]), np.arccos(cells.heights[band])
    tilts = np.linspace(bottom, top, n_points, axis=1)
    rots = np.repeat(np.column_stack(sides), n_points, axis=1)
    # All cells at once: there are thousands.
    return _mollweide(rots, np.cos(np.hstack([tilts, tilts[:, ::-1]])))


def _draw_grid(ax) -> None:
    """Draw meridians and parallels, with rot and tilt along the axes."""
    tilts, rots = np.arange(0, 181, 30), np.arange(-180, 181, 60)
    heights = np.cos(np.radians(tilts))
    along = np.cos(np.radians(np.linspace(0, 180, 91)))
    for rot in rots:
        edge = abs(rot) == 180
        ax.plot(*_mollweide(rot, along).T, color=MIDDLE, linewidth=0.8 if edge else 0.3)
    for height in heights[1:-1]:
        ax.plot(*_mollweide([-180, 180], height).T, color=MIDDLE, linewidth=0.3)
    ax.set_xticks(_mollweide(rots, 0)[:, 0], rots)
    ax.set_yticks(_mollweide(0, heights)[:, 1], tilts)
    ax.set(xlabel="rot on the equator, degrees", ylabel="tilt, degrees")
    ax.set(aspect="equal", xlim=(-2.9, 2.9), ylim=(-1.45, 1.45))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
