"""Options and types of values that several commands share."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from math import isfinite
from typing import Any, Protocol


class Options(Protocol):
    """What options are added to: a parser, or a group of options with a heading."""

    def add_argument(self, *names: str, **how: Any) -> Any:
        """Add an option."""


def add(options: Options, name: str, text: str, **how: Any) -> None:
    """Add an option whose help ends with its default, if it has one."""
    default = how.get("default")
    # Options that may be repeated start from an empty list, which says nothing.
    if default is not None and default != []:
        text += f" (default: {default})"
    # argparse formats help texts with the % operator.
    options.add_argument(name, help=text.replace("%", "%%"), **how)


def add_run(options: Options) -> None:
    """Add the run folder that a command reads."""
    add(options, "run", "run folder written by manifactor fit", metavar="RUN")


def add_seed(options: Options) -> None:
    """Add the random seed."""
    text = "random seed; the same seed gives the same result"
    add(options, "--seed", text, type=int, default=0)


def add_overwrite(options: Options, text: str) -> None:
    """Add the flag that allows an earlier output to be replaced."""
    add(options, "--overwrite", text, action="store_true")


def add_view_width(options: Options) -> None:
    """Add the angle around a view within which particles count as seen from it."""
    # None where it is not given: without a view it is refused.
    text = "largest angle to the direction of --view, in degrees (default: 10)"
    add(options, "--width", text, type=float, metavar="DEGREES")


def whole_number_or(*words: str) -> Callable[[str], int | str]:
    """Return a type for argparse: a whole number or one of the words."""

    def parse(text: str) -> int | str:
        return text if text in words else int(text)

    # argparse puts the name of the type into its error message.
    parse.__name__ = f"whole number or {' or '.join(words)}"
    return parse


def number_or(*words: str) -> Callable[[str], float | str]:
    """Return a type for argparse: a number or one of the words."""

    def parse(text: str) -> float | str:
        return text if text in words else float(text)

    parse.__name__ = f"number or {' or '.join(words)}"
    return parse


def view(text: str) -> tuple[float, float]:
    """Parse a viewing direction, RELION's angles rot and tilt in degrees."""
    try:
        rot, tilt = (float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(
            f"a view must be two angles in degrees, ROT,TILT; got {text!r}"
        ) from None
    if not (isfinite(rot) and -180 <= tilt <= 180):
        raise ArgumentTypeError(
            f"the tilt of a view must lie between -180 and 180 degrees; got {text!r}"
        )
    return rot, tilt
