"""Pieces of HTML: escaped text, tables, figures, and the page around them."""

import base64
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

# Nothing is fetched and nothing is run.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@cache
def stylesheet(name: str) -> str:
    """Return the text of one of the package's style sheets."""
    folder = resources.files("manifactor.views").joinpath("styles")
    return folder.joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: str, *, style: str = "", footer: str = "") -> str:
    """Return a whole page."""
    # Inside the page, which is one file that can be sent by mail.
    sheets = ("colours.css", "page.css", "tables.css")
    styles = "".join(map(stylesheet, sheets)) + style
    end = f"<footer>{footer}</footer>" if footer else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{styles}</style></head>\n"
        '<body><a class="skip" href="#main">Skip to the contents</a>\n'
        f'<main id="main">{body}</main>{end}</body></html>\n'
    )


def contents(sections: Mapping[str, str]) -> str:
    """Return links to the sections of a page, by their ids."""
    links = [f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in sections.items()]
    return f'<nav aria-label="Contents"><ol>{"".join(links)}</ol></nav>\n'


def section(name: str, title: str, body: str, *, level: int = 2) -> str:
    """Return a part of the page under a heading."""
    heading = f"<h{level}>{escape(title)}</h{level}>"
    return f'<section id="{name}">{heading}\n{body}</section>\n'


def paragraph(text: str, *, kind: str = "") -> str:
    """Return plain text as a paragraph."""
    return f"<p{_class(kind)}>{escape(text)}</p>\n"


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    named: bool = False,
    kind: str = "",
    marked: Collection[int] = (),
) -> str:
    """Return a table of plain text that scrolls in a box of its own."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f"<tr{_class('marked' if number in marked else '')}>{_cells(row, named)}</tr>"
        for number, row in enumerate(rows)
    )
    whole = (
        f"<table{_class(kind)}><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    return scrolled(whole, caption)


def _cells(row: Sequence[str], named: bool) -> str:
    cells = [f"<td>{escape(cell)}</td>" for cell in row]
    if named:
        # Screen readers name the row with each of its cells.
        cells[0] = f'<th scope="row">{escape(row[0])}</th>'
    return "".join(cells)


def scrolled(body: str, name: str) -> str:
    """Return a box that scrolls sideways where the page is narrow."""
    # With a tab stop, so that the keyboard scrolls it, too.
    role = f'role="group" aria-label="{escape(name)}" tabindex="0"'
    return f'<div class="wide" {role}>{body}</div>\n'


def image(png: bytes, alt: str) -> str:
    """Return a .png file inside the page."""
    # Inside the page for the same reason as its style.
    content = base64.b64encode(png).decode()
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{content}">'


@dataclass(frozen=True)
class ScaleBar:
    """A bar of a round length, drawn into an image."""

    length: float  # angstrom
    share: float  # of the image's width


def scale_bar(width: float, *, most: float = 0.4) -> ScaleBar:
    """Return the longest bar of 1, 2 or 5 times a power of ten, up to a share.

    >>> scale_bar(264.0)
    ScaleBar(length=100.0, share=0.3787878787878788)
    """
    power = 10.0 ** math.floor(math.log10(most * width))
    length = power * max(step for step in (1, 2, 5) if step * power <= most * width)
    return ScaleBar(length, length / width)


def tiles(
    pngs: Sequence[bytes], captions: Sequence[str], *, label: str, bar: ScaleBar | None = None
) -> str:
    """Return images side by side, as many as the page is wide, with captions.

    A box to tick enlarges them.
    """
    drawn = "" if bar is None else _bar(bar)
    cells = ""
    for png, caption in zip(pngs, captions, strict=True):
        cells += f'<div><div class="tile">{image(png, "")}{drawn}</div>'
        cells += f"{escape(caption)}</div>"
        drawn = ""
    box = f'<div class="tiles" role="img" aria-label="{escape(label)}">{cells}</div>'
    tick = '<label class="enlarge"><input type="checkbox" /> Enlarge</label>'
    return f"{box}\n{tick}\n"


def _bar(bar: ScaleBar) -> str:
    share = f"width: {bar.share:.1%}"
    return f'<div class="bar" style="{share}">{bar.length:g} Å</div>'


def drawing(svg: str, alt: str) -> str:
    """Return a drawing of `plots.svg` with its description."""
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)


def svg_file(svg: str) -> bytes:
    """Return a drawing of `plots.svg` as the content of an .svg file.

    The file has a background of its own, and colours for light and for dark screens.
    """
    width, height = re.findall(r'viewBox="0 0 (\S+) (\S+)"', svg)[0]
    attributes = (
        'xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}pt" height="{height}pt"'
    )
    style = f"{stylesheet('colours.css')}svg {{ color: var(--ink) }}"
    # The attribute `fill` is for programs that know no variables.
    ground = 'width="100%" height="100%" fill="#fff" style="fill: var(--ground)"'
    opening, body = svg.split(">", 1)
    opening = opening.replace("<svg ", f"<svg {attributes} ", 1)
    return f"{opening}><style>{style}</style><rect {ground}/>{body}\n".encode()


def figure(picture: str, caption: str, *, kind: str = "") -> str:
    """Return a picture of `image` or `drawing` with its caption, which is HTML."""
    inside = f"{picture}<figcaption>{caption}</figcaption>"
    return f"<figure{_class(kind)}>{inside}</figure>\n"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
