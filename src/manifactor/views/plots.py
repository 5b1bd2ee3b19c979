"""Drawings of fits and arrays, all in one style, and the files that they become.

The colours can be told apart in print and by colour-blind readers: purple to orange through white
for functions, viridis for intervals, a cyclic map for circles, and the palette of Okabe and Ito for
categories.

Each takes the Axes to draw on first, or as `ax=`, and returns them; without, it makes new ones of
pyplot. A `fit` is a fitted `ManifoldFactorizer`, and its factors count from 0.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial, wraps
from typing import Any

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.plugins import plugins
from manifactor._support.values import ceil_div
from manifactor.factors.factor import angle_matrix, owners
from manifactor.runs.places import Place
from manifactor.views.pictures import as_grey
from manifactor.views.pictures import write_movie as write_movie

# Okabe and Ito: the colours of factors, in order.
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FUNCTION_MAP, LINE_MAP, SHARE_MAP = "PuOr", "viridis", "Blues"
# Cyclic in hue and in lightness; no colour is lost on white or on black.
CYCLE = ("#2f7fc1", "#8fd0a8", "#dd7a25", "#6a3d6e", "#2f7fc1")
GREY = "#666666"
# Stands for the text colour of the page, which `svg` puts in its place.
INK = "#010203"
_LARGE = ("font.size", "axes.titlesize", "axes.labelsize")
_SMALL = ("xtick.labelsize", "ytick.labelsize", "legend.fontsize")
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
STYLE = {
    **dict.fromkeys(_LARGE, 8),
    **dict.fromkeys(_SMALL, 7),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    "pdf.fonttype": 42,  # letters stay letters
}
# What the colours of the samples on a factor show, by its topology. A surface has no single
# coordinate to colour by.
COLOURED = {"circle": "angle, degrees", "interval": "coordinate", "other": "first direction"}
# Of drawings among text of 16 pixels.
PAGE = {
    **STYLE,
    **dict.fromkeys(_LARGE, 9),
    **dict.fromkeys(_SMALL, 8.5),
    **dict.fromkeys(_INKED, INK),
    "svg.fonttype": "none",
    # Ids are hashes: with a fixed salt the same drawing gives the same bytes.
    "svg.hashsalt": "manifactor",
}
# Read as well on white as on black: contrast 4.3 and 4.9.
MIDDLE = "#7a7a7a"
# Of pictures without a background, which may be shown on either.
CLEAR = {**STYLE, **dict.fromkeys(_INKED, MIDDLE)}


@dataclass(frozen=True)
class PlotSettings:
    """Settings of the drawings."""

    # Dots per inch of .png files, and of the clouds of points inside drawings.
    resolution: int = 160

    # Of a histogram, along each axis.
    bins: int = 40


@contextmanager
def style(settings: dict = STYLE) -> Iterator[None]:
    """Draw and save in one style, whatever the user's own settings of matplotlib.

    Styles are `STYLE`, `PAGE`, of drawings that `svg` saves, and `CLEAR`.
    """
    matplotlib = extra("matplotlib")
    # Where figures are shown is the user's choice, and is no part of a style.
    chosen = {"backend", "interactive"}
    plain = {name: each for name, each in matplotlib.rcParamsDefault.items() if name not in chosen}
    with matplotlib.rc_context({**plain, **settings}):
        yield


def new_figure(width: float, height: float):
    """Return an empty Figure of that many inches, not registered with pyplot."""
    figure = extra("matplotlib.figure").Figure
    return figure(figsize=(width, height), layout="constrained")


def on_axes(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a drawing that returns its axes, which may be given first, by name or not at all."""

    @wraps(draw)
    def drawn(*given, ax=None, **named):
        if given and isinstance(given[0], extra("matplotlib.axes").Axes):
            ax, given = given[0], given[1:]
        if ax is None:
            ax = extra("matplotlib.pyplot").figure(layout="constrained").subplots()
        draw(ax, *given, **named)
        return ax

    return drawn


