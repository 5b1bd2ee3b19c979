"""Drawings of arrays: clouds of points, functions, matrices, images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor._support.values import ceil_div
from manifactor.views.plots.style import (
    CATEGORIES,
    FUNCTION_MAP,
    GREY,
    LINE_MAP,
    SHARE_MAP,
    PlotSettings,
    circle_map,
    colour,
)


def points(
    ax,
    xy: np.ndarray,
    values: np.ndarray,
    *,
    cmap=LINE_MAP,
    limits: tuple[float, float] | None = None,
    size: float = 1.5,
    settings: PlotSettings = PlotSettings(),
):
    """Draw samples, (n, 2), coloured by one value each; return the Axes.

    No axes are shown. Samples beyond `settings.most_points` are thinned.

    Parameters
    ----------
    ax : Axes
    xy : ndarray of shape (n, 2)
    values : ndarray of shape (n,)
    cmap : str or Colormap
    limits : (float, float) or None
        Values at the ends of the colour map; None for the smallest and the largest.
    size : float
        Area of a point, in square points.
    settings : PlotSettings
    """
    low, high = limits or (values.min(), values.max())
    shown = _thinned(len(xy), settings)
    ax.scatter(
        *xy[shown].T,
        c=values[shown],
        s=size,
        cmap=cmap,
        vmin=low,
        vmax=high,
        linewidths=0,
        # Ten thousand circles would make the file large and slow to show.
        rasterized=True,
    )
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def drawn(n_samples: int, *, settings: PlotSettings = PlotSettings()) -> int:
    """Return how many of the samples `points` draws.

    Parameters
    ----------
    n_samples : int
    settings : PlotSettings
    """
    return len(range(n_samples)[_thinned(n_samples, settings)])


def _thinned(n_samples: int, settings: PlotSettings) -> slice:
    # Every so many, not at random: the same drawing each time.
    return slice(None, None, ceil_div(n_samples, settings.most_points))


def function(
    ax,
    xy: np.ndarray,
    values: np.ndarray,
    *,
    title: str = "",
    settings: PlotSettings = PlotSettings(),
):
    """Draw a function over two true coordinates of the samples; return the Axes.

    Zero is white.

    Parameters
    ----------
    ax : Axes
    xy : ndarray of shape (n, 2)
    values : ndarray of shape (n,)
    title : str
    settings : PlotSettings
    """
    # Not the largest value: a few large ones would leave the others pale. A function that is zero
    # everywhere still needs limits.
    most = float(np.quantile(np.abs(values), 0.99)) or 1.0
    points(ax, xy, values, cmap=FUNCTION_MAP, limits=(-most, most), settings=settings)
    ax.set_title(title, pad=2)
    return ax


def place(ax, embedding: np.ndarray, truth: np.ndarray):
    """Draw coordinates on a factor, coloured by the true ones; return the Axes.

    The colours are cyclic where the truth has the two columns of a circle. An embedding
    of a single column is drawn against the truth itself.

    Parameters
    ----------
    ax : Axes
    embedding : ndarray of shape (n, d)
    truth : ndarray of shape (n, 1) or (n, 2)
        An interval's latent, or a circle's cosine and sine.
    """
    circle = truth.shape[1] == 2
    colour = truth[:, -1]
    if circle:
        cosine, sine = truth.T
        colour = np.arctan2(sine, cosine)
    if embedding.shape[1] == 1:
        embedding = np.column_stack([colour, embedding])
    cmap = circle_map() if circle else LINE_MAP
    return points(ax, embedding[:, :2], colour, cmap=cmap)


def matrix(
    ax,
    values: np.ndarray,
    *,
    groups: Sequence[int] = (),
    numbers: bool = False,
    settings: PlotSettings = PlotSettings(),
):
    """Draw a matrix of numbers from 0 to 1; return the Axes.

    Parameters
    ----------
    ax : Axes
    values : ndarray of shape (n_rows, n_columns)
    groups : sequence of int
        Sizes of groups of rows, with lines between them.
    numbers : bool
        Whether to write the value into each cell.
    settings : PlotSettings
    """
    ax.imshow(
        values,
        cmap=SHARE_MAP,
        vmin=0,
        vmax=1,
        aspect="auto" if numbers else "equal",
        interpolation="nearest",
    )
    ax.set(xticks=[], yticks=[])
    # Cells are centred on whole numbers.
    for edge in np.cumsum(groups)[:-1] - 0.5:
        ax.axhline(edge, color=CATEGORIES[1], linewidth=1)
        if not numbers:
            ax.axvline(edge, color=CATEGORIES[1], linewidth=1)
    if numbers:
        _write_numbers(ax, values, settings)
    ax.spines[:].set_visible(True)
    ax.tick_params(length=0)
    return ax


def _write_numbers(ax, values: np.ndarray, settings: PlotSettings) -> None:
    for (row, column), value in np.ndenumerate(values):
        # Not plain black and white, which `svg` would replace by the page's colours: the cell is
        # the background here, not the page.
        colour = "#fefefe" if value > settings.dark_cell else "#111111"
        text = {"ha": "center", "va": "center", "fontsize": 6, "color": colour}
        ax.text(column, row, f"{value:.2f}", **text)


def nothing(ax, text: str):
    """Write into empty axes why there is no drawing; return the Axes.

    Parameters
    ----------
    ax : Axes
    text : str
    """
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, text, color=GREY, fontsize=7, **middle)
    return ax


def averages(ax, images: np.ndarray, *, labels: Sequence[str] = ()):
    """Draw mean images, (n, height, width), in one row and one scale of grey.

    Return the Axes.

    Parameters
    ----------
    ax : Axes
    images : ndarray of shape (n, height, width)
    labels : sequence of str
        One below each image, or none.
    """
    n, _, width = images.shape
    # One scale for all, so that brightness can be compared.
    row = np.hstack(list(images))
    ax.imshow(row, cmap="gray", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    if labels:
        middle = width * (np.arange(n) + 0.5)
        ax.set_xticks(middle - 0.5, labels)
    for edge in range(1, n):
        ax.axvline(edge * width - 0.5, color="white", linewidth=1)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


# Drawings of rates: how often answers are right.


@dataclass(frozen=True)
class Rate:
    """The share of answers that are right, at some confidence.

    Attributes
    ----------
    confidence : float
        Mean over the answers.
    rate : float
    low, high : float
        Ends of the confidence interval of the rate.
    """

    confidence: float
    rate: float
    low: float
    high: float


def reliability(ax, curves: Mapping[str, Sequence[Rate]]):
    """Draw the share of right answers over their confidence; return the Axes.

    Parameters
    ----------
    ax : Axes
    curves : mapping of str to sequence of Rate
        One curve for each name, in the colours of factors.
    """
    if not curves:
        return nothing(ax, "too few answers to draw")
    ends = (0, 1)
    # On the diagonal, the confidence is the probability of a right answer.
    label = "probability"
    ax.plot(ends, ends, color=GREY, linewidth=0.6, linestyle="--", label=label)
    for number, (name, rates) in enumerate(curves.items()):
        x, y, low, high = np.array(
            [(one.confidence, one.rate, one.low, one.high) for one in rates]
        ).T
        # At a rate of 0 or 1, rounding may leave the rate outside of its interval.
        beyond = np.clip([y - low, high - y], 0, None)
        drawn = {"marker": "o", "ms": 3, "lw": 1, "elinewidth": 0.6, "capsize": 2}
        ax.errorbar(x, y, yerr=beyond, color=colour(number), label=name, **drawn)
    limits = (-0.03, 1.03)
    ax.set(xlabel="confidence", ylabel="share that is right", xlim=limits, ylim=limits)
    ax.legend(frameon=False)
    return ax
