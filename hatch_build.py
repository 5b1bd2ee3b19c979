"""Give the description that a package index shows absolute links.

Links of README.md are relative, so that they work in every clone and fork. A package
index has none of these files: there, links lead to the repository at the release's tag.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# The text of a link or image in brackets, and an address that is no URL or anchor.
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")
# An image in HTML, which Markdown has no size for.
IMAGE = re.compile(r'(<img [^>]*\bsrc=")(?![a-z]+:)([^"]+)')


def absolute_links(text: str, repository: str, revision: str) -> str:
    """Replace relative links by those to a revision of the repository."""
    raw = repository.replace("//github.com", "//raw.githubusercontent.com")

    def absolute(link: re.Match[str]) -> str:
        image, name, path = link.groups()
        folder = f"{raw}/{revision}" if image else f"{repository}/blob/{revision}"
        return f"{image}{name}({folder}/{path})"

    return IMAGE.sub(rf"\g<1>{raw}/{revision}/\2", LINK.sub(absolute, text))


class AbsoluteLinks(MetadataHookInterface):
    """The metadata hook that hatchling calls for every build."""

    def update(self, metadata: dict) -> None:
        """Set the description of the package."""
        version = metadata["version"]
        revision = "main" if "dev" in version else f"v{version}"
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = absolute_links(readme, metadata["urls"]["Repository"], revision)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