def colour_bar(ax, mappable, label: str):
    """Draw the scale of the colours beside the axes; return it."""
    bar = ax.figure.colorbar(mappable, ax=ax, label=label, shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    # An image, like the cloud: a dark page filters the colours of both alike.
    bar.solids.set_rasterized(True)
    return bar


def circle_map():
    """Return the colour map of coordinates on a circle, the same at both ends."""
    colours = extra("matplotlib.colors")
    return colours.LinearSegmentedColormap.from_list("cycle", CYCLE)


def colour(factor: int) -> str:
    """Return the colour of a factor, counted from 0; the same in all drawings."""
    return CATEGORIES[factor % len(CATEGORIES)]


def __getattr__(name: str) -> Any:
    if name not in plugins("plots"):
        raise AttributeError(f"module 'manifactor.plots' has no attribute {name!r}")
    return plugins("plots")[name].load()


# Of arrays.


# Points of a scatter plot: more take time and change nothing that is seen.
_MOST_POINTS = 10_000


@on_axes
def points(
    ax,
    xy: np.ndarray,
    values: np.ndarray,
    *,
    cmap=LINE_MAP,
    limits: tuple[float, float] | None = None,
    size: float = 1.5,
):
    """Draw samples, (n, 2), coloured by one value each.

    No axes are shown. More than 10,000 samples are thinned.

    Parameters
    ----------
    limits : (float, float) or None
        Values at the ends of the colour map; None for the smallest and the largest.
    size : float
        Area of a point, in square points.
    """
    low, high = limits or (values.min(), values.max())
    shown = _thinned(len(xy))
    # Ten thousand circles would make the file large and slow to show.
    look = {"cmap": cmap, "vmin": low, "vmax": high, "linewidths": 0, "rasterized": True}
    ax.scatter(*xy[shown].T, c=values[shown], s=size, **look)
    _bare(ax)


def drawn(n_samples: int) -> int:
    """Return how many of the samples `points` draws."""
    return len(range(n_samples)[_thinned(n_samples)])


def _thinned(n_samples: int) -> slice:
    """Return which samples are drawn: every so many, so that a drawing is the same each time."""
    return slice(None, None, ceil_div(n_samples, _MOST_POINTS))


def _bare(ax):
    """Return axes without their frame and ticks."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


@on_axes
def function(ax, xy: np.ndarray, values: np.ndarray, *, title: str = ""):
    """Draw a function over two true coordinates of the samples; zero is white."""
    # Not the largest value: a few large ones would leave the others pale. A function that is zero
    # everywhere still needs limits.
    most = float(np.quantile(np.abs(values), 0.99)) or 1.0
    points(ax, xy, values, cmap=FUNCTION_MAP, limits=(-most, most))
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
def matrix(ax, values: np.ndarray, *, groups: Sequence[int] = (), numbers: bool = False):
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
        # Light in dark cells. Not plain black and white, which `svg` would replace by the page's
        # colours: the cell is the background here, not the page.
        ink = "#fefefe" if value > 0.6 else "#111111"
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)
    ax.spines[:].set_visible(True)
    ax.tick_params(length=0)


@on_axes
def nothing(ax, text: str):
    """Write into empty axes why there is no drawing."""
    middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, text, color=GREY, fontsize=7, **middle)
    _bare(ax)


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
    _bare(ax).imshow(np.hstack(list(shown)), cmap="gray", interpolation="nearest")
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


# Of a fit.


# Length of a coordinate, what it is multiplied by to be shown, and its unit.
_DEGREES = ", degrees"
_DISPLAYED = {"circle": (2 * np.pi, 180 / np.pi, _DEGREES), "interval": (1.0, 1.0, "")}


@on_axes
def spectrum(ax, fit):
    """Draw the eigenvalues of a fit.

    Pure functions are filled, in the colour of their factor; the others are open. Both
    axes are logarithmic: pure functions are among the lowest of many. Eigenvalues below
    a millionth of the largest are drawn there.
    """
    # The constant function belongs to no factor.
    values = fit.spectrum_.eigenvalues[1:]
    # Eigenvalues of nearly separate components are 0 but for rounding.
    values = np.maximum(values, 1e-6 * values[-1])
    owner = owners(fit.spectrum_, fit.factorization_.coefficients)[1:]
    index = np.arange(1, len(values) + 1)
    # Above the others, which are many.
    filled = {"ms": 4, "mec": "none", "zorder": 3}
    empty = {"ms": 3, "mec": GREY, "mfc": "none", "mew": 0.6, "label": "products and mixtures"}
    for f in [*range(len(fit.factors_)), -1]:
        look = empty if f < 0 else {"color": colour(f), "label": f"factor {f + 1}", **filled}
        own = owner == f
        if own.any():
            ax.plot(index[own], values[own], marker="o", ls="none", **look)
    ax.set(xlabel="eigenfunction", ylabel="eigenvalue", xscale="log", yscale="log")
    # Eigenvalues rise: the upper left is free.
    ax.legend(frameon=False, loc="upper left", borderaxespad=0.0, handletextpad=0.0)


@on_axes
def angles(ax, fit):
    """Draw angles between gradients of the factors' functions.

    A cell is the mean squared cosine of two functions, ordered by factor.
    """
    values, sizes = angle_matrix(fit.spectrum_, fit.factorization_.coefficients)
    if not sizes:
        return nothing(ax, "the factors have no eigenfunctions\nof the data's own spectrum")
    matrix(ax, values, groups=sizes)
    middle = np.cumsum(sizes) - np.array(sizes) / 2 - 0.5
    ax.set(xlabel="factor", ylabel="factor")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(middle, range(1, len(sizes) + 1))
    colour_bar(ax, ax.images[-1], "squared cosine")


@on_axes
def embedding(
    ax, fit, factor: int, *, values: np.ndarray | None = None, label: str = "", scale: bool = True
):
    """Draw the samples on a factor.

    They are coloured by the coordinate, or by one value for each sample. Confidence is
    drawn upwards on an interval and outwards on a circle.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) or None
        What colours show; None for the coordinate.
    label : str
        What `values` are.
    scale : bool
        Whether the scale of the colours stands beside the cloud.
    """
    found = fit.factors_[factor]
    xy = found.embedding[:, :2]
    if found.topology == "circle":
        xy = xy * found.confidence[:, None]
    if xy.shape[1] == 1:
        # An interval leaves the second axis free.
        xy = np.column_stack([found.coordinate, found.confidence])
    cyclic = values is None and found.topology == "circle"
    if values is None:
        values = found.embedding[:, 0] if found.coordinate is None else found.coordinate
    # The cloud has 9000 square points (of 1/72 inch), so that few samples are seen as well as many.
    look: dict[str, Any] = {"size": float(np.clip(9000 / len(xy), 1.5, 5.0))}
    if cyclic:
        look |= {"cmap": circle_map(), "limits": (0, 2 * np.pi)}
    points(ax, xy, values, **look)
    ax.set_title(f"factor {factor + 1}: {found.shape}", color=colour(factor))
    if scale:
        bar = colour_bar(ax, ax.collections[-1], label or COLOURED[found.topology])
        if cyclic:
            quarters = np.arange(0, 361, 90)
            bar.set_ticks(np.radians(quarters), labels=quarters)
    if found.topology == "circle":
        limits = (-1.05, 1.05)
        ax.set(aspect="equal", xlim=limits, ylim=limits)
    if found.topology == "interval":
        ticks = (0, 0.5, 1)
        ax.set(xlabel="coordinate", ylabel="confidence")
        ax.set(xticks=ticks, yticks=ticks, ylim=(-0.03, 1.03))


@on_axes
def confidence(ax, fit, factor: int):
    """Draw the samples on a factor, coloured by confidence from 0 to 1."""
    sure = fit.factors_[factor].confidence
    embedding(ax, fit, factor, values=sure, label="confidence")
    # The same colours for every factor, however sure its coordinates are.
    ax.collections[-1].set_clim(0, 1)


@on_axes
def deviation(ax, place: Place):
    """Draw the deviation of every coordinate on a factor of a run of all views."""
    spread = place.displayed_deviation
    if spread is None:
        return nothing(ax, "the deviation of these coordinates is not known")
    cmap, ticks = LINE_MAP, np.array([0, 0.5, 1])
    if place.topology == "circle":
        cmap, ticks = circle_map(), np.arange(0, 361, 90)
    xy = np.column_stack([place.displayed, spread])
    points(ax, xy, place.displayed, cmap=cmap, limits=(0, ticks[-1]))
    *_, unit = _DISPLAYED[place.topology]
    ax.set(xlabel=f"coordinate{unit}", ylabel=f"deviation{unit}", ylim=(0, None), xticks=ticks)
    ax.yaxis.set_major_locator(extra("matplotlib.ticker").MaxNLocator(4))
    ax.spines[["left", "bottom"]].set_visible(True)


@on_axes
def landscape(ax, found, factors: Sequence[int] = (1,)):
    """Draw a free energy along one factor, with its error, or two."""
    pairs = zip(factors, found.centres, strict=True)
    names = [f"coordinate on factor {f}{_DEGREES if at[-1] > 1 else ''}" for f, at in pairs]
    if len(names) == 2:
        drawn = ax.pcolormesh(*found.centres, found.energy.T, cmap=LINE_MAP, rasterized=True)
        colour_bar(ax, drawn, "kT")
        ax.set(xlabel=names[0], ylabel=names[1])
        return
    at, line = found.centres[0], colour(factors[0] - 1)
    ax.plot(at, found.energy, color=line)
    low, high = found.energy - 2 * found.error, found.energy + 2 * found.error
    ax.fill_between(at, low, high, color=line, alpha=0.25, linewidth=0)
    ax.set(xlabel=names[0], ylabel="free energy, kT")


@on_axes
def coordinate(ax, fit, factor: int, *, settings: PlotSettings = PlotSettings()):
    """Draw the histogram of a factor's coordinate, of a circle in degrees."""
    found = fit.factors_[factor]
    if found.coordinate is None:
        return nothing(ax, f"factor {factor + 1} is {found.shape}\nand has no single coordinate")
    shown, limits, unit = _displayed(found)
    ax.hist(shown, bins=settings.bins, color=colour(factor), histtype="stepfilled")
    ax.set(xlabel=f"coordinate on factor {factor + 1}{unit}", ylabel="samples", xlim=limits)


