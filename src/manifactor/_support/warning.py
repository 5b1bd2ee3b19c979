"""Warnings that name the caller's line, however deep inside they arise."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PACKAGE = __name__.partition(".")[0]

# Where warnings of this package are collected; None where they are issued at once.
# `warnings.catch_warnings` would change the filters of the whole process, and contexts that overlap
# in threads would not restore them.
_held: ContextVar[list[warnings.WarningMessage] | None] = ContextVar("_held", default=None)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn with the line that called this package.

    A fixed `stacklevel` would name another line as soon as a function is added between the caller
    and the warning.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_inside(frame.f_globals):
        level, frame = level + 1, frame.f_back
    held = _held.get()
    if held is None:
        warnings.warn(message, category, stacklevel=level)
        return
    file, line = frame.f_code.co_filename, frame.f_lineno
    held.append(warnings.WarningMessage(category(message), category, file, line))


def _is_inside(names: dict) -> bool:
    return names.get("__name__", "").partition(".")[0] == PACKAGE


@contextmanager
def held_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Yield a list that collects this package's warnings, which are not issued.

    Only those of this thread, and of threads that `map_threads` and `map_panels` start inside the
    context. Warnings of other packages are issued as always.
    """
    held: list[warnings.WarningMessage] = []
    token = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(token)


def issue(held: Iterable[warnings.WarningMessage]) -> None:
    """Issue warnings that were held back, for the lines that they name, each once.

    Inside another context that holds warnings, they are held there.
    """
    different = {(str(each.message), each.filename, each.lineno): each for each in held}
    outer = _held.get()
    if outer is not None:
        outer.extend(different.values())
        return
    for each in different.values():
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def parted(
    held: Iterable[warnings.WarningMessage], category: type[Warning]
) -> tuple[list[warnings.WarningMessage], list[warnings.WarningMessage]]:
    """Return the warnings of a category, and all others."""
    everything = list(held)
    of_category = [each for each in everything if issubclass(each.category, category)]
    return of_category, [each for each in everything if each not in of_category]
