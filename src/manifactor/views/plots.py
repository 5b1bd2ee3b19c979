"""Pictures of functions, places and matrices: drawn on the caller's axes, in one style.

The colours are told apart in print and by the colour-blind: purple to orange through white for functions, viridis for
lines, a cyclic map for circles, Okabe and Ito's palette for categories.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from manifactor._support.extras import extra
from manifactor.factoring import ownership

CATEGORIES = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
FUNCTION_MAP, LINE_MAP, SHARE_MAP = "PuOr", "viridis", "Blues"
CYCLE = (
    "#2f7fc1",
    "#8fd0a8",
    "#dd7a25",
    "#6a3d6e",
    "#2f7fc1",
)  # of hue and lightness, none lost on white or black
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
INK = "#010203"  # stands for the colour of the words around a drawing, which `svg` puts in its place
PAGE = {  # drawings among words of 16 pixels
    **STYLE,
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5),
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "xtick.color",
            "ytick.color",
        ),
        INK,
    ),
    "svg.fonttype": "none",
    "svg.hashsalt": "manifactor",  # the same drawing has the same names inside, always
}
RESOLUTION = 160  # dots per inch of pictures, and of what is rastered inside drawings
MOST_POINTS = 10_000  # points of a scatter plot; more only take time
FULL = 9000  # square points, the size of a point, that fill a cloud
PALETTE = 255  # colours of a .png
BINS = 40  # of a histogram


@contextmanager
def style(settings: dict = STYLE) -> Iterator[None]:
    """Everything drawn and saved inside looks alike; `PAGE` is the style of drawings that `svg` saves."""
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context(
        {**matplotlib.rcParamsDefault, **settings}
    ):  # whatever the user's own settings are
        yield


def new_figure(width: float, height: float):
    """An empty figure of so many inches, of which no global state knows."""
    return extra("matplotlib.figure").Figure(
        figsize=(width, height), layout="constrained"
    )


def picture(figure) -> dict[str, bytes]:
    """The figure as the bytes of a .pdf (letters and lines as such, clouds of points rastered) and of a .png."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is made, once for both
    vector, pixels, small = io.BytesIO(), io.BytesIO(), io.BytesIO()
    figure.savefig(
        vector, format="pdf", dpi=RESOLUTION, metadata={"CreationDate": None}
    )
    figure.savefig(pixels, format="png", dpi=RESOLUTION)
    image = extra("PIL.Image").open(pixels).convert("RGB")
    image.quantize(PALETTE, dither=0).save(small, format="PNG", optimize=True)
    return {".pdf": vector.getvalue(), ".png": small.getvalue()}


def svg(figure, name: str) -> str:
    """The figure, drawn in the style `PAGE`, as SVG to stand inside a page of HTML.

    Ink has the colour of the page's words, factors and grey have those of its variables ``--category-1`` ... and
    ``--soft`` where it has them, the ground is the page's own. Clouds of points are images.

    Parameters
    ----------
    figure : Figure
    name : str
        What the names inside start with, so that those of two drawings in one page differ.
    """
    buffer = io.StringIO()
    nothing_about_it = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(
        buffer,
        format="svg",
        dpi=RESOLUTION,
        transparent=True,
        metadata=nothing_about_it,
    )
    text = re.sub(
        r"<!--.*?-->|<style.*?</style>", "", buffer.getvalue(), flags=re.DOTALL
    )  # a style is all the page's
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    text = re.sub(
        r' id="([^"]*)"',
        lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "",
        text,
    )
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    for number, own in enumerate(CATEGORIES[:-1], start=1):
        text = text.replace(own.lower(), f"var(--category-{number}, {own.lower()})")
    text = (
        text.replace(GREY, f"var(--soft, {GREY})")
        .replace(INK, "currentColor")
        .replace("#000000", "currentColor")
    )
    text = re.sub(r"(font: [^']*)'[^;\"]*", r"\1system-ui, sans-serif", text)
    box = re.search(r'viewBox="[^"]*"', text)
    body = text[text.index(">", text.index("<svg")) + 1 :].strip()
    assert box is not None
    return f'<svg {box[0]} style="stroke-linejoin: round; fill: currentColor">{re.sub(chr(10) + " *", chr(10), body)}'