def _displayed(factor) -> tuple[np.ndarray, tuple[float, float], str]:
    """Return a factor's coordinate as it is shown, its whole range and its unit."""
    length, scale, unit = _DISPLAYED[factor.topology]
    return factor.coordinate * scale, (0, scale * length), unit


@on_axes
def joint(ax, fit, one: int, other: int, *, settings: PlotSettings = PlotSettings()):
    """Draw the joint histogram of two factors' coordinates.

    It is even where the samples fill the product evenly.
    """
    pair = [fit.factors_[one], fit.factors_[other]]
    if any(found.coordinate is None for found in pair):
        return nothing(ax, "both factors must have a single coordinate")
    shown, limits, units = zip(*map(_displayed, pair), strict=True)
    # The whole range of both, so that empty regions are seen.
    look = {"cmap": SHARE_MAP, "rasterized": True}
    *_, counts = ax.hist2d(*shown, bins=settings.bins, range=limits, **look)
    whole = extra("matplotlib.ticker").MaxNLocator(5, integer=True)
    colour_bar(ax, counts, "samples").ax.yaxis.set_major_locator(whole)
    ax.set(xlabel=f"factor {one + 1}{units[0]}", ylabel=f"factor {other + 1}{units[1]}")


@on_axes
def warp(ax, fit):
    """Draw lengths along one factor over the coordinate on the other.

    They are relative to their mean, and 1 everywhere on a product. The fit must have the verdict
    "separable" and two factors.
    """
    if fit.verdict_ != "separable":
        raise ValueError(
            f"`fit` must have the verdict 'separable' to show how lengths change; got "
            f"{fit.verdict_!r}. Draw `plots.joint` or `plots.web` instead."
        )
    found = fit.evidence_.warp
    if found is None:
        raise ValueError(
            f"`fit` must have two factors to show how lengths change; got {len(fit.factors_)}. "
            "Draw `plots.joint` of two of them instead."
        )
    if not len(found.length):
        raise ValueError(
            f"{found} There is no curve of them over one coordinate. Draw `plots.web` instead."
        )
    base, other = found.factor - 1, 2 - found.factor
    length, scale, unit = _DISPLAYED[fit.factors_[base].topology]
    ax.axhline(1, color=GREY, linewidth=0.6, linestyle="--")
    ax.plot(found.coordinate * scale, found.length, color=colour(other), linewidth=1.5)
    ax.set(xlabel=f"coordinate on factor {base + 1}{unit}", xlim=(0, length * scale))
    ax.set(ylabel=f"length along factor {other + 1}, relative", ylim=(0, None))


