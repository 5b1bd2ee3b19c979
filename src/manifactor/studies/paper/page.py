"""The page that shows a reproduction: one HTML file with its pictures inside, and the same in Markdown."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from manifactor.views.markup import contents, figure, image, page, section, table

TITLE = "Product Manifold Learning, reproduced with numbers"
INTRODUCTION = (
    "Every figure and the table of Zhang, Moscovich and Singer, *Product Manifold "
    "Learning* (AISTATS 2021), made by manifactor, each with a number beside the "
    "picture. The paper gives pictures and running times; accuracy is measured here "
    "against the known truth. Recipes are numbered as the figures of the paper's "
    "code are, of which the paper prints four; titles give the paper's own numbers.",
    "*Published* is the paper's algorithm as its text has it: a dense Gaussian "
    "kernel, 100 eigenvectors, triplets under both criteria, a maximum cut. "
    "Bandwidths and the size of the noise are not in the paper and are taken from "
    "the configurations in its repository "
    "(github.com/sxzhang25/product-manifold-learning). This implementation differs "
    "from that repository's: similarities are absolute values, as the paper says; a "
    "function recognised as a product is never a part of another; the cut is the "
    "best of 300 roundings, improved by a local search; eigenpairs are computed to "
    "residuals of 1e-7 instead of by a randomised SVD, and those that the kernel "
    "does not resolve are left out.",
    "*Default* is this package's own method with nothing set. It finds the number of "
    "factors, too.",
    "*Units*: with the kernel exp(-d^2/eps), an eigenvalue s of the random walk "
    "belongs to the Laplacian's eigenvalue lambda = -4 log(s) / eps. The paper uses "
    "-log(s) / eps, so its delta is in units of lambda/4. Eigenvalues here are true "
    "ones unless said.",
    "*R^2* is that of nearest-neighbour regression (20 neighbours, 5-fold "
    "cross-validation) of the true factor on what was found, or of a function on the "
    "true factor; a function depends on a factor alone if that R^2 is at least .9.",
    "In `numbers.json`, *own* is the mean R^2 of true factors on those found for "
    "them (0 for one not found), *worst* the least, *leak* the largest on any other, "
    "*solved* whether the number of factors is right, worst is at least .95 and leak "
    "at most .10; *functions* counts those of each factor as found, *pure_functions* "
    "is the share that depends on its own true factor alone; *seconds* holds what "
    "was timed, *took* the seconds of a recipe when those before it had left their "
    "fits.",
)
QUICK = (
    "This is a quick run on few samples: it shows that everything works, not how "
    "well. Explanations are written for the full run and need not hold here."
)
STYLE = "@media print { h2 { break-before: page; } }"


def as_html(record: dict, folder: Path) -> str:
    """The page, with the pictures of the folder inside."""
    sections = record["sections"]
    body = (
        f"<h1>{TITLE}</h1>\n"
        + "".join(f"<p>{_emphasised(text)}</p>\n" for text in _introduction(record))
        + contents({name: found["title"] for name, found in sections.items()})
        + "".join(_section(name, found, folder) for name, found in sections.items())
    )
    footer = f'<p>{_footer(record)} All numbers: <a href="numbers.json">numbers.json</a>.</p>'
    return page(TITLE, body, style=STYLE, footer=footer)


def as_markdown(record: dict) -> str:
    """The same page, with the pictures beside it."""
    lines = [f"# {TITLE}", ""]
    for text in _introduction(record):
        lines += [text, ""]
    for name, found in record["sections"].items():
        lines += [f"## {found['title']}", "", f"`manifactor reproduce {name}`", ""]
        for text in found["text"]:
            lines += [text, ""]
        for picture in found["pictures"]:
            lines += [
                f"![{picture['name']}]({picture['name']}.png)",
                "",
                picture["caption"],
                "",
            ]
        for made in found["tables"]:
            lines += [
                _markdown_row(made["header"]),
                _markdown_row(["---"] * len(made["header"])),
            ]
            lines += [*map(_markdown_row, made["rows"]), "", made["caption"], ""]
    return "\n".join(
        [*lines, f"{_footer(record)} All numbers: [numbers.json](numbers.json).", ""]
    )


def _introduction(record: dict) -> Sequence[str]:
    return (QUICK, *INTRODUCTION) if record["settings"]["quick"] else INTRODUCTION


def _section(name: str, found: dict, folder: Path) -> str:
    text = "".join(f"<p>{_emphasised(paragraph)}</p>\n" for paragraph in found["text"])
    pictures = "".join(_figure(picture, folder) for picture in found["pictures"])
    tables = "".join(
        table(made["caption"], made["header"], made["rows"]) for made in found["tables"]
    )
    command = f"<p><code>manifactor reproduce {name}</code></p>"
    return section(name, found["title"], f"{command}{text}{pictures}{tables}")


def _figure(picture: dict, folder: Path) -> str:
    png = (folder / f"{Path(picture['name']).name}.png").read_bytes()
    links = f'<a href="{picture["name"]}.pdf">PDF</a>, <a href="{picture["name"]}.png">PNG</a>'
    shown = image(png, picture["caption"].partition(". ")[0])
    return figure(shown, f"{_emphasised(picture['caption'])} {links}")


def _emphasised(text: str) -> str:
    return re.sub(
        r"`([^`]+)`",
        r"<code>\1</code>",
        re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", escape(text)),
    )


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _footer(record: dict) -> str:
    versions = ", ".join(
        f"{name} {version}" for name, version in record["versions"].items()
    )
    minutes = sum(section["took"] for section in record["sections"].values()) / 60
    return f"Seed {record['settings']['seed']}; {minutes:.0f} minutes; Python {record['python']}, {versions}."
