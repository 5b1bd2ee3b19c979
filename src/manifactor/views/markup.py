"""Pieces of a page in HTML: escaped text, tables, figures, and the page around them."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # nothing is fetched, nothing is run
LIGHT = (
    "--ground: #fff; --ink: #1a1a1a; --soft: #4a4a4a; --line: #d0d0d0; --panel: #f5f6f8; --link: #0050a0; "
    "--warn: #fff3d6; --warn-line: #b26a00; --category-1: #0072b2; --category-2: #d55e00; --category-3: #009e73; "
    "--category-4: #cc79a7; --category-5: #e69f00; --category-6: #56b4e9; --turned: none; --cloud: brightness(.85);"
)
DARK = (
    "--ground: #15181c; --ink: #e8e8e8; --soft: #b4b8be; --line: #3d434b; --panel: #1f242a; --link: #8cc4ff; "
    "--warn: #3a2e12; --warn-line: #e0a030; --category-1: #4aa8e0; --category-2: #f08a3c; --category-3: #2cc79a; "
    "--category-4: #e09cc4; --category-5: #f0b840; --category-6: #7cc8f4; "
    "--turned: invert(1) hue-rotate(180deg); "  # a picture's white becomes black, and its colours stay
    "--cloud: contrast(.8) brightness(1.3);"  # the darkest points are seen
)
STYLE = (
    f":root {{ color-scheme: light dark; {LIGHT} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}\n"
    """* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { margin-top: 2rem; }
figure { margin: 1.5rem 0; }
figure img { width: 100%; height: auto; }
figcaption, caption, footer { color: var(--soft); font-size: .9rem; text-align: left; }
.wide { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { padding-bottom: .3rem; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; white-space: nowrap;
  vertical-align: top; }
th { white-space: normal; }
thead th { vertical-align: bottom; }
th[scope=row] { font-weight: 600; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
code { font-size: .9em; overflow-wrap: anywhere; }
.skip { position: absolute; left: -99rem; }
.skip:focus { position: static; }
@media print { :root { color-scheme: light; --cloud: none; }
  body { max-width: none; margin: 0; font-size: 11pt; } .skip { display: none; }
  figure, tr { break-inside: avoid; } h2, h3, caption { break-after: avoid; } .wide { overflow: visible; }
  th, td { white-space: normal; } }
"""
)


def page(title: str, body: str, *, style: str = "", footer: str = "") -> str:
    """A whole page; `title` is plain text, `body` and `footer` are HTML, `style` comes after the common one."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{style}</style></head>\n"
        f'<body><a class="skip" href="#main">Skip to the contents</a>\n<main id="main">{body}</main>'
        f"{f'<footer>{footer}</footer>' if footer else ''}</body></html>\n"
    )


def contents(sections: Mapping[str, str]) -> str:
    """Links to the sections of a page, by their ids."""
    links = "".join(
        f'<li><a href="#{name}">{escape(title)}</a></li>'
        for name, title in sections.items()
    )
    return f'<nav aria-label="Contents"><ol>{links}</ol></nav>\n'


def section(name: str, title: str, body: str, *, level: int = 2) -> str:
    """A part of the page under a heading."""
    return (
        f'<section id="{name}"><h{level}>{escape(title)}</h{level}>\n{body}</section>\n'
    )


def paragraph(text: str, *, kind: str = "") -> str:
    """Plain text as a paragraph."""
    return f"<p{_class(kind)}>{escape(text)}</p>\n"


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    named: bool = False,
) -> str:
    """A table of plain text that scrolls in a box of its own; `named` where the first cell of a row is its name."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f"<tr>{''.join(_cell(cell, named and i == 0) for i, cell in enumerate(row))}</tr>"
        for row in rows
    )
    whole = f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return scrolled(whole, caption)


def scrolled(body: str, name: str) -> str:
    """A box that scrolls sideways where the page is narrow, by the keys too."""
    return f'<div class="wide" role="group" aria-label="{escape(name)}" tabindex="0">{body}</div>\n'


def _cell(text: str, name: bool) -> str:
    return (
        f'<th scope="row">{escape(text)}</th>' if name else f"<td>{escape(text)}</td>"
    )


def image(png: bytes, alt: str) -> str:
    """A .png inside the page."""
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def drawing(svg: str, alt: str) -> str:
    """A drawing of `plots.svg` with its description."""
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)


def figure(picture: str, caption: str, *, kind: str = "") -> str:
    """A picture of `image` or `drawing` with its caption, which is HTML."""
    return (
        f"<figure{_class(kind)}>{picture}<figcaption>{caption}</figcaption></figure>\n"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