@on_axes
def web(ax, fit, *, xy: np.ndarray | None = None):
    """Draw the samples and lines along two factors.

    A line has the colour of the factor that it follows; the coordinate on the other
    factor is constant on it, and lines are at even steps of that coordinate.

    Parameters
    ----------
    xy : ndarray of shape (n_samples, 2) or None
        Where samples are drawn; needed if distances were fitted. None for the columns of
        the samples if there are two, else for the first two principal components.
    """
    if len(fit.factors_) != 2 or any(factor.coordinate is None for factor in fit.factors_):
        return nothing(ax, "two factors must have a single coordinate each")
    if xy is None and fit.diffusion_.points is None:
        return nothing(ax, "distances do not tell where samples are drawn")
    xy = _plane(fit.diffusion_.points) if xy is None else np.asarray(xy, float)
    shown = _thinned(len(xy))
    ax.scatter(*xy[shown].T, s=1.5, color="#c8c8c8", linewidths=0, rasterized=True)
    # Fewer samples are predicted better, but leave lines rough.
    window = min(max(fit.inverse_neighbors(xy).value, 24), len(xy))
    for f, factor in enumerate(fit.factors_):
        # Not at the ends of an interval, where coordinates are least sure.
        n_lines = 16 if fit.factors_[1 - f].topology == "circle" else 6
        for place in fit.places_along(1 - f, 2 * n_lines + 1)[1::2]:
            line = fit.places_along(f, 120, others=place)
            line = np.vstack([line, line[:1]]) if factor.topology == "circle" else line[2:-2]
            drawn_at = fit.inverse_transform(line, values=xy, n_neighbors=window)
            ax.plot(*drawn_at.T, color=colour(f), linewidth=0.8)
    ax.set_aspect("equal")
    _bare(ax)


