"""A result as data: sections of sentences, tables and figures, which each view renders its way.

A package adds what it knows of its runs by a subclass of `Addition`, named as an entry point of the
group `manifactor.sections`.
"""

from collections.abc import Callable, Mapping, Sequence
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


class Addition:
    """What a package adds to the views of a run; this class adds nothing."""

    @staticmethod
    def about(record: dict, fit: ManifoldFactorizer) -> Sequence[Section]:
        """Return what run.json tells, in place of sections of `words.describe`."""
        return ()

    @classmethod
    def wanted(cls, run: Run, options: Any) -> Any:
        """Return what the options of a command ask for; refuse what the run cannot show."""
        return None

    @classmethod
    def notice(cls, run: Run) -> str:
        """Return what takes a while when something is `wanted`."""
        return ""

    @classmethod
    def open(
        cls, run: Run, fit: ManifoldFactorizer, wanted: Any = None, *, stages: Stages | None = None
    ) -> "Addition":
        """Return what is shown of a run; without `wanted`, only what its folder has."""
        return cls()

    def problem(self) -> str:
        """Return why something is not shown, for a note of the command."""
        return ""

    def sentences(self) -> Sequence[str]:
        """Return what is said of the run after its findings."""
        return ()

    def notes(self) -> Sequence[str]:
        """Return what `manifactor report` prints besides."""
        return ()

    # Of a factor, counted from 0.

    def samples(self, f: int) -> Figure | None:
        """Return what is drawn in place of the cloud of samples."""
        return None

    def figures(self, f: int) -> Sequence[Figure]:
        """Return drawings in place of that of the confidence."""
        return ()

    def strips(self, f: int) -> Sequence[Figure]:
        """Return images along the factor."""
        return ()

    def movies(self, f: int) -> Mapping[str, bytes]:
        """Return movies along the factor, by the ending of their files."""
        return {}

    def sections(self) -> Sequence[Section]:
        """Return further sections of the page, after the factors."""
        return ()

    # Of samples, in the explorer.

    def preview(self) -> Any:
        """Return the `Preview` of samples; None for their columns."""
        return None

    def columns(self, preview: Any) -> Mapping[str, Callable[[], Mapping[str, Any]]]:
        """Return functions that read further `Column`s, by what they are of."""
        return {}


def additions() -> list[type[Addition]]:
    """Return what the installed packages add."""
    return list(loaded("sections").values())


def open_additions(
    run: Run, fit: ManifoldFactorizer, wanted: Sequence[Any] = (), *, stages: Stages | None = None
) -> list[Addition]:
    """Return what all packages show of a run; see `Addition.open`."""
    asked = wanted or [None] * len(additions())
    pairs = zip(additions(), asked, strict=True)
    return [addition.open(run, fit, each, stages=stages) for addition, each in pairs]
