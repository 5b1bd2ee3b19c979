"""Figures as the bytes of picture files, and as SVG inside a page of HTML."""

import io
import re

from manifactor._support.extras import extra
from manifactor.views.plots.appearance import CATEGORIES, GREY, INK, PlotSettings


def picture(figure, *, settings: PlotSettings = PlotSettings()) -> dict[str, bytes]:
    """Return a figure as the bytes of a .pdf and of a .png file, by suffix.

    In the .pdf file text and lines are vectors; clouds of points are images.
    """
    figure.draw_without_rendering()
    # The layout is computed: once for both files.
    figure.set_layout_engine("none")
    vector, pixels, small = io.BytesIO(), io.BytesIO(), io.BytesIO()
    # Without its date, the same figure gives the same bytes.
    undated = {"CreationDate": None}
    dpi = settings.resolution
    figure.savefig(vector, format="pdf", dpi=dpi, metadata=undated)
    figure.savefig(pixels, format="png", dpi=dpi)
    image = extra("PIL.Image").open(pixels).convert("RGB")
    few_colours = image.quantize(settings.palette, dither=0)
    few_colours.save(small, format="PNG", optimize=True)
    return {".pdf": vector.getvalue(), ".png": small.getvalue()}


def clear_picture(figure, suffix: str, *, settings: PlotSettings = PlotSettings()) -> bytes:
    """Return a figure, drawn in the style `CLEAR`, as a file without background.

    Parameters
    ----------
    figure : Figure
    suffix : {".png", ".svg", ".pdf"}
    settings : PlotSettings
    """
    buffer = io.BytesIO()
    kind = suffix.removeprefix(".")
    dpi = settings.resolution
    figure.savefig(buffer, format=kind, dpi=dpi, transparent=True)
    return buffer.getvalue()


def svg(figure, name: str, *, settings: PlotSettings = PlotSettings()) -> str:
    """Return a figure, drawn in the style `PAGE`, as an SVG element for a page of HTML.

    Text and axes take the text colour of the page. Factors and grey take its variables
    ``--category-1`` ... and ``--soft`` where it has them. The background is
    transparent. Clouds of points are images.

    Parameters
    ----------
    figure : Figure
    name : str
        Prefix of the ids inside, so that those of two drawings in one page differ.
    settings : PlotSettings
    """
    text = _saved(figure, settings)
    # A style element would apply to the whole page.
    text = re.sub(r"<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = _with_prefixed_ids(text, name)
    text = _with_colours_of_the_page(text)
    text = re.sub(r"(font: [^']*)'[^;\"]*", r"\1system-ui, sans-serif", text)
    return _as_element(text)


def _saved(figure, settings: PlotSettings) -> str:
    """Return the figure as the text of an .svg file without metadata."""
    buffer = io.StringIO()
    figure.savefig(
        buffer,
        format="svg",
        dpi=settings.resolution,
        transparent=True,
        metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
    )
    return buffer.getvalue()


def _with_prefixed_ids(text: str, name: str) -> str:
    """Return the drawing with a prefix on ids that are referred to, and no others."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))

    def prefixed(found: re.Match) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    text = re.sub(r' id="([^"]*)"', prefixed, text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)


def _with_colours_of_the_page(text: str) -> str:
    """Return the drawing with variables of the page in place of our own colours."""
    # The last category is black, which is lost on a dark page.
    for number, category in enumerate(CATEGORIES[:-1], start=1):
        own = category.lower()
        text = text.replace(own, f"var(--category-{number}, {own})")
    text = text.replace(GREY, f"var(--soft, {GREY})")
    return text.replace(INK, "currentColor").replace("#000000", "currentColor")


def _as_element(text: str) -> str:
    """Return the svg element of the text of an .svg file, without its namespaces."""
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opening_ends = text.index(">", text.index("<svg"))
    body = text[opening_ends + 1 :].strip()
    unindented = re.sub(r"\n *", "\n", body)
    style = "stroke-linejoin: round; fill: currentColor"
    return f'<svg {box[0]} style="{style}">{unindented}'