@on_axes
def torus(ax, fit, *, values: np.ndarray | None = None):
    """Draw the samples in the cell of a flat torus, to scale.

    Opposite sides of the cell, a parallelogram, are the same. The first angle of
    ``evidence_.symmetries`` grows to the right.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) or None
        Angles that the colours show; None for the first one of the torus.
    """
    found = fit.evidence_.symmetries
    if found is None or found.angles is None:
        raise ValueError("`fit` must have found a flat torus. Draw `plots.embedding` instead.")
    slant = np.radians(found.lattice_angle)
    periods = np.array([[found.ratio, 0], [np.cos(slant), np.sin(slant)]])
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) @ periods
    ax.plot(*corners.T, color=GREY, linewidth=0.6)
    xy = found.angles / (2 * np.pi) @ periods
    ax.set_aspect("equal")
    shown = found.angles[:, 0] if values is None else values
    points(ax, xy, shown, cmap=circle_map())


def loadings(fit, *, count: int = 12, shape=None, figure=None, settings: dict = STYLE):
    """Draw which columns each factor moves; return the figure.

    That is shares of the leading columns of each factor as bars, and their means along
    it, in standard deviations. Of images, it is the deviation of each pixel that is due to
    each factor: where it moves things.

    Parameters
    ----------
    fit : ManifoldFactorizer or Loadings
        Fitted, or what its `loadings` returned.
    count : int
        Columns at most.
    shape : tuple of int or None
        Height and width of the images that the columns are pixels of, and 3 if these have
        colours; None for the shape that the samples had.
    figure : Figure, SubFigure or None
        None for a new one.
    settings : dict
        Settings of matplotlib, as in `style`.
    """
    found = fit.loadings() if hasattr(fit, "loadings") else fit
    shape = shape or found.shape
    if len(shape) > 1:
        draws = _pixel_shares(found, shape)
        size = (1.9 * len(draws), 2.1)
    else:
        along = [f for f, curve in enumerate(found.curves) if curve is not None]
        draws = [partial(_column_shares, found=found, count=count)]
        draws += [partial(curves, fit=found, factor=f) for f in along]
        size = (3.3 + 2.7 * len(along), 2.9)
    with style(settings):
        figure = figure or new_figure(*size)
        _draw_row(figure, draws)
    return figure


