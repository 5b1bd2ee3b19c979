"""Drawings of a fit: its spectrum, its factors, and its bandwidth."""

import io
from functools import partial

import numpy as np

from manifactor._support.errors import extra
from manifactor.factoring.factor import angle_matrix, owners
from manifactor.runs.places import Place
from manifactor.views.plots.arrays import matrix, nothing, points
from manifactor.views.plots.style import (
    CATEGORIES,
    GREY,
    LINE_MAP,
    SHARE_MAP,
    PlotSettings,
    circle_map,
    colour,
    new_figure,
    style,
)

# What a coordinate is multiplied by to be shown, and its unit.
DISPLAYED = {"circle": (180 / np.pi, ", degrees"), "interval": (1.0, "")}


def spectrum(ax, fit):
    """Draw the eigenvalues of a fit; return the Axes.

    Pure functions are filled, in the colour of their factor; the others are open. Both
    axes are logarithmic: pure functions are among the lowest of many. Eigenvalues below
    a millionth of the largest are drawn there.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer
        Fitted.
    """
    # The constant function belongs to no factor.
    values = fit.spectrum_.eigenvalues[1:]
    # Eigenvalues of nearly separate components are 0 but for rounding.
    values = np.maximum(values, 1e-6 * values[-1])
    owner = owners(fit.spectrum_, fit.factors_)[1:]
    index = np.arange(1, len(values) + 1)
    # Above the others, which are many.
    filled = {"marker": "o", "ls": "none", "ms": 4, "mec": "none", "zorder": 3}
    for f in range(len(fit.factors_)):
        own = owner == f
        label = f"factor {f + 1}"
        ax.plot(index[own], values[own], color=colour(f), label=label, **filled)
    others = owner < 0
    empty = {"marker": "o", "ls": "none", "ms": 3, "mfc": "none", "mew": 0.6}
    label = "products and mixtures"
    ax.plot(index[others], values[others], mec=GREY, label=label, **empty)
    ax.set(xlabel="eigenfunction", ylabel="eigenvalue", xscale="log", yscale="log")
    ax.legend(frameon=False)
    return ax


def angles(ax, fit):
    """Draw angles between gradients of the factors' functions; return the Axes.

    A cell is the mean squared cosine of two functions, ordered by factor.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer
        Fitted.
    """
    values, sizes = angle_matrix(fit.spectrum_, fit.factors_)
    if not sizes:
        return nothing(ax, "the factors have no eigenfunctions\nof the data's own spectrum")
    matrix(ax, values, groups=sizes)
    middle = np.cumsum(sizes) - np.array(sizes) / 2 - 0.5
    numbered = enumerate(fit.factors_, start=1)
    # Factors of a sum have functions of their own, and no row here.
    names = [number for number, factor in numbered if len(factor.coefficients)]
    ax.set_xticks(middle, names)
    ax.set_yticks(middle, names)
    ax.set(xlabel="factor", ylabel="factor")
    return ax


def embedding(
    ax,
    fit,
    factor: int,
    *,
    values: np.ndarray | None = None,
    settings: PlotSettings = PlotSettings(),
):
    """Draw the samples on a factor; return the Axes.

    They are coloured by the coordinate, or by one value for each sample. Confidence is
    drawn upwards on an interval and outwards on a circle.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer
        Fitted.
    factor : int
        Counted from 0.
    values : ndarray of shape (n_samples,) or None
        What colours show; None for the coordinate.
    settings : PlotSettings
    """
    found = fit.factors_[factor]
    xy = _plane(found)
    cyclic = values is None and found.topology == "circle"
    cmap = circle_map() if cyclic else LINE_MAP
    if values is None:
        values = found.embedding[:, 0] if found.coordinate is None else found.coordinate
    # The cloud has 9000 square points (of 1/72 inch), so that few samples are seen as well as many.
    size = float(np.clip(9000 / len(xy), 1.5, 5.0))
    points(ax, xy, values, cmap=cmap, size=size, settings=settings)
    ax.set_title(f"factor {factor + 1}: {found.shape}", color=colour(factor))
    if found.topology == "circle":
        limits = (-1.05, 1.05)
        ax.set(aspect="equal", xlim=limits, ylim=limits)
    if found.topology == "interval":
        ticks = (0, 0.5, 1)
        ax.set(xlabel="coordinate", ylabel="confidence")
        ax.set(xticks=ticks, yticks=ticks, ylim=(-0.03, 1.03))
    return ax


