"""Options and types of values that several commands share."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from math import inf, isfinite, isinf
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
    add(options, "--seed", text, type=whole_number(low=0, high=2**32 - 1), default=0)


def add_out(options: Options, text: str, **how: Any) -> None:
    """Add the file or folder to write."""
    add(options, "--out", text, type=output_name, **how)


def add_overwrite(options: Options, text: str) -> None:
    """Add the flag that allows an earlier output to be replaced."""
    add(options, "--overwrite", text, action="store_true")


def add_view_width(options: Options) -> None:
    """Add the angle around a view within which particles count as seen from it."""
    # None where it is not given: without a view it is refused.
    text = "largest angle to the direction of --view, in degrees (default: 10)"
    add(options, "--width", text, type=number(), metavar="DEGREES")


def whole_number(*, low: int | None = None, high: int | None = None) -> Callable[[str], int]:
    """Return a type for argparse: a whole number within limits.

    >>> whole_number(low=0)("12")
    12
    """

    def parse(text: str) -> int:
        value = int(text)
        if (low is None or value >= low) and (high is None or value <= high):
            return value
        raise ArgumentTypeError(f"must be a whole number{_limits(low, high)}; got {text!r}")

    parse.__name__ = "whole number"
    return parse


def number(
    *,
    low: float | None = None,
    high: float | None = None,
    above: float = -inf,
    infinite: bool = False,
) -> Callable[[str], float]:
    """Return a type for argparse: a number within limits, which NaN never is.

    >>> number(low=0, high=1)(".5")
    0.5
    """

    def parse(text: str) -> float:
        value = float(text)
        known = isfinite(value) or (infinite and isinf(value))
        least, most = (-inf if low is None else low), (inf if high is None else high)
        if known and least <= value <= most and value > above:
            return value
        limits = f" above {above:g}" if isfinite(above) else _limits(low, high)
        finite = "" if infinite else "finite "
        raise ArgumentTypeError(f"must be a {finite}number{limits}; got {text!r}")

    parse.__name__ = "number"
    return parse


def _limits(low: float | None, high: float | None) -> str:
    """Return limits in words, with a blank before; nothing without limits."""
    if low is not None and high is not None:
        return f" in [{low:.10g}, {high:.10g}]"
    if low is not None:
        return f" of at least {low:.10g}"
    return "" if high is None else f" of at most {high:.10g}"


def whole_number_or(*words: str) -> Callable[[str], int | str]:
    """Return a type for argparse: a whole number or one of the words."""

    def parse(text: str) -> int | str:
        return text if text in words else int(text)

    # argparse puts the name of the type into its error message.
    parse.__name__ = f"whole number or {' or '.join(words)}"
    return parse


def number_or(*words: str) -> Callable[[str], float | str]:
    """Return a type for argparse: a finite number or one of the words."""

    def parse(text: str) -> float | str:
        return text if text in words else number()(text)

    parse.__name__ = f"number or {' or '.join(words)}"
    return parse


def output_name(text: str) -> str:
    """Parse the name of an output; an unset variable of a shell gives an empty one."""
    if not text:
        raise ArgumentTypeError("must be the name of a file or folder; got ''")
    return text


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