def _draw_row(figure, draws: Sequence) -> None:
    for draw, ax in zip(draws, figure.subplots(1, len(draws), squeeze=False)[0], strict=True):
        draw(ax)


def _pixel_shares(found, shape: tuple[int, ...]) -> list:
    """Return functions that draw the deviation of pixels due to each factor, pair and noise."""
    parts = {f"factor {f + 1}": share for f, share in enumerate(found.shares.T)}
    pairs = zip(found.pairs, found.interactions.T, strict=True)
    parts |= {f"factors {f + 1} and {g + 1}": share for (f, g), share in pairs}
    parts["noise"] = found.noise
    total = found.variances.sum() or 1.0
    most = np.sqrt(found.variances.max()) or 1.0

    def draw(ax, name: str, share: np.ndarray) -> None:
        # Deviations, not variances: weak parts are seen beside strong ones.
        variances = (share * found.variances).reshape(*shape[:2], -1)
        image = np.sqrt(variances.mean(axis=2))
        ax.imshow(image, cmap=SHARE_MAP, vmin=0, vmax=most, interpolation="nearest")
        _bare(ax).set_title(f"{name}: {found.variances @ share / total:.0%}")

    return [partial(draw, name=name, share=share) for name, share in parts.items()]


def _column_shares(ax, found, count: int) -> None:
    """Draw shares of the leading columns: of factors in their colours, of pairs in grey."""
    n_factors = found.shares.shape[1]
    each = max(1, count // n_factors)
    leading = np.concatenate([found.leading(f, count=each) for f in range(n_factors)])
    shown = list(dict.fromkeys(leading.tolist()))
    left = np.zeros(len(shown))
    for f, share in enumerate([*found.shares.T, found.interactions.sum(axis=1)]):
        ink, label = (colour(f), f"factor {f + 1}") if f < n_factors else (GREY, "together")
        ax.barh(range(len(shown)), share[shown], left=left, height=0.7, color=ink, label=label)
        left += share[shown]
    names = [found.named(column) for column in shown]
    ax.set_yticks(range(len(shown)), [n if len(n) <= 24 else f"{n[:23]}…" for n in names])
    ax.invert_yaxis()
    ax.set(xlabel="share of the variance", xlim=(0, 1))
    _legend_above(ax, 3)


@on_axes
def curves(ax, fit, factor: int):
    """Draw the means of the columns that a factor moves most along it.

    They are in standard deviations of each column, with the other factors averaged over. The fit
    may be what its `loadings` returned.
    """
    found = fit.loadings() if hasattr(fit, "loadings") else fit
    along = found.coordinates[factor]
    if along is None:
        return nothing(ax, f"factor {factor + 1} has no single coordinate")
    circle = along[-1] > 1
    length, scale, unit = _DISPLAYED["circle" if circle else "interval"]
    for column, line in zip(found.leading(factor), ("-", "--", "-.", ":"), strict=False):
        curve = found.curves[factor][column]
        mean = (curve - curve.mean()) / np.sqrt(found.variances[column])
        look = {"color": colour(factor), "linestyle": line, "label": found.named(column)}
        # A circle's curve closes.
        ends = (np.append(along, length), np.append(mean, mean[0])) if circle else (along, mean)
        ax.plot(ends[0] * scale, ends[1], linewidth=1.2, **look)
    ax.set(xlabel=f"coordinate on factor {factor + 1}{unit}", xlim=(0, length * scale))
    ax.set(ylabel="mean, standard deviations")
    _legend_above(ax, 2)


def _legend_above(ax, n_columns: int) -> None:
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, ncols=n_columns, handlelength=2, columnspacing=1, **above)


