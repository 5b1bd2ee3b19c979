"""What a recipe takes, how much to compute, and gives back: pictures with captions, tables, words, all numbers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from manifactor._support.parameters import require_count


@dataclass(frozen=True)
class Settings:
    """How much to compute.

    Attributes
    ----------
    quick : bool
        Few samples and one seed: shows that everything runs, not what it finds.
    seed : int
        Of the samples in the figures, and the first of the seeds that rates are taken over.
    """

    quick: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("seed", self.seed, 0, 2**31)

    @property
    def n(self) -> int:
        """Samples of each of the paper's data sets."""
        return 500 if self.quick else 10_000

    @property
    def seeds(self) -> range:
        """Seeds that rates are taken over."""
        return range(self.seed, self.seed + (1 if self.quick else 5))


@dataclass(frozen=True)
class Picture:
    """A figure and what it shows; `name` is that of its files."""

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
    """One figure or table of the paper.

    Attributes
    ----------
    title : str
    text : sequence of str
        What was run, and how and why the result differs from the paper's.
    pictures : sequence of Picture
    tables : sequence of Table
    numbers : dict
        All that was measured, the same for the same seed.
    seconds : dict
        What was timed.
    """

    title: str
    text: Sequence[str]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    numbers: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)

    def record(self) -> dict:
        """Everything but the drawings, as JSON holds it."""
        return {
            "title": self.title,
            "text": list(self.text),
            "pictures": [
                {"name": picture.name, "caption": picture.caption}
                for picture in self.pictures
            ],
            "tables": [asdict(table) for table in self.tables],
            "numbers": plain(self.numbers),
            "seconds": plain(self.seconds),
        }


def plain(value):
    """Numbers of numpy as JSON's, rounded to what can be relied on; NaN as None.

    Examples
    --------
    >>> plain({"r2": np.array([0.123456789, np.nan])})
    {'r2': [0.12346, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return value
