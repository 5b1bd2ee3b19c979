"""Rules that the fields of records must keep: types, sizes and ranges.

Sizes have names. A name stands for one size in all arrays of a record, and a rule `Within` says
under which names the sizes of a record are known inside of another. So an array that was cut, or an
index that points beyond another array, breaks a rule wherever it is.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from types import UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from manifactor._support.choices import Choice
from manifactor._support.values import bad_values

Sizes = Mapping[str, int]
# A name, a number, or None for any size.
Size = str | int | None
# Letters of numpy's kinds of numbers.
FLOATS, COMPLEX, INDICES, FLAGS, TEXT = "f", "c", "iu", "b", "U"


class BrokenRule(ValueError):
    """A record that no computation has made."""


def require(holds: bool, problem: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise BrokenRule(problem)


class Rule(Protocol):
    """What the value of a field must keep."""

    def sizes(self, value: Any, known: Sizes, book: "RuleBook") -> Sizes:
        """Return the known sizes and those of the value; refuse conflicts."""

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse values out of range; all sizes of the record are known."""


@dataclass(frozen=True)
class RuleBook:
    """The rules of all records."""

    rules: Mapping[type, Mapping[str, Rule]]  # by record and field
    # What no rule of one field says: a function of a record and its sizes
    further: Mapping[type, Callable[[Any, Sizes], None]] = field(default_factory=dict)
    unsaved: Collection[str] = ()  # fields that are not checked

    def check(self, record: Any, known: Sizes | None = None) -> Sizes:
        """Refuse a record that breaks a rule, or holds one that does."""
        kind: Any = type(record)
        rules, found = self.rules.get(kind, {}), known or {}
        values = {
            each.name: getattr(record, each.name)
            for each in dataclasses.fields(record)
            if each.name not in self.unsaved
        }
        for name, value in values.items():
            with _named(kind, name):
                require(fits(value, _hints(kind)[name]), "has another type")
                found = rules.get(name, Within()).sizes(value, found, self)
        for name, rule in rules.items():
            with _named(kind, name):
                rule.require(values[name], found)
        if kind in self.further:
            self.further[kind](record, found)
        return found

    def check_all(self, value: Any) -> None:
        """Check all records in a value."""
        Within().sizes(value, {}, self)


@contextmanager
def _named(kind: type, name: str) -> Iterator[None]:
    """Begin the message of a broken rule with the field."""
    try:
        yield
    except BrokenRule as error:
        raise BrokenRule(f"{kind.__name__}.{name}: {error}") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the type that a field declares."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(item, inner[0]) for item in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items()
        )
    if hint in (float, int):
        number = Real if hint is float else int
        return isinstance(value, number) and not isinstance(value, bool)
    return isinstance(value, hint)


@dataclass(frozen=True)
class Within:
    """Records in a record, also in tuples and dicts; other values may be anything."""

    # Names of sizes in these records, and what they are called outside
    names: Mapping[str, str] = field(default_factory=dict)

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Check the records, and add sizes that only they know."""
        found = dict(known)
        for record in _records(value):
            inside = {
                name: found[outside] for name, outside in self.names.items() if outside in found
            }
            inner = book.check(record, inside)
            for name, outside in self.names.items():
                if name in inner:
                    found[outside] = inner[name]
        return found

    def require(self, value: Any, known: Sizes) -> None:
        """Do nothing: records were checked with their sizes."""


def within(**names: str) -> Within:
    """Return the rule of records whose sizes have these names outside."""
    return Within(names)


def _records(value: Any) -> Iterator[Any]:
    """Yield the records in a value."""
    if dataclasses.is_dataclass(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _records(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _records(item)


@dataclass(frozen=True)
class Array:
    """An array, a sparse matrix, or a tuple of arrays; None passes."""

    shape: tuple[Size, ...]  # the size of each axis
    kinds: str = FLOATS  # letters of numpy's kinds of numbers
    below: str | None = None  # the size that indices must be below
    least: int = 0  # the smallest index
    finite: bool = True  # whether all numbers must be finite
    filled: bool = False  # whether it must have at least one entry

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Compare the shape with known sizes, and add others."""
        found = dict(known)
        for array in _arrays(value):
            require(array.dtype.kind in self.kinds, f"holds {array.dtype}")
            require(array.dtype.isnative, "has foreign bytes")
            require(len(array.shape) == len(self.shape), f"has shape {array.shape}")
            for name, size in zip(self.shape, array.shape, strict=True):
                expected = found.setdefault(name, size) if isinstance(name, str) else name
                require(expected in (None, size), f"has shape {array.shape}")
        return found

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse indices out of range, and numbers that are not finite."""
        for array in _arrays(value):
            entries = array.data if sp.issparse(array) else array
            require(bool(entries.size) or not self.filled, "is empty")
            if not entries.size:
                continue
            if self.kinds == INDICES:
                require(entries.min() >= self.least, "has indices below its first")
                high = np.inf if self.below is None else known[self.below]
                require(entries.max() < high, "has indices beyond its last")
            elif self.finite and self.kinds in FLOATS + COMPLEX:
                for part in (entries.real, entries.imag):
                    bad = bad_values(part, precision=np.float64)
                    require(bad is None, "is not finite")


def _arrays(value: Any) -> tuple:
    """Return the arrays of a field."""
    if value is None:
        return ()
    found = value if isinstance(value, tuple) else (value,)
    known = all(isinstance(each, np.ndarray) or sp.issparse(each) for each in found)
    require(known, "is no array")
    return found


def numbers(*shape: str | int | None, finite: bool = True, filled: bool = False) -> Array:
    """Return the rule of an array of floats."""
    return Array(shape, finite=finite, filled=filled)


def indices(*shape: str | int | None, below: str | None = None, least: int = 0) -> Array:
    """Return the rule of an array of whole numbers, from the least on."""
    return Array(shape, INDICES, below, least)


def flags(*shape: Size) -> Array:
    """Return the rule of an array of truth values."""
    return Array(shape, FLAGS)


@dataclass(frozen=True)
class Number:
    """A number, or a Choice of one, in [low, high] and greater than above; or None."""

    low: float = -np.inf
    high: float = np.inf
    above: float = -np.inf
    most: str | None = None  # A size that it must not exceed

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Check the Choice; return the known sizes."""
        return Within().sizes(value, known, book)

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse other numbers."""
        number = value.value if isinstance(value, Choice) else value
        if number is None:
            return
        require(fits(number, float), "is no number")
        high = self.high if self.most is None else known[self.most]
        inside = self.low <= number <= high and number > self.above
        require(inside, f"must not be {number}")


@dataclass(frozen=True)
class OneOf:
    """A word, a Choice of one, or a tuple of words."""

    words: tuple[str, ...]

    def sizes(self, value: Any, known: Sizes, book: RuleBook) -> Sizes:
        """Check the Choice; return the known sizes."""
        return Within().sizes(value, known, book)

    def require(self, value: Any, known: Sizes) -> None:
        """Refuse other words."""
        word = value.value if isinstance(value, Choice) else value
        words = word if isinstance(word, tuple) else (word,)
        require(all(each in self.words for each in words), f"must not be {word!r:.40}")
