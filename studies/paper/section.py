"""The input of a recipe, how much to compute, and its output, a section of the page."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from manifactor._support.parameters import require_count


@dataclass(frozen=True)
class Settings:
    """How much to compute."""

    # Use few samples and one seed: this shows that everything runs, not how well
    quick: bool = False
    seed: int = 0  # seed of the samples in figures, and the first of the seeds of rates

    def __post_init__(self) -> None:
        # Refused here, before hours of work, not by the first generator.
        require_count("seed", self.seed, low=0, high=2**31)

    @property
    def n(self) -> int:
        """Number of samples of each of the paper's data sets."""
        # The paper's own number, and the fewest that all recipes run with.
        return 500 if self.quick else 10_000

    @property
    def seeds(self) -> range:
        """Seeds that rates are taken over."""
        # Five seeds of every data set and method take half an hour on two cores.
        count = 1 if self.quick else 5
        return range(self.seed, self.seed + count)


@dataclass(frozen=True)
class Picture:
    """A figure and its caption; `name` is that of its files without suffix."""

    name: str
    figure: Any
    caption: str


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """One figure or table of the paper."""

    title: str
    # What was run, and how and why the result differs from the paper's; a paragraph each
    text: Sequence[str]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    # All measurements that are the same for the same seed
    numbers: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)  # all measurements of time, which never are

    def record(self) -> dict:
        """Return everything but the drawings, in types of JSON."""
        pictures = [{"name": picture.name, "caption": picture.caption} for picture in self.pictures]
        return {
            "title": self.title,
            "text": list(self.text),
            "pictures": pictures,
            "tables": [asdict(table) for table in self.tables],
            "numbers": plain(self.numbers),
            "seconds": plain(self.seconds),
        }


def plain(value):
    """Return a value in types of JSON: numbers rounded to 5 digits, NaN as None.

    >>> plain({"r2": np.array([0.123456789, np.nan])})
    {'r2': [0.12346, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    # Before the integers: a bool is one of them.
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        # Beyond five digits, numbers differ between processors and library versions.
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return value
