"""The page that shows a reproduction: one HTML file with its pictures inside, and the same in Markdown."""

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

TITLE = "Product Manifold Learning, reproduced with numbers"
INTRODUCTION = (
    "Every figure and the table of Zhang, Moscovich and Singer, *Product Manifold Learning* (AISTATS 2021), made "
    "by manifactor, each with a number beside the picture. The paper gives pictures and running times; accuracy "
    "is measured here against the known truth. Recipes are numbered as the figures of the paper's code are, of "
    "which the paper prints four; titles give the paper's own numbers.",
    "*Published* is the paper's algorithm as its text has it: a dense Gaussian kernel, 100 eigenvectors, triplets "
    "under both criteria, a maximum cut. Bandwidths and the size of the noise are not in the paper and are taken "
    "from the configurations in its repository (github.com/sxzhang25/product-manifold-learning). This "
    "implementation differs from that repository's: similarities are absolute values, as the paper says; a "
    "function recognised as a product is never a part of another; the cut is the best of 300 roundings, improved "
    "by a local search; eigenpairs are computed to residuals of 1e-7 instead of by a randomised SVD, and those "
    "that the kernel does not resolve are left out.",
    "*Default* is this package's own method with nothing set. It finds the number of factors, too.",
    "*Units*: with the kernel exp(-d^2/eps), an eigenvalue s of the random walk belongs to the Laplacian's "
    "eigenvalue lambda = -4 log(s) / eps. The paper uses -log(s) / eps, so its delta is in units of lambda/4. "
    "Eigenvalues here are true ones unless said.",
    "*R^2* is that of nearest-neighbour regression (20 neighbours, 5-fold cross-validation) of the true factor on "
    "what was found, or of a function on the true factor; a function depends on a factor alone if that R^2 is at "
    "least .9.",
    "In `numbers.json`, *own* is the mean R^2 of true factors on those found for them (0 for one not found), "
    "*worst* the least, *leak* the largest on any other, *solved* whether the number of factors is right, worst "
    "is at least .95 and leak at most .10; *functions* counts those of each factor as found, *pure_functions* is "
    "the share that depends on its own true factor alone; *seconds* holds what was timed, *took* the seconds of a "
    "recipe when those before it had left their fits.",
)
QUICK = (
    "This is a quick run on few samples: it shows that everything works, not how well. Explanations are written "
    "for the full run and need not hold here."
)
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
figure { margin: 1.5rem 0; }
figure img { width: 100%; height: auto; }
figcaption, caption, footer { color: #444; font-size: .9rem; text-align: left; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin: 1.5rem 0; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .6rem; text-align: left; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
a { color: #0050a0; }
@media print { h2 { break-before: page; } body { max-width: none; } }
"""


def as_html(record: dict, folder: Path) -> str:
    """The page, with the pictures of the folder inside."""
    contents = "".join(f'<li><a href="#{name}">{escape(s["title"])}</a></li>' for name, s in record["sections"].items())
    body = "".join(_section(name, section, folder) for name, section in record["sections"].items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head>\n<body><main><h1>{TITLE}</h1>\n"
        + "".join(f"<p>{_emphasised(text)}</p>\n" for text in _introduction(record))
        + f"<nav><ol>{contents}</ol></nav>\n{body}</main><footer><p>{_footer(record)} "
        'All numbers: <a href="numbers.json">numbers.json</a>.</p></footer></body></html>\n'
    )


def as_markdown(record: dict) -> str:
    """The same page, with the pictures beside it."""
    lines = [f"# {TITLE}", ""]
    for text in _introduction(record):
        lines += [text, ""]
    for name, section in record["sections"].items():
        lines += [f"## {section['title']}", "", f"`manifactor reproduce {name}`", ""]
        for text in section["text"]:
            lines += [text, ""]
        for picture in section["pictures"]:
            lines += [f"![{picture['name']}]({picture['name']}.png)", "", picture["caption"], ""]
        for table in section["tables"]:
            lines += [_markdown_row(table["header"]), _markdown_row(["---"] * len(table["header"]))]
            lines += [*map(_markdown_row, table["rows"]), "", table["caption"], ""]
    return "\n".join([*lines, f"{_footer(record)} All numbers: [numbers.json](numbers.json).", ""])


def _introduction(record: dict) -> Sequence[str]:
    return (QUICK, *INTRODUCTION) if record["settings"]["quick"] else INTRODUCTION


def _section(name: str, section: dict, folder: Path) -> str:
    text = "".join(f"<p>{_emphasised(paragraph)}</p>\n" for paragraph in section["text"])
    pictures = "".join(_figure(picture, folder) for picture in section["pictures"])
    tables = "".join(map(_table, section["tables"]))
    command = f"<p><code>manifactor reproduce {name}</code></p>"
    return f'<section id="{name}"><h2>{escape(section["title"])}</h2>\n{command}{text}{pictures}{tables}</section>\n'


def _figure(picture: dict, folder: Path) -> str:
    content = base64.b64encode((folder / f"{Path(picture['name']).name}.png").read_bytes()).decode()
    summary = escape(picture["caption"].partition(". ")[0])
    return (
        f'<figure><img alt="{summary}" src="data:image/png;base64,{content}"><figcaption>'
        f"{_emphasised(picture['caption'])} "
        f'<a href="{picture["name"]}.pdf">PDF</a>, <a href="{picture["name"]}.png">PNG</a></figcaption></figure>\n'
    )


def _table(table: dict) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table["header"])
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table["rows"])
    return (
        f'<div class="wide"><table><caption>{escape(table["caption"])}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def _emphasised(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", escape(text)))


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _footer(record: dict) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    minutes = sum(section["took"] for section in record["sections"].values()) / 60
    return f"Seed {record['settings']['seed']}; {minutes:.0f} minutes; Python {record['python']}, {versions}."
