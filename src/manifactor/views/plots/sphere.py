"""Drawings of values on the sphere of viewing directions."""

from collections.abc import Sequence

import numpy as np

from manifactor._support.errors import extra
from manifactor.cryoem.directions import SphereCells
from manifactor.views.plots.style import LINE_MAP, MIDDLE


def sphere(
    ax,
    cells: SphereCells,
    values: np.ndarray,
    *,
    label: str = "particles in a cell",
    marks: Sequence[np.ndarray] = (),
):
    """Draw one value for each cell on Mollweide's map of the sphere; return the Axes.

    Areas are right everywhere on this map, and lines of equal tilt are straight. Cells
    whose value is not above 0 stay empty.

    Parameters
    ----------
    ax : Axes
    cells : SphereCells
    values : ndarray of shape (n_cells,)
    label : str
        Of the scale of colours.
    marks : sequence of ndarray of shape (3,)
        Directions to number, from 1.
    """
    filled = np.flatnonzero(values > 0)
    collection = extra("matplotlib.collections").PolyCollection(
        _outlines(*_bounds(cells, filled)),
        array=values[filled],
        cmap=LINE_MAP,
        edgecolors="face",
        linewidths=0.2,
    )
    # Colours start at 0: the shade of a cell is its share of the fullest.
    collection.set_clim(0, max(float(np.max(values, initial=0)), 1e-12))
    ax.add_collection(collection)
    _draw_grid(ax)
    for number, direction in enumerate(marks, start=1):
        _draw_mark(ax, direction, str(number))
    bar = ax.figure.colorbar(collection, ax=ax, label=label, shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    return ax


def mollweide(rot: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Return places on the map, (n, 2).

    Shapes: rot (n,), height (n,).
    """
    # The auxiliary angle t has 2 t + sin 2 t = pi cos(tilt), which a table inverts to 1e-8 of the
    # map's height.
    table = np.linspace(-np.pi / 2, np.pi / 2, 20_001)
    heights = (2 * table + np.sin(2 * table)) / np.pi
    auxiliary = np.interp(height, heights, table)
    x = 2 * np.sqrt(2) / np.pi * np.radians(rot) * np.cos(auxiliary)
    return np.column_stack([x, np.sqrt(2) * np.sin(auxiliary)])


def _bounds(cells: SphereCells, chosen: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the lowest and highest rot and cos(tilt) of cells."""
    ends = np.cumsum(cells.per_band)
    band = np.searchsorted(ends, chosen, side="right")
    count = cells.per_band[band]
    position = chosen - (ends[band] - count)
    left, right = (-180 + 360 * (position + side) / count for side in (0, 1))
    return left, right, cells.heights[band + 1], cells.heights[band]


def _outlines(
    left: np.ndarray, right: np.ndarray, bottom: np.ndarray, top: np.ndarray, *, n_points: int = 7
) -> np.ndarray:
    """Return the outlines of cells on the map, (n_cells, n_corners, 2)."""
    # Meridians are curved; parallels are straight, and need their ends only. Points are even in
    # tilt, as heights hardly change near the poles.
    tilts = np.linspace(np.arccos(bottom), np.arccos(top), n_points, axis=1)
    rots = np.repeat(np.column_stack([left, right]), n_points, axis=1)
    heights = np.cos(np.hstack([tilts, tilts[:, ::-1]]))
    # All cells at once: there are thousands.
    return mollweide(rots.ravel(), heights.ravel()).reshape(len(left), -1, 2)


def _draw_grid(ax) -> None:
    """Draw meridians and parallels, with rot and tilt along the axes."""
    tilts, rots = np.arange(0, 181, 30), np.arange(-180, 181, 60)
    heights = np.cos(np.radians(np.linspace(0, 180, 91)))
    for rot in rots:
        line = mollweide(np.full(len(heights), rot), heights)
        edge = abs(rot) == 180
        ax.plot(*line.T, color=MIDDLE, linewidth=0.8 if edge else 0.3)
    for tilt in tilts[1:-1]:
        height = np.cos(np.radians([tilt, tilt]))
        ax.plot(*mollweide(np.array([-180, 180]), height).T, color=MIDDLE, linewidth=0.3)
    x = mollweide(rots, np.zeros(len(rots)))[:, 0]
    y = mollweide(np.zeros(len(tilts)), np.cos(np.radians(tilts)))[:, 1]
    ax.set_xticks(x, rots)
    ax.set_yticks(y, tilts)
    ax.set(xlabel="rot on the equator, degrees", ylabel="tilt, degrees")
    ax.set(aspect="equal", xlim=(-2.9, 2.9), ylim=(-1.45, 1.45))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _draw_mark(ax, direction: np.ndarray, text: str) -> None:
    """Write a number at a direction, with an outline that is seen on every colour."""
    x, y, z = direction
    place = mollweide(np.degrees(np.arctan2([y], [x])), np.array([z]))[0]
    effects = extra("matplotlib.patheffects")
    outline = effects.withStroke(linewidth=1.8, foreground="#222222")
    middle = {"ha": "center", "va": "center", "fontsize": 8, "color": "#fefefe"}
    ax.text(*place, text, path_effects=[outline], **middle)