def points(
    ax,
    xy: np.ndarray,
    values: np.ndarray,
    *,
    cmap=LINE_MAP,
    limits=None,
    size: float = 1.5,
):
    """Draw samples, (n, 2), coloured by a value each, without axes; returns the Axes."""
    low, high = limits or (values.min(), values.max())
    shown = _thinned(len(xy))
    ax.scatter(
        *xy[shown].T,
        c=values[shown],
        s=size,
        cmap=cmap,
        vmin=low,
        vmax=high,
        linewidths=0,
        rasterized=True,
    )
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def drawn(n_samples: int) -> int:
    """How many of the samples a cloud of points shows."""
    return len(range(n_samples)[_thinned(n_samples)])


def _thinned(n_samples: int) -> slice:
    return slice(None, None, -(-n_samples // MOST_POINTS))


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
    return points(
        ax, embedding[:, :2], colour, cmap=circle_map() if circle else LINE_MAP
    )


def matrix(
    ax, values: np.ndarray, *, groups: Sequence[int] = (), numbers: bool = False
):
    """Draw a matrix of numbers from 0 to 1 with lines between groups of rows; returns the Axes."""
    ax.imshow(
        values,
        cmap=SHARE_MAP,
        vmin=0,
        vmax=1,
        aspect="auto" if numbers else "equal",
        interpolation="nearest",
    )
    ax.set(xticks=[], yticks=[])
    for edge in np.cumsum(groups)[:-1] - 0.5:
        ax.axhline(edge, color=CATEGORIES[1], linewidth=1)
        if not numbers:
            ax.axvline(edge, color=CATEGORIES[1], linewidth=1)
    if numbers:
        for (i, j), value in np.ndenumerate(values):
            colour = (
                "#fefefe" if value > 0.6 else "#111111"
            )  # both on their cell, whatever the ground
            ax.text(
                j, i, f"{value:.2f}", ha="center", va="center", fontsize=6, color=colour
            )
    ax.spines[:].set_visible(True)
    ax.tick_params(length=0)
    return ax


def nothing(ax, text: str):
    """Write into empty axes why there is no picture; returns the Axes."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.text(
        0.5,
        0.5,
        text,
        ha="center",
        va="center",
        color=GREY,
        fontsize=7,
        transform=ax.transAxes,
    )
    return ax


def spectrum(ax, fit):
    """Draw a fit's eigenvalues: filled in its factor's colour where a function is pure, open elsewhere; the Axes."""
    values, owner = (
        fit.spectrum_.eigenvalues[1:],
        ownership.owners(fit.spectrum_, fit.factors_)[1:],
    )
    index = np.arange(1, len(values) + 1)
    for f in range(len(fit.factors_)):
        mine = owner == f
        ax.plot(
            index[mine],
            values[mine],
            "o",
            ms=4,
            mec="none",
            color=colour(f),
            label=f"factor {f + 1}",
        )
    others = owner < 0
    ax.plot(
        index[others],
        values[others],
        "o",
        ms=3,
        mfc="none",
        mec=GREY,
        mew=0.6,
        label="products and mixtures",
    )
    ax.set(xlabel="function", ylabel="eigenvalue", ylim=(0, None))
    ax.legend(frameon=False)
    return ax


def angles(ax, fit):
    """Draw the mean squared cosines between the gradients of the factors' functions, ordered by factor; the Axes."""
    values, sizes = ownership.angle_matrix(fit.spectrum_, fit.factors_)
    if not sizes:
        return nothing(ax, "the factors have no functions\nof the data's own spectrum")
    matrix(ax, values, groups=sizes)
    middle = np.cumsum(sizes) - np.array(sizes) / 2 - 0.5
    names = [
        f for f, factor in enumerate(fit.factors_, start=1) if len(factor.coefficients)
    ]
    ax.set(
        xticks=middle,
        xticklabels=names,
        yticks=middle,
        yticklabels=names,
        xlabel="factor",
        ylabel="factor",
    )
    return ax


def embedding(ax, fit, factor: int, *, values: np.ndarray | None = None):
    """Draw places on a factor, coloured by the coordinate, or by a value for each sample; returns the Axes.

    An interval's places are drawn with their confidence upwards, a circle's with it outwards.
    """
    found = fit.factors_[factor]
    if found.embedding.shape[1] > 1:
        xy = found.embedding[:, :2] * (
            found.confidence[:, None] if found.topology == "circle" else 1.0
        )
    else:
        xy = np.column_stack([found.coordinate, found.confidence])
    own = found.embedding[:, 0] if found.coordinate is None else found.coordinate
    cyclic = values is None and found.topology == "circle"
    size = float(
        np.clip(FULL / len(xy), 1.5, 5.0)
    )  # few samples are seen as well as many
    points(
        ax,
        xy,
        own if values is None else values,
        cmap=circle_map() if cyclic else LINE_MAP,
        size=size,
    )
    ax.set_title(f"factor {factor + 1}: {found.shape}", color=colour(factor))
    if found.topology == "circle":
        ax.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
    if found.topology == "interval":
        ax.set(
            xlabel="place",
            ylabel="confidence",
            ylim=(-0.03, 1.03),
            xticks=(0, 0.5, 1),
            yticks=(0, 0.5, 1),
        )
    return ax


def coordinate(ax, fit, factor: int):
    """Draw how the samples are spread along a factor, a circle's in degrees; returns the Axes."""
    found = fit.factors_[factor]
    if found.coordinate is None:
        return nothing(
            ax, f"factor {factor + 1} is {found.shape}\nand has no single coordinate"
        )
    scale, unit = _unit(found)
    ax.hist(
        found.coordinate * scale, bins=BINS, color=colour(factor), histtype="stepfilled"
    )
    ax.set(
        xlabel=f"place on factor {factor + 1}{unit}",
        ylabel="samples",
        xlim=(0, scale * _length(found)),
    )
    return ax


def joint(ax, fit, one: int, other: int):
    """Draw how many samples lie where on two factors; an even picture is that of independent places; the Axes."""
    pair = [fit.factors_[one], fit.factors_[other]]
    if any(found.coordinate is None for found in pair):
        return nothing(ax, "both factors must have a single coordinate")
    scales, places = (
        [_unit(found) for found in pair],
        [found.coordinate for found in pair],
    )
    limits = [
        [0, scale * _length(found)]
        for (scale, _), found in zip(scales, pair, strict=True)
    ]
    xy = [place * scale for place, (scale, _) in zip(places, scales, strict=True)]
    ax.hist2d(*xy, bins=BINS, range=limits, cmap=SHARE_MAP, rasterized=True)
    ax.set(
        xlabel=f"factor {one + 1}{scales[0][1]}",
        ylabel=f"factor {other + 1}{scales[1][1]}",
    )
    return ax


def bandwidth(ax, fit):
    """Draw the curve that bandwidth and dimension were read from; returns the Axes."""
    curve = fit.bandwidth_curve_
    ax.semilogx(curve.candidates, 2 * curve.slopes, color=CATEGORIES[0], linewidth=1)
    ax.axvline(curve.value, color=CATEGORIES[1], linewidth=1)
    ax.annotate(
        f"chosen: {curve.value:.3g}",
        (curve.value, 0),
        (3, 3),
        textcoords="offset points",
    )
    ax.set(
        xlabel="bandwidth", ylabel="slope of the kernel sum, times 2", ylim=(0, None)
    )
    return ax


def confidence(ax, fit, factor: int):
    """Draw places on a factor by how sure they are, from 0 to 1; returns the Axes."""
    found = fit.factors_[factor]
    embedding(ax, fit, factor, values=found.confidence)
    ax.collections[-1].set_clim(0, 1)
    return ax


def averages(ax, images: np.ndarray, *, labels: Sequence[str] = ()):
    """Draw mean images, (n, height, width), side by side in one scale of grey; returns the Axes."""
    n, _, width = images.shape
    ax.imshow(np.hstack(list(images)), cmap="gray", interpolation="nearest")
    ax.set(xticks=width * (np.arange(n) + 0.5) - 0.5 if labels else [], yticks=[])
    if labels:
        ax.set_xticklabels(labels)
    for edge in range(1, n):
        ax.axvline(edge * width - 0.5, color="white", linewidth=1)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def circle_map():
    """The colours of a circle's places, the same at both ends."""
    return extra("matplotlib.colors").LinearSegmentedColormap.from_list("cycle", CYCLE)


def colour(factor: int) -> str:
    """The colour of a factor, the same in all pictures."""
    return CATEGORIES[factor % len(CATEGORIES)]


def _unit(factor) -> tuple[float, str]:
    """What a coordinate is multiplied by, and what it is then called."""
    return (180 / np.pi, ", degrees") if factor.topology == "circle" else (1.0, "")


def _length(factor) -> float:
    return 2 * np.pi if factor.topology == "circle" else 1.0
