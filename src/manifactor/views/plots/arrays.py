"""Drawings of arrays: clouds of points, functions, matrices, images, rates, the sphere."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from manifactor._support.values import ceil_div
from manifactor.views.pictures import as_grey
from manifactor.views.plots.styles import (
    CATEGORIES,
    FUNCTION_MAP,
    GREY,
    LINE_MAP,
    SHARE_MAP,
    PlotSettings,
    circle_map,
    colour,
    on_axes,
)


def bare(ax):
    """Return axes without their frame and ticks."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


@on_axes
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
    """Draw samples, (n, 2), coloured by one value each.

    No axes are shown. Samples beyond `settings.most_points` are thinned.

    Parameters
    ----------
    limits : (float, float) or None
        Values at the ends of the colour map; None for the smallest and the largest.
    size : float
        Area of a point, in square points.
    """
    low, high = limits or (values.min(), values.max())
    shown = thin(len(xy), settings)
    # Ten thousand circles would make the file large and slow to show.
    look = {"cmap": cmap, "vmin": low, "vmax": high, "linewidths": 0, "rasterized": True}
    ax.scatter(*xy[shown].T, c=values[shown], s=size, **look)
    bare(ax)


def drawn(n_samples: int, *, settings: PlotSettings = PlotSettings()) -> int:
    """Return how many of the samples `points` draws."""
    return len(range(n_samples)[thin(n_samples, settings)])


def thin(n_samples: int, settings: PlotSettings) -> slice:
    """Return which samples are drawn: every so many, so that a drawing is the same each time."""
    return slice(None, None, ceil_div(n_samples, settings.most_points))


@on_axes
def function(
    ax,
    xy: np.ndarray,
    values: np.ndarray,
    *,
    title: str = "",
    settings: PlotSettings = PlotSettings(),
):
    """Draw a function over two true coordinates of the samples; zero is white."""
    # Not the largest value: a few large ones would leave the others pale. A function that is zero
    # everywhere still needs limits.
    most = float(np.quantile(np.abs(values), 0.99)) or 1.0
    points(ax, xy, values, cmap=FUNCTION_MAP, limits=(-most, most), settings=settings)
    ax.set_title(title, pad=2)


@on_axes
def place(ax, embedding: np.ndarray, truth: np.ndarray):
    """Draw coordinates on a factor, coloured by the true ones.

    The colours are cyclic where the truth has the two columns of a circle. An embedding
    of a single column is drawn against the truth itself.

    Parameters
    ----------
    truth : ndarray of shape (n, 1) or (n, 2)
        An interval's latent, or a circle's cosine and sine.
    """
    cmap, latent = LINE_MAP, truth[:, -1]
    if truth.shape[1] == 2:
        cosine, sine = truth.T
        cmap, latent = circle_map(), np.arctan2(sine, cosine)
    if embedding.shape[1] == 1:
        embedding = np.column_stack([latent, embedding])
    points(ax, embedding[:, :2], latent, cmap=cmap)


@on_axes
def matrix(
    ax,
    values: np.ndarray,
    *,
    groups: Sequence[int] = (),
    numbers: bool = False,
    settings: PlotSettings = PlotSettings(),
):
    """Draw a matrix of numbers from 0 to 1.

    Parameters
    ----------
    groups : sequence of int
        Sizes of groups of rows, with lines between them.
    numbers : bool
        Whether to write the value into each cell.
    """
    look = {"cmap": SHARE_MAP, "vmin": 0, "vmax": 1, "interpolation": "nearest"}
    ax.imshow(values, aspect="auto" if numbers else "equal", **look)
    ax.set(xticks=[], yticks=[])
    # Cells are centred on whole numbers.
    for edge in np.cumsum(groups)[:-1] - 0.5:
        ax.axhline(edge, color=CATEGORIES[1], linewidth=1)
        if not numbers:
            ax.axvline(edge, color=CATEGORIES[1], linewidth=1)
    for (row, column), value in np.ndenumerate(values) if numbers else ():
        # Not plain black and white, which `svg` would replace by the page's colours: the cell is
        # the background here, not the page.
        ink = "#fefefe" if value > settings.dark_cell else "#111111"
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)
    ax.spines[:].set_visible(True)
    ax.tick_params(length=0)


@on_axes
def nothing(ax, text: str):
    """Write into empty axes why there is no drawing."""
    middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, text, color=GREY, fontsize=7, **middle)
    bare(ax)


@on_axes
def averages(ax, images: np.ndarray, *, labels: Sequence[str] = ()):
    """Draw mean images in one row, and one scale of grey or of colours.

    Parameters
    ----------
    labels : sequence of str
        One below each image, or none.
    """
    n, _, width = images.shape[:3]
    # One scale for all, so that brightness can be compared.
    shown = as_grey(images) if images.ndim == 4 else images
    bare(ax).imshow(np.hstack(list(shown)), cmap="gray", interpolation="nearest")
    if labels:
        ax.set_xticks(width * (np.arange(n) + 0.5) - 0.5, labels)
    for edge in range(1, n):
        ax.axvline(edge * width - 0.5, color="white", linewidth=1)
    ax.tick_params(length=0)


@dataclass(frozen=True)
class Rate:
    """The share of answers that are right, at some probability.

    Attributes
    ----------
    probability : float
        Mean over the answers.
    rate : float
    low, high : float
        Ends of the confidence interval of the rate.
    """

    probability: float
    rate: float
    low: float
    high: float


@on_axes
def reliability(ax, curves: Mapping[str, Sequence[Rate]]):
    """Draw the share of right answers over their probability.

    Parameters
    ----------
    curves : mapping of str to sequence of Rate
        One curve for each name, in the colours of factors.
    """
    if not curves:
        return nothing(ax, "too few answers to draw")
    # On the diagonal, the probability is right.
    ax.plot((0, 1), (0, 1), color=GREY, linewidth=0.6, linestyle="--", label="as it should be")
    for number, (name, rates) in enumerate(curves.items()):
        x, y, low, high = np.array([astuple(rate) for rate in rates]).T
        # At a rate of 0 or 1, rounding may leave the rate outside of its interval.
        beyond = np.clip([y - low, high - y], 0, None)
        look = {"marker": "o", "ms": 3, "lw": 1, "elinewidth": 0.6, "capsize": 2}
        ax.errorbar(x, y, yerr=beyond, color=colour(number), label=name, **look)
    limits = (-0.03, 1.03)
    ax.set(xlabel="probability", ylabel="share that is right", xlim=limits, ylim=limits)
    ax.legend(frameon=False)
