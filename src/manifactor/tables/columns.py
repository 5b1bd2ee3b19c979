"""The columns of a table: which are used, their names, and their scale."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import warn_caller
from manifactor._support.values import LEAST_SPREAD, REMEDIES
from manifactor.samples.columns import ColumnWarning

# What to do about columns of a file with bad values.
COLUMN_REMEDIES = (*REMEDIES, "leave columns out with --drop")
# A number, or the first and the last of several.
RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns to use."""

    # As typed: names, numbers from 0 and ranges such as 3-8, separated by commas; None for all
    columns: str | None = None
    drop: str | None = None  # columns to leave out, in the same form
    # Instead of `columns`, a sequence: names may have commas
    labels: tuple[str | int, ...] | None = None
    # Columns that are read for themselves, each with the option that names it
    apart: tuple[tuple[str, str], ...] = ()

    @property
    def named(self) -> bool:
        """Whether the caller chose the columns to use."""
        return self.columns is not None or self.labels is not None

    def numbers(self, names: Sequence[str] | None, total: int) -> tuple[int, ...]:
        """Return the numbers of the columns to use, ascending."""
        used = set(range(total))
        if self.columns is not None:
            used = _numbers("--columns", self.columns.split(","), names, total)
        if self.labels is not None:
            used = _numbers("the columns of the run", self.labels, names, total)
        if self.drop is not None:
            used -= _numbers("--drop", self.drop.split(","), names, total)
        if not used:
            raise ValueError("--drop must leave at least one column; it leaves none. Drop fewer.")
        for option, label in self.apart:
            used -= (named := _numbers(option, [label], names, total))
            if len(named) > 1 or not used:
                raise ValueError(
                    f"{option} must name one column, and leave others to fit; got {label!r} of "
                    f"{total} columns."
                )
        return tuple(sorted(used))


def _numbers(
    option: str, labels: Sequence[str | int], names: Sequence[str] | None, total: int
) -> set[int]:
    """Return the numbers of columns given by names, numbers and ranges."""
    numbers: set[int] = set()
    for label in (str(label).strip() for label in labels):
        if names is not None and label in names:
            numbers.add(list(names).index(label))
            continue
        ends = RANGE.fullmatch(label)
        if ends is None:
            raise ValueError(f"{option}: {_unknown(label, names, total)}")
        low, high = int(ends[1]), int(ends[2] or ends[1])
        if not low <= high < total:
            raise ValueError(
                f"{option}: columns are numbered from 0 to {total - 1}; got {label}. A range goes "
                "from the lower number to the higher one."
            )
        numbers |= set(range(low, high + 1))
    return numbers


def _unknown(label: str, names: Sequence[str] | None, total: int) -> str:
    """Return a message that there is no such column, and which columns there are."""
    if names is None:
        return (
            f"there is no column {label!r}, as the columns have no names; give numbers "
            f"from 0 to {total - 1}."
        )
    near = get_close_matches(label, names, n=3, cutoff=0.5)
    there = f"the nearest are {quoted(near)}" if near else f"there are {quoted(names)}"
    return f"there is no column {label!r}; {there}."


def quoted(names: Sequence[str], *, most: int = 8) -> str:
    """Return the first names in quotes, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def without_text(
    path: Path, used: Sequence[int], text: Sequence[int], names: Sequence[str] | None
) -> tuple[int, ...]:
    """Return columns without those of text, of which a warning tells."""
    if text and len(text) == len(used):
        raise ValueError(
            f"{path} must be a table of numbers: all columns hold text. "
            "Give a file with columns of numbers."
        )
    if text:
        labels = [str(number) if names is None else repr(names[number]) for number in text]
        warn_caller(f"columns that hold text were left out: {', '.join(labels)}.", ColumnWarning)
    return tuple(number for number in used if number not in text)


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used, and how they are scaled."""

    numbers: Sequence[int]  # numbers of the columns in the table, counted from 0, ascending
    total: int  # number of columns of the table
    names: tuple[str, ...] | None = None  # of the columns used, if the table has names
    # (n_used,): what is subtracted from the columns, and what they are then divided by
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None
    image: tuple[int, ...] | None = None  # shape of an image, if the columns are its pixels

    @property
    def labels(self) -> list[str | int]:
        """Names of the columns, or numbers if they have no names."""
        return list(self.numbers if self.names is None else self.names)

    @property
    def choice(self) -> ColumnChoice:
        """The choice of the same columns in another table, by their labels."""
        if self.names is None and len(self.numbers) == self.total:
            return ColumnChoice(labels=(f"0-{self.total - 1}",))
        return ColumnChoice(labels=tuple(self.labels))

    @property
    def record(self) -> dict:
        """The entry of run.json; the numbers are None for all columns."""
        return {
            "total": self.total,
            "numbers": None if len(self.numbers) == self.total else list(self.numbers),
            "names": _unless_none(list, self.names),
            "mean": _unless_none(np.ndarray.tolist, self.mean),
            "scale": _unless_none(np.ndarray.tolist, self.scale),
            **({} if self.image is None else {"image": list(self.image)}),
        }

    @classmethod
    def from_record(cls, record: dict) -> "Columns":
        """Return the columns that `record` describes."""
        return cls(
            _unless_none(tuple, record["numbers"]) or range(record["total"]),
            record["total"],
            _unless_none(tuple, record["names"]),
            _unless_none(np.array, record["mean"]),
            _unless_none(np.array, record["scale"]),
            _unless_none(tuple, record.get("image")),
        )

    @classmethod
    def of(cls, used: Sequence[int], total: int, names: Sequence[str] | None) -> "Columns":
        """Return some columns of a table with all their names."""
        return cls(used, total, None if names is None else tuple(names[number] for number in used))

    def pixels_of(self, image: tuple[int, ...] | None) -> "Columns":
        """Return these columns as pixels of images; some of the pixels are not an image."""
        return replace(self, image=image if len(self.numbers) == self.total else None)

    def standardised(self, samples: np.ndarray) -> "Columns":
        """Return these columns scaled to mean 0 and unit variance; constant ones are shifted."""
        mean = samples.mean(axis=0, dtype=np.float64)
        scale = samples.std(axis=0, dtype=np.float64)
        spread = samples.max(axis=0) - samples.min(axis=0)
        vanishes = (spread > 0) & (spread < LEAST_SPREAD)
        if vanishes.any():
            column = int(vanishes.argmax())
            raise ValueError(
                f"values of a column must be equal, or differ by more than {LEAST_SPREAD:.0e}, to "
                f"be standardised; those of column {self.labels[column]!r} differ by "
                f"{spread[column]:.1e}. Leave it out with --drop, or multiply it by a large number."
            )
        # The deviation of equal numbers is rounding, not always 0.
        return replace(self, mean=mean, scale=np.where(spread == 0, 1.0, scale))

    def scaled(self, samples: np.ndarray) -> np.ndarray:
        """Return samples of these columns, scaled; as they are without a scale."""
        if self.mean is None or self.scale is None:
            return samples
        return (samples - self.mean) / self.scale


def _unless_none(convert: Callable, value: Any) -> Any:
    return None if value is None else convert(value)


@dataclass(frozen=True)
class Table:
    """Numbers in columns."""

    samples: np.ndarray  # (n_samples, n_used)
    columns: Columns