def _plane(samples: np.ndarray) -> np.ndarray:
    """Return samples of two columns as they are, others by two principal components, (n, 2)."""
    if samples.shape[1] == 2:
        return samples
    centred = samples - samples.mean(axis=0)
    # The largest come last.
    return centred @ np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]


@on_axes
def bandwidth(ax, fit):
    """Draw the curve that bandwidth and dimension were read from."""
    curve = fit.bandwidth_curve_
    # The kernel sum grows as bandwidth^(dimension / 2), so twice its slope is the dimension.
    ax.semilogx(curve.candidates, 2 * curve.slopes, color=CATEGORIES[0], linewidth=1)
    ax.axvline(curve.value, color=CATEGORIES[1], linewidth=1)
    ax.annotate(f"chosen: {curve.value:.3g}", (curve.value, 0), (3, 3), textcoords="offset points")
    ax.set(xlabel="bandwidth", ylabel="slope of the kernel sum, times 2", ylim=(0, None))


# One figure of a whole fit: its factors above, what they were found by below.


def overview(fit, *, figure=None):
    """Draw a whole fit; return the figure.

    Above, the samples on each factor. Below, the spectrum and the angles between the
    factors' gradients, where the factors have functions of the spectrum; then the joint
    distribution of two coordinates, that of one, or the curve of the bandwidth. If images were
    fitted, in between, mean images along each factor.

    Parameters
    ----------
    figure : Figure, SubFigure or None
        None for a new one of pyplot.
    """
    count = len(fit.factors_)
    known = [f for f, factor in enumerate(fit.factors_) if factor.coordinate is not None]
    strips = known if fit.image_shape_ else []
    if figure is None:
        # Inches: a legend of three lines has room in a panel, and three panels in the least width.
        size = (max(7.6, 2.4 * count), 5.0 + 0.9 * len(strips))
        # Not in a style of ours, which would end with the settings of a backend that begins here.
        new = extra("matplotlib.pyplot").figure
        figure = new(figsize=size, layout="constrained", facecolor="white")
        figure._ipython_display_ = partial(_show_in_notebook, figure)
    with style():
        title = fit.evidence_.summary
        if "factor" not in title:
            title += f": {count} factor{'' if count == 1 else 's'}"
        figure.suptitle(title, fontsize=10)
        heights = [2.5, *[0.9] * len(strips), 2.5]
        above, *between, below = figure.subfigures(len(heights), 1, height_ratios=heights)
        for f, part in zip(strips, between, strict=True):
            ax = averages(part.subplots(), fit.along(f, 10))
            ax.set_title(f"along factor {f + 1}", color=colour(f))
        for number, ax in enumerate(above.subplots(1, count, squeeze=False)[0]):
            embedding(ax, fit, number, scale=False)
            if fit.factors_[number].coordinate is None:
                # Both directions of a surface have the same unit.
                ax.set_aspect("equal")
        _draw_row(below, _draws_below(fit))
    return figure


