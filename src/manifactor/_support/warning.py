"""Warnings that name the caller's line, however deep inside they arise."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

PACKAGE = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn with the line that called this package.

    A fixed `stacklevel` would name another line as soon as a function is added between
    the caller and the warning.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_inside(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(names: dict) -> bool:
    return names.get("__name__", "").partition(".")[0] == PACKAGE


@contextmanager
def held_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Yield a list that collects the warnings of the context, which are not shown."""
    with warnings.catch_warnings(record=True, action="always") as held:
        yield held


def issue(held: Iterable[warnings.WarningMessage]) -> None:
    """Issue warnings that were held back, for the lines that they name, each once."""
    different = {(str(each.message), each.filename, each.lineno): each for each in held}
    for each in different.values():
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def parted(
    held: Iterable[warnings.WarningMessage], category: type[Warning]
) -> tuple[list[warnings.WarningMessage], list[warnings.WarningMessage]]:
    """Return the warnings of a category, and all others."""
    everything = list(held)
    of_category = [each for each in everything if issubclass(each.category, category)]
    return of_category, [each for each in everything if each not in of_category]
