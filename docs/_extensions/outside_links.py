"""Links from pages to files outside docs/, so that they work on GitHub and here.

On GitHub a page links to the files of the repository. Here such a link leads to the
page that is made of the file, if there is one, else to the file in the repository.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

# Files outside docs/ that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples": "gallery/index.rst",
}
# What follows "](" or "]: " up to the end of the link; no addresses, no anchors alone.
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?", re.M)


def on_the_site(text: str, *, folder: Path, page: Path, repository: str) -> str:
    """Return Markdown with links that lead somewhere on the site.

    Parameters
    ----------
    text : str
    folder : Path
        The folder that links in the text start from.
    page : Path
        The page of the site that shows the text.
    repository : str
        Address of the files in the repository.

    Examples
    --------
    >>> page = DOCS / "method.md"
    >>> link = "[an example](../examples/plot_torus.py)"
    >>> on_the_site(link, folder=DOCS, page=page, repository="https://example.org")
    '[an example](gallery/plot_torus.rst)'
    """

    def moved(match: re.Match) -> str:
        opening, link, anchor = match.group(1), match.group(2), match.group(3) or ""
        target = Path(os.path.normpath(folder / link))
        if not target.is_relative_to(ROOT):
            return match.group()
        shown = _page_of(target)
        if shown is not None:
            return f"{opening}{os.path.relpath(shown, page.parent)}{anchor}"
        path = target.relative_to(ROOT).as_posix()
        return f"{opening}{repository}/{path}{anchor}"

    return LINK.sub(moved, text)


def _page_of(target: Path) -> Path | None:
    """Return the file inside docs/ that shows a file; None if there is none."""
    if target.is_relative_to(DOCS):
        return target
    name = target.relative_to(ROOT).as_posix()
    if name in PAGES:
        return DOCS / PAGES[name]
    is_example = target.parent == ROOT / "examples" and target.name.startswith("plot_")
    return DOCS / "gallery" / f"{target.stem}.rst" if is_example else None


def read_page(app, docname: str, source: list[str]) -> None:
    """Move the links of a page."""
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        repository = app.config.repository_files
        source[0] = on_the_site(source[0], folder=page.parent, page=page, repository=repository)


def read_included(app, path: Path, docname: str, content: list[str]) -> None:
    """Move the links of a file that a page includes."""
    included = Path(app.srcdir, path)
    page = Path(app.env.doc2path(docname))
    if included.suffix == ".md":
        repository = app.config.repository_files
        content[0] = on_the_site(
            content[0], folder=included.parent, page=page, repository=repository
        )


def setup(app) -> dict:
    """Connect with Sphinx."""
    app.add_config_value("repository_files", "", "env", types=str)
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