def _plane(factor) -> np.ndarray:
    """Return where a factor's samples are drawn, (n, 2)."""
    # An interval leaves the second axis free.
    if factor.embedding.shape[1] == 1:
        return np.column_stack([factor.coordinate, factor.confidence])
    xy = factor.embedding[:, :2]
    return xy * factor.confidence[:, None] if factor.topology == "circle" else xy


def confidence(ax, fit, factor: int, *, settings: PlotSettings = PlotSettings()):
    """Draw the samples on a factor, coloured by confidence from 0 to 1; return the Axes.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer
        Fitted.
    factor : int
        Counted from 0.
    settings : PlotSettings
    """
    found = fit.factors_[factor]
    embedding(ax, fit, factor, values=found.confidence, settings=settings)
    # The same colours for every factor, however sure its coordinates are.
    ax.collections[-1].set_clim(0, 1)
    return ax


def deviation(ax, place: Place, *, settings: PlotSettings = PlotSettings()):
    """Draw the deviation of every coordinate on a factor; return the Axes.

    Coloured by the coordinate, as in `embedding`.

    Parameters
    ----------
    ax : Axes
    place : Place
        Of a run of all views.
    settings : PlotSettings
    """
    spread = place.displayed_deviation
    if spread is None:
        return nothing(ax, "the deviation of these coordinates is not known")
    circle = place.topology == "circle"
    points(
        ax,
        np.column_stack([place.displayed, spread]),
        place.displayed,
        cmap=circle_map() if circle else LINE_MAP,
        limits=(0, 360) if circle else (0, 1),
        settings=settings,
    )
    unit = DISPLAYED[place.topology][1]
    ax.set(xlabel=f"coordinate{unit}", ylabel=f"deviation{unit}", ylim=(0, None))
    ax.set_xticks(np.arange(0, 361, 90) if circle else (0, 0.5, 1))
    ax.yaxis.set_major_locator(extra("matplotlib.ticker").MaxNLocator(4))
    ax.spines[["left", "bottom"]].set_visible(True)
    return ax


def coordinate(ax, fit, factor: int, *, settings: PlotSettings = PlotSettings()):
    """Draw the histogram of a factor's coordinate; return the Axes.

    A circle's coordinate is shown in degrees.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer
        Fitted.
    factor : int
        Counted from 0.
    settings : PlotSettings
    """
    found = fit.factors_[factor]
    if found.coordinate is None:
        text = f"factor {factor + 1} is {found.shape}\nand has no single coordinate"
        return nothing(ax, text)
    scale, unit = DISPLAYED[found.topology]
    shown = found.coordinate * scale
    ax.hist(shown, bins=settings.bins, color=colour(factor), histtype="stepfilled")
    label = f"coordinate on factor {factor + 1}{unit}"
    ax.set(xlabel=label, ylabel="samples", xlim=(0, scale * length(found)))
    return ax


def joint(ax, fit, one: int, other: int, *, settings: PlotSettings = PlotSettings()):
    """Draw the joint histogram of two factors' coordinates; return the Axes.

    It is even where the samples fill the product evenly.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer
        Fitted.
    one, other : int
        Two factors, counted from 0.
    settings : PlotSettings
    """
    pair = [fit.factors_[one], fit.factors_[other]]
    if any(found.coordinate is None for found in pair):
        return nothing(ax, "both factors must have a single coordinate")
    x, y = pair
    x_scale, x_unit = DISPLAYED[x.topology]
    y_scale, y_unit = DISPLAYED[y.topology]
    ax.hist2d(
        x.coordinate * x_scale,
        y.coordinate * y_scale,
        bins=settings.bins,
        # The whole range of both, so that empty regions are seen.
        range=[[0, x_scale * length(x)], [0, y_scale * length(y)]],
        cmap=SHARE_MAP,
        rasterized=True,
    )
    ax.set_xlabel(f"factor {one + 1}{x_unit}")
    ax.set_ylabel(f"factor {other + 1}{y_unit}")
    return ax


