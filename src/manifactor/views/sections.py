"""A result as data: sections of sentences, tables and figures, which each view renders its way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from manifactor._support.plugins import loaded
from manifactor._support.stages import Stages
from manifactor.estimators import ManifoldFactorizer
from manifactor.judging.measure import Test
from manifactor.runs.run import Run


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of a row is its name
    kind: str = ""  # class of the HTML element
    tests: Sequence[Test] = ()  # of the rows; pages draw them and mark those that failed

    def as_text(self, width: int) -> str:
        """Return the table as lines of text; the last column is wrapped."""
        columns = zip(self.header, *self.rows, strict=True)
        *widths, _ = [max(map(len, column)) for column in columns]
        # Two spaces before each column.
        left = 2 * len(widths) + sum(widths) + 2
        lines = [f"{self.caption}:"]
        for *cells, last in (self.header, *self.rows):
            padded = [cell.ljust(size) for cell, size in zip(cells, widths, strict=True)]
            # Paths are kept whole, so that they can be copied.
            first, *others = wrap(
                last, max(width - left, 1), break_long_words=False, break_on_hyphens=False
            ) or [""]
            lines.append("  ".join(["", *padded, first]).rstrip())
            lines += [" " * left + line for line in others]
        return "\n".join(lines)


# A strip of images as one picture, of which a style shows one after the other: its .png file in
# base64, its number of images, their shape, and what the page says of them.
Film = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A drawing, or images side by side; a figure of neither is its caption, a note."""

    caption: str
    alt: str = ""  # in words and numbers, for those who do not see it
    svg: str = ""
    tiles: Sequence[tuple[str, str]] = ()  # .png files in base64, with their captions
    kind: str = ""  # class of the HTML element
    scrolls: str = ""  # name of the box that scrolls where the page is narrow
    bar: Mapping[str, float] | None = None  # scale of the images
    film: Film | None = None


@dataclass(frozen=True)
class Section:
    """A part of the description of a result."""

    name: str  # by which views find it
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    title: str = ""


def additions() -> list[Any]:
    """Return what packages add to the views of runs.

    A package adds one as an entry point of the group `manifactor.sections`: a class with the
    methods of `cryoem.pages.ParticlePages`. Its sections `about` a record stand in place of those
    of `words.describe`, its `samples` of a factor in place of the cloud, and its `figures` in place
    of the confidence.
    """
    return list(loaded("sections").values())


def open_additions(
    run: Run, fit: ManifoldFactorizer, wanted: Sequence[Any] = (), *, stages: Stages | None = None
) -> list[Any]:
    """Return what packages show of a run: what is `wanted`, or else only what its folder has."""
    asked = wanted or [None] * len(additions())
    pairs = zip(additions(), asked, strict=True)
    return [addition.open(run, fit, each, stages=stages) for addition, each in pairs]
