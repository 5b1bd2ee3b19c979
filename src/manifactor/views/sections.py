"""A result as data: sections of sentences, tables and figures, which each view renders its way.

A package adds what it knows of its runs by a subclass of `Addition`, named as an entry point of the
group `manifactor.sections`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from textwrap import wrap
from typing import Any

from manifactor._support.stages import Stages
from manifactor.estimators import ManifoldFactorizer
from manifactor.judging.table import Test
from manifactor.runs.run import Run


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of a row is its name
    kind: str = ""  # class of the HTML element
    marked: Sequence[int] = ()  # rows that are to be seen first
    tests: Sequence[Test] = ()  # of the rows, drawn before the last column of pages

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
    film: Mapping[str, Any] | None = None  # the images one after the other


@dataclass(frozen=True)
class Section:
    """A part of the description of a result."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


class Addition:
    """What a package adds to the views of a run; this class adds nothing."""

    @staticmethod
    def about(record: dict) -> Sequence[Section]:
        """Return what run.json alone tells: sections "samples", "preparation" and "findings".

        Sentences about the samples stand in place of the usual one.
        """
        return ()

    @classmethod
    def wanted(cls, run: Run, options: Any) -> Any:
        """Return what the options of a command ask for; refuse what the run cannot show."""
        return None

    @classmethod
    def open(
        cls, run: Run, fit: ManifoldFactorizer, wanted: Any = None, *, stages: Stages | None = None
    ) -> "Addition":
        """Return what is shown of a run; without `wanted` as far as its folder has it."""
        return cls()


@cache
def additions() -> tuple[type[Addition], ...]:
    """Return what the installed packages add."""
    return tuple(entry.load() for entry in entry_points(group="manifactor.sections"))
