"""Values as arguments of the command line that repeat a fit."""

from collections.abc import Mapping
from pathlib import Path


def changed_options(given: Mapping, usual: Mapping) -> list[str]:
    """Return the values that are not the usual ones as arguments.

    None and False are the absence of a flag.
    """
    out: list[str] = []
    for name, value in given.items():
        if value is None or value is False or value == usual.get(name):
            continue
        out.append(f"--{name.replace('_', '-')}")
        if value is not True:
            out.append(shortest(value) if isinstance(value, float) else str(value))
    return out


def repeated_options(options: Mapping[str, list]) -> list[str]:
    """Return options as arguments, each repeated for every value."""
    out: list[str] = []
    for name, values in options.items():
        for value in values:
            out += [name, shortest(value) if isinstance(value, float) else str(value)]
    return out


def shortest(number: float) -> str:
    """Return the fewest digits that give the number back."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def absolute(path: str | None) -> str | None:
    """Return a path that is the same from any folder.

    A link stays a link, since what belongs to it may lie beside it.
    """
    return None if path is None else str(Path(path).absolute())
