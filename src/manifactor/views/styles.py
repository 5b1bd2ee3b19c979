"""One style for all drawings, and the files that they become.

The colours can be told apart in print and by colour-blind readers: purple to orange through white
for functions, viridis for intervals, a cyclic map for circles, and the palette of Okabe and Ito for
categories.
"""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from manifactor._support.errors import extra

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
# What the colours of the samples on a factor show, by its topology. A surface has no single
# coordinate to colour by.
COLOURED = {"circle": "angle, degrees", "interval": "coordinate", "other": "first direction"}
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
CLEAR = {**STYLE, **{name: MIDDLE for name, value in PAGE.items() if value == INK}}


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


# Figures as the bytes of picture files, and as SVG inside a page of HTML.


def picture(figure, *, settings: PlotSettings = PlotSettings()) -> dict[str, bytes]:
    """Return a figure as the bytes of a .pdf and of a .png file, by suffix.

    In the .pdf file text and lines are vectors; clouds of points are images.
    """
    figure.draw_without_rendering()
    # The layout is computed: once for both files.
    figure.set_layout_engine("none")
    # Without its date, the same figure gives the same bytes.
    vector = file_bytes(figure, "pdf", settings, metadata={"CreationDate": None})
    pixels = io.BytesIO(file_bytes(figure, "png", settings))
    image = extra("PIL.Image").open(pixels).convert("RGB")
    small = io.BytesIO()
    # One byte for each colour, with one value left for transparency.
    image.quantize(255, dither=0).save(small, format="PNG", optimize=True)
    return {".pdf": vector, ".png": small.getvalue()}


def clear_picture(figure, suffix: str, *, settings: PlotSettings = PlotSettings()) -> bytes:
    """Return a figure, drawn in the style `CLEAR`, as a .png, .svg or .pdf without background."""
    return file_bytes(figure, suffix.removeprefix("."), settings, transparent=True)


def file_bytes(figure, kind: str, settings: PlotSettings, **options) -> bytes:
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
    text = file_bytes(figure, "svg", settings, transparent=True, metadata=no_metadata).decode()
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
