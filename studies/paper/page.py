"""The page that shows a reproduction, as one HTML file and as Markdown."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup, escape

from manifactor.views.report import templates

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
    "*Default* is this package's own method with nothing set. It finds the number of factors, too.",
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
# Explanations quote what the full run finds.
QUICK = (
    "This is a quick run on few samples: it shows that everything works, not how "
    "well. Explanations are written for the full run and need not hold here."
)


def as_html(record: dict, folder: Path) -> str:
    """Return the page in HTML, with the pictures of the folder inside."""

    def png(picture: dict) -> str:
        # The last part of the name only: a record must not lead out of the folder.
        name = Path(picture["name"]).name
        return b64encode((folder / f"{name}.png").read_bytes()).decode()

    environment = templates().overlay()
    environment.filters = {**environment.filters, "emphasised": _emphasised, "png": png}
    page = environment.from_string(Path(__file__).with_name("page.html").read_text())
    return page.render(
        title=TITLE,
        introduction=_introduction(record),
        sections=record["sections"],
        footer=_footer(record),
    )


def as_markdown(record: dict) -> str:
    """Return the same page in Markdown, which refers to the pictures beside it."""
    blocks = [f"# {TITLE}", *_introduction(record)]
    for name, found in record["sections"].items():
        blocks += _markdown_section(name, found)
    blocks.append(f"{_footer(record)} All numbers: [numbers.json](numbers.json).")
    return "\n\n".join(blocks) + "\n"


def _markdown_section(name: str, found: dict) -> Iterator[str]:
    """Yield the blocks of a section, between which a line is left empty."""
    yield f"## {found['title']}"
    yield f"`python -m studies.paper {name}`"
    yield from found["text"]
    for picture in found["pictures"]:
        yield f"![{picture['name']}]({picture['name']}.png)"
        yield picture["caption"]
    for made in found["tables"]:
        yield _markdown_table(made)
        yield made["caption"]


def _introduction(record: dict) -> Sequence[str]:
    return (QUICK, *INTRODUCTION) if record["settings"]["quick"] else INTRODUCTION


def _emphasised(text: str) -> Markup:
    """Return Markdown's emphasis and code as HTML, everything else escaped."""
    emphasised = re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", emphasised))


def _markdown_table(made: dict) -> str:
    rule = ["---"] * len(made["header"])
    return "\n".join(map(_markdown_row, [made["header"], rule, *made["rows"]]))


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _footer(record: dict) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    # Recipes that were kept from an earlier run count with the time they took then. `round` raises
    # for a damaged time beyond all numbers; the record is then refused.
    minutes = sum(section["took"] for section in record["sections"].values()) / 60
    seed = record["settings"]["seed"]
    python = f"Python {record['python']}"
    return f"Seed {seed}; {round(minutes)} minutes; {python}, {versions}."