def _draws_below(fit) -> list:
    """Return functions that draw on the axes of the lower row."""
    _, sizes = angle_matrix(fit.spectrum_, fit.factorization_.coefficients)
    # Small histograms: a few samples in each cell of a joint one.
    small = PlotSettings(bins=24)
    known = [f for f, factor in enumerate(fit.factors_) if factor.coordinate is not None][:2]
    along = [partial(coordinate, fit=fit, factor=f, settings=small) for f in known]
    draws = [partial(spectrum, fit=fit)]
    if not sizes:
        # Factors of a sum own no functions of the spectrum.
        draws = along or draws
    elif len(sizes) > 1:
        draws.append(partial(angles, fit=fit))
    if len(known) > 1:
        one, other = known
        draws.append(partial(joint, fit=fit, one=one, other=other, settings=small))
    elif sizes:
        draws.append(along[0] if along else partial(bandwidth, fit=fit))
    return draws


def _show_in_notebook(figure) -> None:
    """Show a figure once: as the last line of a cell, or where the notebook shows all figures."""
    pyplot = extra("matplotlib.pyplot")
    if "inline" not in pyplot.get_backend() and pyplot.fignum_exists(figure.number):
        return  # it has a window
    with style():
        png = _file_bytes(figure, "png", PlotSettings())
    extra("IPython.display").display_png(png, raw=True)
    pyplot.close(figure)


# Figures as the bytes of picture files, and as SVG inside a page of HTML.


def picture(figure, *, settings: PlotSettings = PlotSettings()) -> dict[str, bytes]:
    """Return a figure as the bytes of a .pdf and of a .png file, by suffix.

    In the .pdf file text and lines are vectors; clouds of points are images.
    """
    figure.draw_without_rendering()
    # The layout is computed: once for both files.
    figure.set_layout_engine("none")
    # Without its date, the same figure gives the same bytes.
    vector = _file_bytes(figure, "pdf", settings, metadata={"CreationDate": None})
    pixels = io.BytesIO(_file_bytes(figure, "png", settings))
    image = extra("PIL.Image").open(pixels).convert("RGB")
    small = io.BytesIO()
    # One byte for each colour, with one value left for transparency.
    image.quantize(255, dither=0).save(small, format="PNG", optimize=True)
    return {".pdf": vector, ".png": small.getvalue()}


def clear_picture(figure, suffix: str, *, settings: PlotSettings = PlotSettings()) -> bytes:
    """Return a figure, drawn in the style `CLEAR`, as a .png, .svg or .pdf without background."""
    return _file_bytes(figure, suffix.removeprefix("."), settings, transparent=True)


def _file_bytes(figure, kind: str, settings: PlotSettings, **options) -> bytes:
    """Return a figure as the content of a file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=settings.resolution, **options)
    return buffer.getvalue()


def svg(figure, name: str, *, settings: PlotSettings = PlotSettings()) -> str:
    """Return a figure, drawn in the style `PAGE`, as an SVG element for a page of HTML.

    Text and axes take the text colour of the page. Factors and grey take its variables
    ``--category-1`` ... and ``--soft`` where it has them. The background is
    transparent. Clouds of points are images. The name is a prefix of the ids inside, so that
    those of two drawings in one page differ.
    """
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    text = _file_bytes(figure, "svg", settings, transparent=True, metadata=no_metadata).decode()
    # A style element would apply to the whole page.
    text = re.sub(r"<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = _with_prefixed_ids(text, name)
    # The last category is black, which is lost on a dark page.
    for number, category in enumerate(map(str.lower, CATEGORIES[:-1]), start=1):
        text = text.replace(category, f"var(--category-{number}, {category})")
    text = text.replace(GREY, f"var(--soft, {GREY})")
    text = text.replace(INK, "currentColor").replace("#000000", "currentColor")
    text = re.sub(r"(font: [^']*)'[^;\"]*", r"\1system-ui, sans-serif", text)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    # The element without its namespaces.
    body = text[text.index(">", text.index("<svg")) + 1 :].strip()
    body = re.sub(r"\n *", "\n", body)
    return f'<svg {box[0]} style="stroke-linejoin: round; fill: currentColor">{body}'


def _with_prefixed_ids(text: str, name: str) -> str:
    """Return the drawing with a prefix on ids that are referred to, and no others."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))

    def prefixed(found: re.Match) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    text = re.sub(r' id="([^"]*)"', prefixed, text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
