"""Warnings that name the caller's line, however deep inside they arise."""

import sys
import warnings

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
