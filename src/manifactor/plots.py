"""Pictures of functions, places and matrices: drawn on the caller's axes, in one style.

The colours are told apart in print and by the colour-blind: purple to orange through white for functions, viridis for
lines, a cyclic map for circles, Okabe and Ito's palette for categories.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from manifactor.extras import extra

CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FUNCTION_MAP, LINE_MAP, CIRCLE_MAP, SHARE_MAP = "PuOr", "viridis", "twilight", "Blues"
GREY = "#666666"
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
RESOLUTION = 160  # dots per inch of pictures, and of what is rastered inside drawings
MOST_POINTS = 10_000  # points of a scatter plot; more only take time
PALETTE = 255  # colours of a .png


@contextmanager
def style() -> Iterator[None]:
    """Everything drawn and saved inside looks alike."""
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):  # whatever the user's own settings are
        yield


def new_figure(width: float, height: float):
    """An empty figure of so many inches, of which no global state knows."""
    return extra("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def picture(figure) -> dict[str, bytes]:
    """The figure as the bytes of a .pdf (letters and lines as such, clouds of points rastered) and of a .png."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is made, once for both
    vector, pixels, small = io.BytesIO(), io.BytesIO(), io.BytesIO()
    figure.savefig(vector, format="pdf", dpi=RESOLUTION, metadata={"CreationDate": None})
    figure.savefig(pixels, format="png", dpi=RESOLUTION)
    image = extra("PIL.Image").open(pixels).convert("RGB")
    image.quantize(PALETTE, dither=0).save(small, format="PNG", optimize=True)
    return {".pdf": vector.getvalue(), ".png": small.getvalue()}


def points(ax, xy: np.ndarray, values: np.ndarray, *, cmap: str = LINE_MAP, limits=None, size: float = 1.5):
    """Draw samples, (n, 2), coloured by a value each, without axes; returns the Axes."""
    low, high = limits or (values.min(), values.max())
    shown = slice(None, None, -(-len(xy) // MOST_POINTS))
    ax.scatter(*xy[shown].T, c=values[shown], s=size, cmap=cmap, vmin=low, vmax=high, linewidths=0, rasterized=True)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def function(ax, xy: np.ndarray, values: np.ndarray, *, title: str = ""):
    """Draw a function over two true coordinates of the samples, zero in white; returns the Axes."""
    most = float(np.quantile(np.abs(values), 0.99)) or 1.0
    points(ax, xy, values, cmap=FUNCTION_MAP, limits=(-most, most))
    ax.set_title(title, pad=2)
    return ax


def place(ax, embedding: np.ndarray, truth: np.ndarray):
    """Draw places on a factor coloured by the true ones, cyclic where the truth is a circle; returns the Axes.

    A single column is drawn against the truth itself.
    """
    circle = truth.shape[1] == 2
    colour = np.arctan2(truth[:, 1], truth[:, 0]) if circle else truth[:, -1]
    if embedding.shape[1] == 1:
        embedding = np.column_stack([colour, embedding])
    return points(ax, embedding[:, :2], colour, cmap=CIRCLE_MAP if circle else LINE_MAP)


def matrix(ax, values: np.ndarray, *, groups: Sequence[int] = (), numbers: bool = False):
    """Draw a matrix of numbers from 0 to 1 with lines between groups of rows; returns the Axes."""
    ax.imshow(values, cmap=SHARE_MAP, vmin=0, vmax=1, aspect="auto" if numbers else "equal", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for edge in np.cumsum(groups)[:-1] - 0.5:
        ax.axhline(edge, color=CATEGORIES[1], linewidth=1)
        if not numbers:
            ax.axvline(edge, color=CATEGORIES[1], linewidth=1)
    if numbers:
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if value > 0.6 else "black"
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=6, color=colour)
    ax.spines[:].set_visible(True)
    ax.tick_params(length=0)
    return ax


def nothing(ax, text: str):
    """Write into empty axes why there is no picture; returns the Axes."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.text(0.5, 0.5, text, ha="center", va="center", color=GREY, fontsize=7, transform=ax.transAxes)
    return ax
