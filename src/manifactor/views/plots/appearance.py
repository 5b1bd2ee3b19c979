"""Colours, fonts and sizes of all drawings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from manifactor._support.extras import extra

# Okabe and Ito: the colours of factors, in order.
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FUNCTION_MAP, LINE_MAP, SHARE_MAP = "PuOr", "viridis", "Blues"
# Cyclic in hue and in lightness; no colour is lost on white or on black.
CYCLE = ("#2f7fc1", "#8fd0a8", "#dd7a25", "#6a3d6e", "#2f7fc1")
GREY = "#666666"
# Stands for the text colour of the page, which `svg` puts in its place.
INK = "#010203"
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,  # letters stay letters
}
# Of drawings among text of 16 pixels.
PAGE = {
    **STYLE,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    # Ids are hashes: with a fixed salt the same drawing gives the same bytes.
    "svg.hashsalt": "manifactor",
}
# Read as well on white as on black: contrast 4.3 and 4.9.
MIDDLE = "#7a7a7a"
# Of pictures without a background, which may be shown on either.
CLEAR = {
    **STYLE,
    "text.color": MIDDLE,
    "axes.edgecolor": MIDDLE,
    "axes.labelcolor": MIDDLE,
    "xtick.color": MIDDLE,
    "ytick.color": MIDDLE,
}


@dataclass(frozen=True)
class PlotSettings:
    """Settings of the drawings."""

    # Dots per inch of .png files, and of the clouds of points inside drawings.
    resolution: int = 160

    # Colours of a .png file. One byte each, with one value left for transparency.
    palette: int = 255

    # Points of a scatter plot: more take time and change nothing that is seen.
    most_points: int = 10_000

    # Area of all points of a cloud together, in square points of a seventy-second of an inch, so
    # that few samples are seen as well as many; bounds of one point's.
    cloud_area: float = 9000
    smallest_point: float = 1.5
    largest_point: float = 5.0

    # Of a histogram, along each axis.
    bins: int = 40

    # The colours of a function end at this quantile of its absolute values: a few large values
    # would leave the others pale.
    function_quantile: float = 0.99

    # Share above which a cell of a matrix is so dark that its number is light.
    dark_cell: float = 0.6


@contextmanager
def style(settings: dict = STYLE) -> Iterator[None]:
    """Draw and save in one style, whatever the user's own settings of matplotlib.

    `PAGE` is the style of drawings that `svg` saves.

    Parameters
    ----------
    settings : dict
        Settings of matplotlib, such as `STYLE`, `PAGE` or `CLEAR`.
    """
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **settings}):
        yield


def new_figure(width: float, height: float):
    """Return an empty Figure of that many inches, not registered with pyplot."""
    figure = extra("matplotlib.figure").Figure
    return figure(figsize=(width, height), layout="constrained")


def circle_map():
    """Return the colour map of places on a circle, the same at both ends."""
    colours = extra("matplotlib.colors")
    return colours.LinearSegmentedColormap.from_list("cycle", CYCLE)


def colour(factor: int) -> str:
    """Return the colour of a factor, counted from 0; the same in all drawings."""
    return CATEGORIES[factor % len(CATEGORIES)]