def bandwidth(ax, fit):
    """Draw the curve that bandwidth and dimension were read from; return the Axes.

    Parameters
    ----------
    ax : Axes
    fit : ManifoldFactorizer or DiffusionMap
        Fitted.
    """
    curve = fit.bandwidth_curve_
    # The kernel sum grows as bandwidth^(dimension / 2), so twice its slope is the dimension.
    dimension = 2 * curve.slopes
    ax.semilogx(curve.candidates, dimension, color=CATEGORIES[0], linewidth=1)
    ax.axvline(curve.value, color=CATEGORIES[1], linewidth=1)
    ax.annotate(f"chosen: {curve.value:.3g}", (curve.value, 0), (3, 3), textcoords="offset points")
    ax.set(xlabel="bandwidth", ylabel="slope of the kernel sum, times 2")
    ax.set_ylim(0, None)
    return ax


def length(factor) -> float:
    """Return the length of a factor's coordinate: 2 pi on a circle, else 1."""
    return 2 * np.pi if factor.topology == "circle" else 1.0


# One figure of a whole fit: its factors above, what they were found by below.


def overview(fit, *, figure=None):
    """Draw a whole fit; return the figure.

    Above, the samples on each factor. Below, the spectrum and the angles between the
    factors' gradients, where the factors have functions of the spectrum; then the joint
    distribution of two coordinates, that of one, or the curve of the bandwidth.

    Parameters
    ----------
    fit : ManifoldFactorizer
    figure : Figure, SubFigure or None
        None for a new one.
    """
    with style():
        whole = _shown(fit) if figure is None else figure
        count = len(fit.factors_)
        verdict = f"{fit.verdict_}: {count} {'factor' if count == 1 else 'factors'}"
        whole.suptitle(verdict, fontsize=10)
        above, below = whole.subfigures(2, 1)
        for number, ax in enumerate(_row(above, count)):
            embedding(ax, fit, number)
            if fit.factors_[number].coordinate is None:
                # Both directions of a surface have the same unit.
                ax.set_aspect("equal")
        draws = _draws_below(fit)
        for draw, ax in zip(draws, _row(below, len(draws)), strict=True):
            draw(ax)
    return whole


def _row(figure, count: int):
    """Return so many axes side by side."""
    return figure.subplots(1, count, squeeze=False)[0]


def _draws_below(fit) -> list:
    """Return functions that draw on the axes of the lower row."""
    _, sizes = angle_matrix(fit.spectrum_, fit.factors_)
    # Small histograms: a few samples in each cell of a joint one.
    small = PlotSettings(bins=24)
    numbered = enumerate(fit.factors_)
    known = [number for number, factor in numbered if factor.coordinate is not None]
    along = [partial(coordinate, fit=fit, factor=number, settings=small) for number in known[:2]]
    draws = [partial(spectrum, fit=fit)]
    if not sizes:
        # Factors of a sum own no functions of the spectrum.
        draws = along or [partial(spectrum, fit=fit)]
    elif len(sizes) > 1:
        draws.append(partial(angles, fit=fit))
    if len(known) > 1:
        one, other = known[:2]
        draws.append(partial(joint, fit=fit, one=one, other=other, settings=small))
    elif sizes:
        draws.append(along[0] if along else partial(bandwidth, fit=fit))
    return draws


def _shown(fit):
    """Return a new figure, which notebooks show also if pyplot was never imported."""
    # Inches: a legend of three lines has room in a panel, and three panels in the least width.
    made = new_figure(max(7.6, 2.4 * len(fit.factors_)), 5.0)
    made._repr_png_ = partial(_png, made)
    return made


def _png(figure) -> bytes:
    """Return a figure as the content of a .png file."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=PlotSettings().resolution)
    return buffer.getvalue()
